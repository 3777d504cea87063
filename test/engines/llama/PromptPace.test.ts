// The size of a prompt slice follows what steps of that size took.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { PromptPace } from "#engines/llama/PromptPace.ts"

/** Lets the pace run on a machine where a step of n tokens takes `cost(n)` ms; the sizes it chose. */
const run = (pace: PromptPace, slices: number, cost: (tokens: number) => number): ReadonlyArray<number> =>
  Array.from({ length: slices }, () => {
    const tokens = pace.nextSliceTokens()
    pace.observe(tokens, cost(tokens))
    return tokens
  })

const most = (sizes: ReadonlyArray<number>) => [...sizes].sort((a, b) => a - b)[Math.floor(sizes.length / 2)]!

it("starts small, grows to what fits, and stays within the batch", () => {
  const pace = new PromptPace({ sliceMs: 50, maxTokens: 512 })
  expect(pace.nextSliceTokens()).toBeLessThan(100)
  expect(most(run(pace, 40, (n) => n * 0.5))).toBe(64)
  expect(most(run(pace, 200, (n) => n * 0.001))).toBe(512)
})

it("a slow machine gets single tokens", () => {
  expect(most(run(new PromptPace({ sliceMs: 30, maxTokens: 512 }), 60, (n) => n * 400))).toBe(1)
})

it("slow steps do not leave it with tiny slices for good", () => {
  const pace = new PromptPace({ sliceMs: 30, maxTokens: 512 })
  run(pace, 5, () => 3000)
  // A step has a price of its own.
  expect(most(run(pace, 400, (n) => 20 + n * 0.1).slice(300))).toBeGreaterThanOrEqual(64)
})

it("stays above a cliff, at the price of a somewhat longer slice", () => {
  const pace = new PromptPace({ sliceMs: 30, maxTokens: 512 })
  run(pace, 40, (n) => n * 0.4)
  expect(most(run(pace, 100, (n) => (n < 64 ? n * 5 : n * 0.6)))).toBe(64)
})

it("whatever is measured, the next slice is between 1 and the batch", () => {
  const steps = fc.array(
    fc.tuple(fc.integer({ min: 1, max: 600 }), fc.double({ min: 0, max: 5000, noNaN: true })),
  )
  fc.assert(
    fc.property(steps, fc.integer({ min: 16, max: 600 }), (observed, maxTokens) => {
      const pace = new PromptPace({ sliceMs: 30, maxTokens })
      for (const [tokens, elapsedMs] of observed) {
        pace.observe(tokens, elapsedMs)
        const next = pace.nextSliceTokens()
        expect(Number.isInteger(next)).toBe(true)
        expect(next).toBeGreaterThanOrEqual(1)
        expect(next).toBeLessThanOrEqual(maxTokens)
      }
    }),
  )
})

it("beside running replies a slice takes a few of their steps, and alone all of its time", () => {
  const pace = new PromptPace({ sliceMs: 30, maxTokens: 512 })
  const cost = (tokens: number) => 1 + tokens * 0.25
  const beside = (slices: number) =>
    Array.from({ length: slices }, () => {
      const tokens = pace.nextSliceTokens(true)
      pace.observe(tokens, cost(tokens))
      return tokens
    })
  expect(most(run(pace, 40, cost))).toBe(64)
  for (let i = 0; i < 20; i++) pace.observeReplies(1)
  expect(most(beside(40))).toBe(8)
  expect(most(run(pace, 40, cost))).toBe(64)
  for (let i = 0; i < 20; i++) pace.observeReplies(40)
  expect(most(beside(40))).toBe(64)
})
