// Log probabilities against a plain log-softmax in double precision.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { LogitSampler } from "#engines/llama/sampling/LogitSampler.ts"
import { Rows } from "#engines/llama/sampling/Rows.ts"
import { scoreOf } from "#engines/llama/sampling/Scores.ts"

const plain = { temperature: 1, topP: 1, topK: 0, frequencyPenalty: 0, presencePenalty: 0, seed: 0 }
const row = fc
  .array(fc.oneof(fc.float({ min: -60, max: 30, noNaN: true }), fc.constantFrom(0, 1, -Infinity)), {
    minLength: 1,
    maxLength: 700,
  })
  .filter((logits) => logits.some(Number.isFinite))

const plainLogprobs = (logits: ReadonlyArray<number>): ReadonlyArray<number> => {
  const largest = Math.max(...logits)
  const total = largest + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - largest), 0))
  return logits.map((logit) => logit - total)
}

describe("the score of a token", () => {
  it("is its log-softmax, and the most likely tokens come in order", () => {
    fc.assert(
      fc.property(row, fc.nat(), fc.integer({ min: 0, max: 20 }), (logits, some, top) => {
        const token = some % logits.length
        const score = scoreOf(new Rows(logits.length), Float32Array.from(logits), token, top)
        const expected = plainLogprobs(logits)
        if (Number.isFinite(expected[token]!)) expect(score.logprob).toBeCloseTo(expected[token]!, 4)
        else expect(score.logprob).toBe(-Infinity)
        const likely = logits
          .map((_, at) => at)
          .filter((at) => logits[at]! > -Infinity)
          .sort((a, b) => logits[b]! - logits[a]! || a - b)
          .slice(0, top)
        expect(score.top.map((one) => one.token)).toEqual(likely)
        for (const one of score.top) expect(one.logprob).toBeCloseTo(expected[one.token]!, 4)
      }),
      { numRuns: 300 },
    )
  })
})

describe("a choice of tokens", () => {
  const even = {
    allows: (token: number) => token % 2 === 0,
    mask: (logits: Float32Array) => {
      for (let token = 1; token < logits.length; token += 2) logits[token] = -Infinity
    },
  }

  it("is kept, in the proportions that the allowed tokens have among themselves", () => {
    const logits = Float32Array.from([1, 6, 2, 6, 3], Math.log)
    const sampler = new LogitSampler({ ...plain, seed: 4 }, new Rows(5))
    const counts = [0, 0, 0, 0, 0]
    for (let draw = 0; draw < 3000; draw++) counts[sampler.draw(logits, even)]!++
    expect([counts[1], counts[3]]).toEqual([0, 0])
    for (const [token, share] of [
      [0, 1 / 6],
      [2, 2 / 6],
      [4, 3 / 6],
    ] as const)
      expect(Math.abs(counts[token]! / 3000 - share)).toBeLessThan(0.04)
  })

  it("gives equal tokens for equal seeds, and none if no allowed token is possible", () => {
    const logits = Float32Array.from({ length: 300 }, (_, at) => Math.sin(at))
    const drawn = () => {
      const sampler = new LogitSampler({ ...plain, topP: 0.8, seed: 7 }, new Rows(300))
      return Array.from({ length: 20 }, () => sampler.draw(logits, even))
    }
    expect(drawn()).toEqual(drawn())
    const odd = Float32Array.of(-Infinity, 1, -Infinity, 2)
    expect(new LogitSampler(plain, new Rows(4)).draw(odd, even)).toBe(-1)
  })

  it("is asked for the mask only if it refuses", () => {
    let masks = 0
    const counting = {
      ...even,
      mask: (logits: Float32Array) => {
        masks++
        even.mask(logits)
      },
    }
    const greedy = new LogitSampler({ ...plain, temperature: 0 }, new Rows(3))
    expect(greedy.draw(Float32Array.of(0, 1, 2), counting)).toBe(2)
    expect(masks).toBe(0)
    expect(greedy.draw(Float32Array.of(0, 3, 2), counting)).toBe(2)
    expect(masks).toBe(1)
  })
})

it("biases are added to the logits, and -Infinity excludes a token", () => {
  const logits = Float32Array.of(1, 0, 0.5)
  const draw = (biases: ReadonlyArray<readonly [number, number]>) =>
    new LogitSampler({ ...plain, temperature: 0 }, new Rows(3), biases).draw(logits)
  expect(draw([[1, 1.5]])).toBe(1)
  expect(draw([[0, -Infinity]])).toBe(2)
  expect(draw([[0, -0.6]])).toBe(2)
})
