// When the built-in voices speak each word: told by the graph's durations, compared with the sound itself. Words behind commas begin
// after a pause, which is found in the samples by loudness alone.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { speechRateHz } from "#domain/audio/Audio.ts"
import { WordTimes } from "#domain/audio/TimedWords.ts"
import { cloneOnnx } from "#engines/clone/CloneOnnx.ts"
import { kokoroOnnx } from "#engines/kokoro/KokoroOnnx.ts"
import { demoFiles, openSpeech, type SpeechOutlet, say, speechRequest } from "./speech.ts"
import { type ToyNames, toyFolder } from "./toyKokoro.ts"

const seconds = (samples: number): number => samples / speechRateHz

const wordsOf = (text: string, { units }: SpeechOutlet) => {
  const times = new WordTimes(text)
  for (const { words } of units) if (words !== undefined) times.push(words)
  return times.found.map(({ end, from, start, to }) => ({ word: text.slice(from, to), start, end }))
}

const frame = speechRateHz / 200
/** −38 dB of full scale: between the breath noise of a pause and the quietest onset of a word. */
const quiet = 400
/** A silence of this length is a pause, not the closure before a "t" or "k". */
const pauseFrames = 18

/** Where sound begins after a pause, samples. */
const onsets = (samples: Int16Array): ReadonlyArray<number> => {
  const found: Array<number> = []
  let silent = pauseFrames
  for (let at = 0; at < samples.length; at += frame) {
    const isLoud = samples.subarray(at, at + frame).some((sample) => Math.abs(sample) > quiet)
    if (isLoud && silent >= pauseFrames) found.push(at)
    silent = isLoud ? 0 : silent + 1
  }
  return found
}

const lists = [
  "Monday, Wednesday, Friday, Sunday, January, October.",
  "Bread, butter, garden, window, dinner, morning.",
  "Alice, Robert, Margaret, Daniel, Emily, George.",
  "Yellow, green, orange, purple, brown, golden.",
  "Mountain, river, ocean, meadow, island, desert.",
]

describe("words of the built-in voices", () => {
  // Each voice at two speeds: a minute of a processor.
  it.live("begin where the sound begins, within 60 ms for 95 of 100", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const engine = yield* openSpeech(kokoroOnnx, demoFiles)
        const differences: Array<number> = []
        for (const voice of engine.facts.voices) {
          for (const text of lists) {
            for (const speed of [1, 1.25]) {
              const spoken = yield* say(engine, speechRequest(text, { voice: { preset: voice }, speed }))
              const words = wordsOf(text, spoken.outlet)
              expect(words.map(({ word }) => word)).toEqual(text.split(" "))
              const sounds = onsets(spoken.samples)
              for (const { start } of words) {
                differences.push(Math.min(...sounds.map((at) => Math.abs(seconds(at - start)))))
              }
            }
          }
        }
        const near = differences.filter((difference) => difference <= 0.06).length
        expect(differences.length).toBe(8 * 2 * 30)
        expect(near / differences.length).toBeGreaterThanOrEqual(0.95)
      }),
    ),
  )

  it.live("follow each other inside the audio, cover it, and hold each word of a long text once", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const sentence =
          "One of the dogs in the end was mine, and it's well known that I would have been there. "
        const text = sentence.repeat(6).trim()
        for (const [descriptor, voice] of [
          [kokoroOnnx, "bf_emma"],
          [cloneOnnx, "default"],
        ] as const) {
          const engine = yield* openSpeech(descriptor, demoFiles)
          const { outlet, samples } = yield* say(engine, speechRequest(text, { voice: { preset: voice } }))
          const words = wordsOf(text, outlet)
          expect(words.map(({ word }) => word)).toEqual(text.split(" "))
          let before = 0
          for (const { end, start } of words) {
            expect(start).toBeGreaterThanOrEqual(before)
            expect(end).toBeGreaterThanOrEqual(start)
            before = end
          }
          expect(before).toBeLessThanOrEqual(samples.length)
          // What is no word is a pause: at most a third of this text.
          const spoken = words.reduce((sum, { end, start }) => sum + end - start, 0)
          expect(spoken / samples.length).toBeGreaterThan(0.66)
        }
      }),
    ),
  )
})

describe("words of other graphs of this form", () => {
  const text = "Alpha beta gamma delta."
  const places = (names: Partial<ToyNames>) =>
    Effect.scoped(
      Effect.gen(function* () {
        const engine = yield* openSpeech(kokoroOnnx, yield* toyFolder(names))
        const { outlet, samples } = yield* say(engine, speechRequest(text, { voice: { preset: "af_toy" } }))
        return wordsOf(text, outlet).map(({ end, start }) => [start / samples.length, end / samples.length])
      }),
    )

  it.live(
    "are placed by share of symbols, or by an output of whole numbers as in the export with timestamps",
    () =>
      Effect.gen(function* () {
        const shares = yield* places({})
        const told = yield* places({ duration: true })
        expect(shares.length).toBe(4)
        expect(told.length).toBe(4)
        // The toy's durations are the ids themselves, so the words lie elsewhere than by share.
        expect(told).not.toEqual(shares)
        for (const row of [shares, told]) {
          const flat = row.flat()
          expect(flat).toEqual([...flat].sort((a, b) => a! - b!))
          expect(flat.at(-1)).toBeLessThanOrEqual(1)
        }
      }),
  )
})
