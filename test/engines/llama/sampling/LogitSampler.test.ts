// The sampler against a plain one: exponentials in double precision, sorted, cut, and drawn by the same random number.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { LogitSampler, leastReaching } from "#engines/llama/sampling/LogitSampler.ts"
import { Rows } from "#engines/llama/sampling/Rows.ts"
import type { Sampling } from "#engines/protocol/Engine.ts"
import { seededRandom } from "#engines/shared/listening/Sampling.ts"
import { runs } from "../../../support/groups/Runs.ts"

const plain: Sampling = { temperature: 1, topP: 1, topK: 0, frequencyPenalty: 0, presencePenalty: 0, seed: 0 }

const sumOf = (values: Iterable<number>): number => {
  let sum = 0
  for (const value of values) sum += value
  return sum
}

/** The least weight that top_k and top_p keep; all as large are kept. */
const plainLeast = (weights: Float64Array, { topK, topP }: Sampling): number => {
  const sorted = weights.slice().sort().reverse()
  let least = topK > 0 && topK < sorted.length ? sorted[topK - 1]! : 0
  if (topP >= 1) return least
  const kept = sorted.filter((weight) => weight >= least)
  const goal = topP * sumOf(kept)
  let sum = 0
  for (const weight of kept) {
    least = weight
    sum += weight
    if (sum >= goal) break
  }
  return least
}

/** Each token's weight at the temperature, 0 for those that are left out. */
const plainWeights = (logits: Iterable<number>, sampling: Sampling) => {
  const numbers = Float64Array.from(logits).map((logit) => (Number.isNaN(logit) ? -Infinity : logit))
  const largest = numbers.reduce((a, b) => Math.max(a, b), -Infinity)
  const weights = numbers.map((logit) => Math.exp(logit - largest))
  const least = plainLeast(weights, sampling)
  const heated = numbers.map((logit, at) =>
    weights[at]! >= least ? Math.exp((logit - largest) / sampling.temperature) : 0,
  )
  return { least, weights, heated }
}

/** Whether `token` is where the running sum of `weights` passes `share` of their total, give or take rounding. */
const passes = (weights: Float64Array, token: number, share: number): boolean => {
  const total = sumOf(weights)
  const before = sumOf(weights.subarray(0, token))
  const slack = 1e-4 * total
  return before - slack <= share * total && share * total <= before + weights[token]! + slack
}

const logit = fc.float({ min: -60, max: 30, noNaN: true })
const row = fc.oneof(
  fc.array(logit, { minLength: 1, maxLength: 700 }),
  // Many equal values.
  fc.array(fc.constantFrom(-1, 0, 0.5, 2, 9), { minLength: 1, maxLength: 700 }),
)
const sampling = fc.record({
  temperature: fc.double({ min: 0.05, max: 2, noNaN: true }),
  topP: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
  topK: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 900 })),
  seed: fc.nat(),
})

describe("one draw", () => {
  it("is where the same random number falls in the plain distribution", () => {
    fc.assert(
      fc.property(row, sampling, (given, chosen) => {
        const logits = given.map(Math.fround)
        const asked = { ...plain, ...chosen }
        const sampler = new LogitSampler(asked, new Rows(logits.length))
        const token = sampler.draw(Float32Array.from(logits))
        const { least, weights, heated } = plainWeights(logits, asked)
        // Where the cut falls next to a rounding error, either side is right.
        const kept = weights.filter((weight) => weight >= least)
        const without = sumOf(kept.filter((weight) => weight > least))
        const goal =
          asked.topP *
          sumOf(asked.topK > 0 ? weights.slice().sort().reverse().subarray(0, asked.topK) : weights)
        fc.pre(
          asked.topP >= 1 ||
            (Math.abs(without - goal) > 1e-4 * goal && Math.abs(sumOf(kept) - goal) > 1e-4 * goal),
        )
        fc.pre(weights.every((weight) => weight === least || Math.abs(weight / least - 1) > 1e-4))
        expect(passes(heated, token, seededRandom(asked.seed)())).toBe(true)
      }),
      { numRuns: 300 },
    )
  })

  it("at temperature 0 is the first of the largest logits", () => {
    fc.assert(
      fc.property(row, (given) => {
        const logits = Float32Array.from(given)
        const sampler = new LogitSampler({ ...plain, temperature: 0, topP: 0.9 }, new Rows(logits.length))
        expect(sampler.draw(logits)).toBe(logits.indexOf(Math.max(...logits)))
      }),
    )
  })

  it("passes over what is no number and what is forbidden, and draws nothing where there is nothing", () => {
    const draw = (...logits: ReadonlyArray<number>) =>
      new LogitSampler(plain, new Rows(logits.length)).draw(Float32Array.from(logits))
    expect(draw(Number.NaN, -Infinity, 3, Number.NaN)).toBe(2)
    expect(draw(Number.NaN, Number.NaN)).toBe(-1)
    expect(draw(-Infinity)).toBe(-1)
    expect(draw(0, Infinity)).toBe(-1)
  })

  it("with top_p 0 or top_k 1 is the largest", () => {
    const logits = Float32Array.from({ length: 5000 }, (_, at) => (at === 4321 ? 9 : Math.sin(at) * 4))
    for (const cut of [{ topP: 0 }, { topK: 1 }, { topP: 0, topK: 1 }])
      for (let seed = 0; seed < 20; seed++)
        expect(new LogitSampler({ ...plain, ...cut, seed }, new Rows(5000)).draw(logits)).toBe(4321)
  })
})

