// Every step: each running reply gets its token, prompts share what fits, nobody is forgotten.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { planStep, type Work } from "#engines/llama/StepPlan.ts"

const reply = (id: number): Work => ({ id, order: id, pending: 1, replying: true, pauseAfter: undefined })
const prompt = (id: number, pending: number, order = id, pauseAfter?: number): Work => ({
  id,
  order,
  pending,
  replying: false,
  pauseAfter,
})
const limits = { promptTokens: 100, batchTokens: 512, oldestFirst: false }

it("replies go on beside a long prompt", () => {
  expect(planStep([prompt(1, 1000), reply(2), reply(0)], limits)).toEqual([
    { id: 0, take: 1 },
    { id: 1, take: 100 },
    { id: 2, take: 1 },
  ])
})

it("the shortest prompt goes first, every so often the oldest", () => {
  const works = [prompt(0, 1000, 0), prompt(1, 20, 1)]
  expect(planStep(works, { ...limits, promptTokens: 20 })).toEqual([{ id: 1, take: 20 }])
  expect(planStep(works, { ...limits, promptTokens: 20, oldestFirst: true })).toEqual([{ id: 0, take: 20 }])
})

it("stops at a checkpoint and leaves no single token for the end", () => {
  expect(planStep([prompt(0, 50, 0, 30)], limits)).toEqual([{ id: 0, take: 30 }])
  expect(planStep([prompt(0, 101)], limits)).toEqual([{ id: 0, take: 99 }])
})

it("is within its limits, in order, and moves something forward", () => {
  const work = fc.record({
    order: fc.nat(100),
    pending: fc.integer({ min: 1, max: 300 }),
    replying: fc.boolean(),
    pause: fc.option(fc.integer({ min: 1, max: 300 }), { nil: undefined }),
  })
  const bounds = fc.record({
    promptTokens: fc.integer({ min: 1, max: 200 }),
    batchTokens: fc.integer({ min: 16, max: 256 }),
    oldestFirst: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(work, { minLength: 1, maxLength: 8 }), bounds, (drawn, limit) => {
      const works = drawn.map(
        ({ pause, ...rest }, id): Work =>
          rest.replying
            ? { ...rest, id, pending: 1, pauseAfter: undefined }
            : { ...rest, id, pauseAfter: pause },
      )
      const shares = planStep(works, limit)
      const total = shares.reduce((sum, { take }) => sum + take, 0)
      expect(shares.length).toBeGreaterThan(0)
      expect(total).toBeLessThanOrEqual(limit.batchTokens)
      expect(shares.map(({ id }) => id)).toEqual([...shares.map(({ id }) => id)].sort((a, b) => a - b))
      for (const { id, take } of shares) {
        const { pending, pauseAfter } = works[id]!
        expect(take).toBeGreaterThan(0)
        expect(take).toBeLessThanOrEqual(Math.min(pending, pauseAfter ?? pending))
      }
      for (const { id, replying } of works)
        if (replying) expect(shares.some((share) => share.id === id)).toBe(true)
    }),
  )
})
