// The pure parts of the evaluation: word errors, degraded audio, clips without speech, rules of answers, voice profiles.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { wordErrorPercent } from "#harness/figures/WordErrors.ts"
import { follows } from "../eval/ChatQuality.ts"
import { clipsWithoutSpeech, RandomNumbers, withNoise, withReverberation } from "../eval/Conditions.ts"
import { prompts } from "../eval/EvaluationSet.ts"
import { cleannessOf, pitchDistance, profileOf, profileRateHz, timbreDistance } from "../eval/VoiceProfile.ts"

const power = (samples: Float32Array): number =>
  samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length

/** A buzz with this pitch whose harmonics fall by so many dB an octave. */
const buzz = (pitchHz: number, fallDb: number): Float32Array => {
  const levels: Array<number> = []
  for (let k = 1; k * pitchHz < 7000; k++) levels.push(10 ** ((-fallDb * Math.log2(k)) / 20))
  return Float32Array.from({ length: 2 * profileRateHz }, (_, i) => {
    let sum = 0
    for (const [at, level] of levels.entries())
      sum += level * Math.sin((2 * Math.PI * (at + 1) * pitchHz * i) / profileRateHz)
    return sum * 0.1
  })
}

describe("word errors", () => {
  it("count edits over the spoken words", () => {
    expect(wordErrorPercent([{ spoken: "Close the door.", transcribed: "close the door" }])).toBe(0)
    expect(
      wordErrorPercent([{ spoken: "Close the door.", transcribed: "Close a door, please" }]),
    ).toBeCloseTo(66.7, 1)
    expect(
      wordErrorPercent([
        { spoken: "one two", transcribed: "" },
        { spoken: "three four", transcribed: "three four" },
      ]),
    ).toBe(50)
  })

  it.each([
    ["Größe", "Grosse", 100],
    ["Gro\u0308ße", "größe", 0],
    ["Où est l’été ?", "ou est l'été", 100 / 3],
    ["Привет, мир!", "привет", 50],
    ["on line 7", "on line 8", 100 / 3],
    ["今日はいい天気", "今日は良い天気", 100 / 7],
    ["東京 tower", "東京tower", 0],
  ])("count the letters of every script: %s, %s", (spoken, transcribed, percent) => {
    expect(wordErrorPercent([{ spoken, transcribed }])).toBeCloseTo(percent, 6)
  })
})

describe("conditions", () => {
  const clean = buzz(150, 6)
  it("add noise at the given ratio, the same every time", () => {
    for (const decibels of [10, 20]) {
      const noisy = withNoise(clean, decibels, 3)
      const added = noisy.map((sample, i) => sample - clean[i]!)
      expect(10 * Math.log10(power(clean) / power(added))).toBeCloseTo(decibels, 0)
      expect(withNoise(clean, decibels, 3)).toEqual(noisy)
      expect(withNoise(clean, decibels, 4)).not.toEqual(noisy)
    }
  })
  it("add reverberation that outlasts the speech", () => {
    const spoken = Float32Array.from(clean, (sample, i) => (i < 8000 ? sample : 0))
    const reverberant = withReverberation(spoken, 0.3, profileRateHz, 1)
    expect(power(reverberant.subarray(8000, 10_000))).toBeGreaterThan(1e-7)
    expect(power(reverberant.subarray(16_000))).toBe(0)
  })
  it("make clips without speech of every kind and length", () => {
    const clips = clipsWithoutSpeech(profileRateHz)
    expect(clips.length).toBe(44)
    expect(new Set(clips.map(({ kind }) => kind)).size).toBe(6)
    expect(clips.every(({ samples }) => samples.every((sample) => Math.abs(sample) <= 1))).toBe(true)
    const random = new RandomNumbers(1)
    const mean = Array.from({ length: 1000 }, () => random.next()).reduce((a, b) => a + b) / 1000
    expect(mean).toBeCloseTo(0.5, 1)
  })
})

describe("voice profiles", () => {
  it.effect("find pitch and distinguish timbres", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const [low, high, dull] = [
          yield* profileOf(buzz(110, 6)),
          yield* profileOf(buzz(220, 6)),
          yield* profileOf(buzz(110, 12)),
        ]
        expect(low.pitchHz).toBeGreaterThan(108)
        expect(low.pitchHz).toBeLessThan(112)
        expect(pitchDistance(low, high)).toBeCloseTo(12, 0)
        expect(pitchDistance(low, dull)).toBeLessThan(0.3)
        expect(timbreDistance(low, low)).toBe(0)
        expect(timbreDistance(low, dull)).toBeGreaterThan(3)
      }),
    ),
  )
  it("measure peak, mean, loudness and edges", () => {
    const square = Int16Array.from({ length: 24_000 }, (_, i) => (i % 2 === 0 ? 16_384 : -16_384))
    expect(cleannessOf(square)).toMatchObject({ dc: 0, edge: 0.5 })
    expect(cleannessOf(square).peakDbfs).toBeCloseTo(-6.02, 2)
    expect(cleannessOf(square).loudnessDbfs).toBeCloseTo(-6.02, 2)
    expect(cleannessOf(square.map(() => 3277)).dc).toBeCloseTo(0.1, 3)
  })
})

describe("rules of answers", () => {
  it("are forty, and each is a pattern", () => {
    expect(prompts.length).toBe(40)
    for (const { never, rule } of prompts)
      expect(() => [new RegExp(rule), new RegExp(never ?? "")]).not.toThrow()
  })
  const ruleOf = (question: string) => prompts.find(({ messages }) => messages.at(-1) === question)!
  it("accept right answers and reject wrong ones", () => {
    const accepted = (question: string, text: string) => follows(ruleOf(question), text)
    expect(accepted("What is 7 + 5?", "7 plus 5 is 12.")).toBe(true)
    expect(accepted("What is 7 + 5?", "7 plus 5 is 13.")).toBe(false)
    expect(accepted("Name three fruits.", "Apple, banana and cherry.")).toBe(true)
    expect(accepted("Name three fruits.", "Apple, banana and apple.")).toBe(false)
    expect(accepted("Count from 3 to 9.", "3, 4, 5, 6, 7, 8, 9.")).toBe(true)
    expect(accepted("Count from 3 to 9.", "3, 4, 5, 6, 7, 8, 9, 10.")).toBe(false)
    expect(accepted("What is the capital of France?", "Paris.")).toBe(true)
    expect(accepted("What is the capital of France?", "It is Paris.")).toBe(false)
    expect(accepted("What is the opposite of big?", "THE OPPOSITE OF BIG IS SMALL.")).toBe(true)
    expect(accepted("What is the opposite of big?", "The opposite of big is small.")).toBe(false)
  })
})
