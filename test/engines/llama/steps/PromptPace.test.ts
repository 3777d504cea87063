// The size of a prompt's calls: large alone, a compromise beside running replies.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { CostCurve } from "#engines/llama/steps/CostCurve.ts"
import { evenTake, PromptPace } from "#engines/llama/steps/PromptPace.ts"

const filled = (cost: (tokens: number) => number, largest = 512): CostCurve => {
  const curve = new CostCurve(largest)
  for (const size of curve.sizes) curve.observe(size, cost(size))
  return curve
}

const paceOf = (cost: (tokens: number) => number, share = 2 / 3) =>
  new PromptPace({ share, costs: filled(cost) })

/** Measured: 0.2 B parameters, Q8_0, one thread, logits of one token. */
const small: Readonly<Record<number, number>> = {
  1: 9.5,
  2: 22,
  4: 29,
  8: 33,
  16: 38,
  32: 68,
  64: 119,
  128: 218,
  256: 417,
  512: 918,
}

it("alone, calls end within the time of a cancel where a token costs the same in them", () => {
  expect(paceOf((tokens) => tokens * 0.5).nextAlone()).toBe(192)
  expect(paceOf((tokens) => tokens * 0.01).nextAlone()).toBe(512)
})

it("alone, calls are longer than a cancel may take only where shorter ones cost more than 5 %", () => {
  const pace = paceOf((tokens) => small[tokens]!)
  const tokens = pace.nextAlone()
  expect(tokens).toBeGreaterThanOrEqual(112)
  expect(tokens).toBeLessThanOrEqual(160)
})

it("alone, sizes that were never measured are tried, while a call of them is short", () => {
  const costs = new CostCurve(512)
  costs.observe(8, 80)
  const pace = new PromptPace({ share: 2 / 3, costs })
  const tried: Array<number> = []
  for (let call = 0; call < 8; call++) {
    const tokens = pace.nextAlone()
    tried.push(tokens)
    costs.observe(tokens, 60 + tokens * 5)
  }
  expect(tried.slice(0, 3)).toEqual([16, 32, 64])
  expect(Math.max(...tried)).toBe(128)
})

it("beside replies, the stated gaps and first token where a token costs the same in small calls", () => {
  for (const share of [0.5, 2 / 3, 0.8]) {
    const cost = (tokens: number) => tokens * 0.5
    const repliesMs = 20
    const tokens = paceOf(cost, share).nextBeside({ prompts: 1, replies: 4, repliesMs })
    const round = repliesMs + cost(tokens)
    // Within the distance of two sizes.
    expect(round / repliesMs / (1 / (1 - share))).toBeCloseTo(1, 0)
    expect(Math.abs(round / repliesMs - 1 / (1 - share))).toBeLessThan(0.2 / (1 - share))
    expect(Math.abs(round / cost(tokens) - 1 / share)).toBeLessThan(0.2 / share)
  }
})

it("beside replies, where small calls are expensive both goals are missed by the same factor", () => {
  const tokens = paceOf((size) => small[size]!).nextBeside({ prompts: 1, replies: 4, repliesMs: 38 })
  // Gaps of 3.3 times and a first token after 1.7 times: no size has 3 and 1.5.
  expect(tokens).toBe(48)
})

it("a larger share takes larger calls, and more prompts than replies do too", () => {
  const sizes = [0.3, 0.5, 0.8].map((share) =>
    paceOf((size) => small[size]!, share).nextBeside({ prompts: 1, replies: 1, repliesMs: 38 }),
  )
  expect(sizes).toEqual([...sizes].sort((a, b) => a - b))
  expect(new Set(sizes).size).toBe(3)
  const pace = paceOf((size) => small[size]!)
  const one = pace.nextBeside({ prompts: 1, replies: 1, repliesMs: 38 })
  expect(pace.nextBeside({ prompts: 7, replies: 1, repliesMs: 38 })).toBeGreaterThan(one)
})

it("calls of one prompt have about as many tokens, and none is left over", () => {
  expect(evenTake(100, 96)).toBe(100)
  expect(evenTake(1000, 512)).toBe(504)
  expect(evenTake(5, 64)).toBe(5)
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5000 }), fc.integer({ min: 8, max: 512 }), (prompt, size) => {
      const takes: Array<number> = []
      for (let pending = prompt; pending > 0; ) {
        const take = evenTake(pending, size)
        expect(take).toBeGreaterThan(0)
        expect(take).toBeLessThanOrEqual(pending)
        takes.push(take)
        pending -= take
      }
      expect(Math.max(...takes)).toBeLessThanOrEqual(Math.ceil(size * 1.15) + 8)
      expect(takes.length).toBeLessThanOrEqual(Math.ceil(prompt / size) + 1)
    }),
  )
})

it("whatever was measured, a call has between 1 token and the batch", () => {
  const calls = fc.array(
    fc.tuple(fc.integer({ min: 1, max: 600 }), fc.double({ min: 0, max: 5000, noNaN: true })),
  )
  const beside = fc.record({
    prompts: fc.integer({ min: 1, max: 300 }),
    replies: fc.integer({ min: 1, max: 300 }),
    repliesMs: fc.double({ min: 0.01, max: 10_000, noNaN: true }),
  })
  fc.assert(
    fc.property(calls, beside, fc.integer({ min: 8, max: 600 }), (observed, others, largest) => {
      const costs = new CostCurve(largest)
      for (const [size, elapsedMs] of observed) costs.observe(Math.min(size, largest), elapsedMs)
      const pace = new PromptPace({ share: 2 / 3, costs })
      for (const tokens of [pace.nextAlone(), pace.nextBeside(others)]) {
        expect(Number.isInteger(tokens)).toBe(true)
        expect(tokens).toBeGreaterThanOrEqual(1)
        expect(tokens).toBeLessThanOrEqual(largest)
      }
    }),
  )
})
