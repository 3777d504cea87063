// What a language model's expectation of the end of a message changes in the judgement of a turn.
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import fc from "fast-check"
import { expect, it } from "vitest"
import { tensorsOf } from "#audio/Safetensors.ts"
import { completenessWeights, riseWeights, riseWeightsSum } from "#audio/SpeechWeights.ts"
import { completeness, completenessWithRise, riseWeightsOf } from "#domain/activity/Completeness.ts"
import { riseOf, unfinished } from "#domain/activity/MessageEnds.ts"
import { prosodyValues } from "#domain/activity/Prosody.ts"

const logs = fc.array(fc.oneof(fc.float({ max: 0, noNaN: true }), fc.constant(Number.NEGATIVE_INFINITY)), {
  maxLength: 12,
})

it("the rise is bounded, needs two words, and is the same for a model that expects ends more or less everywhere", () => {
  fc.assert(
    fc.property(logs, (stops) => {
      const rise = riseOf(stops)
      expect(rise === undefined).toBe(stops.length < 2)
      if (rise !== undefined) expect(Math.abs(rise)).toBeLessThanOrEqual(8)
    }),
  )
  const stops = [-7, -5, -6, -2]
  for (const shift of [0, 1, -3]) expect(riseOf(stops.map((value) => value - 1 + shift))).toBeCloseTo(4)
  expect(riseOf([Number.NaN, -1])).toBeUndefined()
})

it("a transcript loses the marks behind it, and nothing else", () => {
  expect(unfinished(" What's that, then?! ")).toBe("What's that, then")
  expect(unfinished("…")).toBe("")
  expect(unfinished("今日は暑い。")).toBe("今日は暑い")
  expect(unfinished("It costs 5%")).toBe("It costs 5%")
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      expect(unfinished(unfinished(text))).toBe(unfinished(text))
      expect(text).toContain(unfinished(text))
    }),
  )
})

const ending = new Float32Array(prosodyValues)
const text = "I would like a cup of coffee"
const judged = (
  rise: number,
  terms: { weight?: number; knowsWords?: boolean; said?: string } = {},
): number => {
  const { knowsWords = true, said = text, weight = 1 } = terms
  const heard = { text: said, ending, rise, knowsWords, weight }
  return completenessWithRise(completenessWeights, riseWeights, heard)!
}

it("a higher rise is a higher score, the more so the more the model counts; a weight of 0 is the score alone", () => {
  const alone = completeness(completenessWeights, text, ending)!
  const rises = fc.float({ min: -8, max: 8, noNaN: true })
  fc.assert(
    fc.property(rises, rises, fc.boolean(), (one, other, knowsWords) => {
      const [low, high] = [Math.min(one, other), Math.max(one, other)]
      expect(judged(low, { knowsWords })).toBeLessThanOrEqual(judged(high, { knowsWords }))
      expect(judged(one, { weight: 0 })).toBeCloseTo(alone, 6)
    }),
  )
  expect(judged(8)).toBeGreaterThan(alone)
  expect(judged(-8)).toBeLessThan(alone)
  expect(judged(8, { weight: 5 })).toBeGreaterThan(judged(8))
  expect(judged(-8, { weight: 5 })).toBeLessThan(judged(-8))
})

it("of other languages the words do not count, as long as there are some", () => {
  const scores = ["la casa", "and the", "we are done now"].map((said) =>
    judged(0, { said, knowsWords: false }),
  )
  expect(new Set(scores).size).toBe(1)
  const none = { text: "…", ending, rise: 1, knowsWords: false, weight: 1 }
  expect(completenessWithRise(completenessWeights, riseWeights, none)).toBeUndefined()
})

it("the weights are the released ones, and others are refused", () => {
  const file = new URL("../../../models/turns-demo/rise.safetensors", import.meta.url)
  const bytes = readFileSync(file)
  expect(createHash("sha256").update(bytes).digest("hex")).toBe(riseWeightsSum)
  const sums = readFileSync(new URL("SHA256SUMS", file), "utf8")
  expect(sums).toContain(`${riseWeightsSum}  rise.safetensors`)
  const tensors = tensorsOf(bytes)
  expect(riseWeightsOf(tensors)).toEqual(riseWeights)
  expect(() => riseWeightsOf(new Map([...tensors, ["sound", new Float32Array(3)]]))).toThrow("2, 3 values")
})
