// How probable it is that a speaker has finished, and how long a silence ends the turn then.
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import fc from "fast-check"
import { expect, it } from "vitest"
import { tensorsOf } from "#audio/Safetensors.ts"
import { completenessWeights, completenessWeightsSum } from "#audio/SpeechWeights.ts"
import { hopSamples } from "#domain/activity/BandEnergies.ts"
import { completeness, completenessWeightsOf } from "#domain/activity/Completeness.ts"
import { endingWords, wordWeights } from "#domain/activity/EndingWords.ts"
import { Prosody, prosodyValues } from "#domain/activity/Prosody.ts"
import { type Eagerness, semanticSilenceMs } from "#domain/activity/SemanticSilence.ts"

const folder = new URL("../../../models/turns-demo/", import.meta.url)
const bytes = readFileSync(new URL("completeness.safetensors", folder))

const eagerness = ["low", "medium", "high", "auto"] as const satisfies ReadonlyArray<Eagerness>

/** A tone whose pitch glides, as samples of 10 ms. */
const tone = (fromHz: number, toHz: number, hops: number): ReadonlyArray<Int16Array> => {
  let phase = 0
  return Array.from({ length: hops }, (_, hop) =>
    Int16Array.from({ length: hopSamples }, () => {
      const hz = fromHz + ((toHz - fromHz) * hop) / hops
      phase += (2 * Math.PI * hz) / 16_000
      // A voice has harmonics.
      return 6_000 * (Math.sin(phase) + 0.5 * Math.sin(2 * phase) + 0.3 * Math.sin(3 * phase))
    }),
  )
}

const silence = (hops: number) => Array.from({ length: hops }, () => new Int16Array(hopSamples))

const endingOf = (hops: ReadonlyArray<Int16Array>, quietHops: number): Float32Array => {
  const prosody = new Prosody()
  for (const hop of hops) prosody.push(hop)
  return prosody.ending(quietHops)
}

const even = endingOf([...tone(120, 120, 150), ...silence(10)], 10)

it("is between 0 and 1 for any text and any sound", () => {
  const values = fc.array(fc.float({ noNaN: true, min: -50, max: 50 }), {
    minLength: prosodyValues,
    maxLength: prosodyValues,
  })
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.lorem()), values, (text, ending) => {
      const score = completeness(completenessWeights, text, Float32Array.from(ending))
      expect(score === undefined).toBe(endingWords(text) === undefined)
      if (score === undefined) return
      expect(score).toBeGreaterThanOrEqual(0)
      expect(score).toBeLessThanOrEqual(1)
      expect(completeness(completenessWeights, text, Float32Array.from(ending))).toBe(score)
    }),
  )
})

it("does not look at punctuation, case or the quotes' form, nor at what is far from the end", () => {
  const score = (text: string) => completeness(completenessWeights, text, even)
  expect(score("I'd like to. Book a table for?")).toBe(score("i’d like to book, a table for"))
  const long = "the weather was cold and we stayed at home "
  expect(score(long.repeat(400))).toBe(score(long.repeat(40)))
  expect(score("")).toBeUndefined()
  expect(score(" … ?!")).toBeUndefined()
  for (const number of [endingWords("what")!, endingWords("so what is 7 of ours")!].flatMap((found) => [
    ...found.kinds,
    ...found.words,
  ])) {
    expect(number).toBeLessThan(wordWeights)
    expect(number).toBeGreaterThanOrEqual(0)
  }
})

it("sentences that are complete have more than the same without their last word", () => {
  const sentences = [
    "can you book a table for tomorrow",
    "I would like to speak to my doctor",
    "where did you put the keys",
    "we are going to the station",
    "what is the name of your sister",
  ]
  for (const sentence of sentences) {
    const cut = sentence.split(" ").slice(0, -1).join(" ")
    expect(completeness(completenessWeights, sentence, even)!, cut).toBeGreaterThan(
      completeness(completenessWeights, cut, even)!,
    )
  }
})

it("the sound of an end: pitch against the speech before, and how long the last syllable lasts", () => {
  const falling = endingOf([...tone(140, 140, 100), ...tone(140, 90, 50), ...silence(20)], 20)
  const rising = endingOf([...tone(140, 140, 100), ...tone(140, 210, 50), ...silence(20)], 20)
  expect(falling[0]).toBeLessThan(-1)
  expect(rising[0]).toBeGreaterThan(1)
  expect(Math.abs(even[0]!)).toBeLessThan(0.2)
  const short = endingOf([...tone(140, 140, 100), ...silence(8), ...tone(140, 140, 12), ...silence(20)], 20)
  expect(short[8]).toBeLessThan(falling[8]!)
  // Nothing to compare, and silence alone.
  for (const hops of [[], silence(300), tone(120, 120, 2)]) {
    for (const value of endingOf(hops, 5)) expect(value).toBeLessThan(Number.POSITIVE_INFINITY)
  }
})

it("an end sounds the same however long the stream was before, and however long the silence behind", () => {
  const said = tone(150, 110, 260)
  const once = endingOf([...said, ...silence(4)], 4)
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 500 }), fc.integer({ min: 4, max: 60 }), (before, quiet) => {
      const again = endingOf([...tone(90, 90, before), ...silence(10), ...said, ...silence(quiet)], quiet)
      expect(again).toEqual(once)
    }),
    { numRuns: 15 },
  )
})

it("the silence is within its bounds, shorter the more complete the words, and 3 s at most", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...eagerness),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (eager, one, other) => {
        const [less, more] = [Math.min(one, other), Math.max(one, other)]
        expect(semanticSilenceMs(eager, more)).toBeLessThanOrEqual(semanticSilenceMs(eager, less))
        const silences = [semanticSilenceMs(eager, one), semanticSilenceMs(eager, undefined)]
        for (const ms of silences) {
          expect(ms % 10).toBe(0)
          expect(ms).toBeGreaterThanOrEqual(200)
          expect(ms).toBeLessThanOrEqual(2_000)
        }
        expect(semanticSilenceMs("high", one)).toBeLessThanOrEqual(semanticSilenceMs("auto", one))
        expect(semanticSilenceMs("auto", one)).toBeLessThanOrEqual(semanticSilenceMs("low", one))
      },
    ),
  )
  expect(eagerness.map((eager) => semanticSilenceMs(eager, undefined))).toEqual([900, 600, 350, 600])
  expect([0, 0.25, 0.499, 0.5, 1].map((score) => semanticSilenceMs("auto", score))).toEqual([
    1_200, 1_000, 800, 240, 240,
  ])
})

it("the weights are those of the checksum, and files with other tensors are refused", () => {
  expect(createHash("sha256").update(bytes).digest("hex")).toBe(completenessWeightsSum)
  expect(readFileSync(new URL("SHA256SUMS", folder), "utf8")).toContain(
    `${completenessWeightsSum}  completeness.safetensors`,
  )
  const tensors = new Map(tensorsOf(bytes))
  expect(() => completenessWeightsOf(new Map([...tensors, ["words", new Float32Array(2)]]))).toThrow(
    "tensor words: 2 values where 16384 are expected",
  )
  tensors.delete("out.bias")
  expect(() => completenessWeightsOf(tensors)).toThrow("tensor out.bias: no values")
})