describe("a real vocabulary", () => {
  const size = 151_936
  const rows = new Rows(size)
  const random = seededRandom(5)
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())

  for (const [deviation, name] of (
    [
      [3, "as in trained models"],
      [0, "all equal"],
      [0.001, "all but equal"],
      [0.5, "flat"],
      [12, "confident"],
    ] as const
  ).slice(0, runs(2, 5)))
    it(`${name}: the same cut as the plain sampler's, step after step`, () => {
      for (const asked of [{ topP: 0.9 }, { topP: 0.3 }, { topK: 40 }, { topK: 20_000, topP: 0.95 }]) {
        const sampling = { ...plain, temperature: 0.7, ...asked, seed: 3 }
        const sampler = new LogitSampler(sampling, rows)
        const numbers = seededRandom(3)
        for (let step = 0; step < 2; step++) {
          const logits = new Float32Array(size).map(() => normal() * deviation)
          const { heated } = plainWeights(logits, sampling)
          const token = sampler.draw(logits)
          expect(passes(heated, token, numbers())).toBe(true)
        }
      }
    })

  it("draws in proportion: 1,500 draws of five tokens", () => {
    const logits = new Float32Array(size).fill(-Infinity)
    const tokens = [0, 255, 256, 70_000, size - 1]
    for (const [at, token] of tokens.entries()) logits[token] = Math.log(at + 1)
    const sampler = new LogitSampler({ ...plain, seed: 9 }, rows)
    const counts = new Map(tokens.map((token) => [token, 0]))
    const draws = 1500
    for (let draw = 0; draw < draws; draw++) {
      const token = sampler.draw(logits)
      counts.set(token, counts.get(token)! + 1)
    }
    for (const [at, token] of tokens.entries())
      expect(Math.abs(counts.get(token)! / draws - (at + 1) / 15)).toBeLessThan(0.05)
  })
})

it("penalties lower the logits of the tokens drawn so far, by how often and whether", () => {
  // Two tokens; the second is drawn once the first has been drawn so often that its logit is below.
  const logits = Float32Array.of(1, 0)
  const drawn = (penalties: Partial<Sampling>, count: number) => {
    const sampler = new LogitSampler({ ...plain, temperature: 0, ...penalties }, new Rows(2))
    return Array.from({ length: count }, () => sampler.draw(logits))
  }
  expect(drawn({}, 4)).toEqual([0, 0, 0, 0])
  // 1, 0.7, 0.4, 0.1, -0.2
  expect(drawn({ frequencyPenalty: 0.3 }, 6)).toEqual([0, 0, 0, 0, 1, 0])
  expect(drawn({ presencePenalty: 1.5 }, 4)).toEqual([0, 1, 0, 0])
  expect(drawn({ presencePenalty: -1.5 }, 3)).toEqual([0, 0, 0])
})

it("equal seeds draw equal tokens", () => {
  const rows = new Rows(1000)
  const logits = Float32Array.from({ length: 1000 }, (_, at) => Math.cos(at))
  const drawn = (seed: number) => {
    const sampler = new LogitSampler({ ...plain, topP: 0.9, seed }, rows)
    return Array.from({ length: 20 }, () => sampler.draw(logits)).join()
  }
  expect(drawn(1)).toBe(drawn(1))
  expect(drawn(1)).not.toBe(drawn(2))
})

it("the least weight that reaches a goal is the one that sorting finds", () => {
  const weights = fc.array(
    fc.oneof(fc.constantFrom(0.25, 0.5, 1), fc.float({ min: 0, max: 1, noNaN: true })),
    {
      minLength: 1,
    },
  )
  fc.assert(
    fc.property(weights, fc.double({ min: 0.01, max: 0.99, noNaN: true }), (given, share) => {
      const sorted = Float32Array.from(given).sort().reverse()
      const count = Math.ceil(share * sorted.length)
      expect(leastReaching(Float32Array.from(given), count, "count")).toBe(sorted[count - 1])
      const goal = share * sumOf(sorted)
      let sum = 0
      const least = sorted.find((weight) => {
        sum += weight
        return sum >= goal
      })
      if (goal > 0) expect(leastReaching(Float32Array.from(given), goal, "sum")).toBeCloseTo(least!, 6)
    }),
  )
})

describe("a choice of tokens", () => {
  const only = (allowed: number) => ({
    allows: (token: number) => token === allowed,
    mask: (logits: Float32Array) => {
      for (let token = 0; token < logits.length; token++) if (token !== allowed) logits[token] = -Infinity
    },
  })

  it("is drawn from when the row prefers another token", () => {
    const sampler = new LogitSampler({ ...plain, temperature: 0 }, new Rows(8))
    expect(sampler.draw(Float32Array.of(0, 9, 1, 2, 3, 4, 5, 6), only(2))).toBe(2)
  })

  it("wins over a bias that excludes everything that it allows", () => {
    const sampler = new LogitSampler({ ...plain, temperature: 0 }, new Rows(8), [[2, -Infinity]])
    expect(sampler.draw(Float32Array.of(0, 9, 1, 2, 3, 4, 5, 6), only(2))).toBe(2)
  })
})
