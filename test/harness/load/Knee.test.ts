// The search for the highest load that holds an objective.
import fc from "fast-check"
import { expect, it } from "vitest"
import { findKnee, type KneeLimits } from "#harness/load/Knee.ts"

const rates: KneeLimits = { first: 1, most: 1_000, precision: 1.1, trials: 40, whole: false }

it("ends around the capacity of a server that holds below it and not above", async () => {
  await fc.assert(
    fc.asyncProperty(fc.double({ min: 0.05, max: 900, noNaN: true }), async (capacity) => {
      const { broke, held } = await findKnee(rates, async (load) => load <= capacity)
      expect(held).toBeLessThanOrEqual(capacity)
      expect(broke).toBeGreaterThan(capacity)
      expect(broke! / held!).toBeLessThanOrEqual(rates.precision)
    }),
  )
})

it("finds the exact number of clients of small servers", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 1, max: 20 }),
      async (capacity, first) => {
        const limits = { ...rates, first, precision: 1.0001, whole: true }
        const { broke, held } = await findKnee(limits, async (load) => load <= capacity)
        expect([held, broke]).toEqual([capacity, capacity + 1])
      },
    ),
  )
})

it("says that all loads held, or none", async () => {
  expect(await findKnee(rates, async () => true)).toMatchObject({ held: 1_000, broke: undefined })
  expect(await findKnee(rates, async () => false)).toMatchObject({ held: undefined })
  expect(await findKnee({ ...rates, whole: true }, async () => false)).toEqual({
    held: undefined,
    broke: 1,
    trials: 1,
  })
})

it("tries no more often than allowed, whatever the answers", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.boolean(), { minLength: 60, maxLength: 60 }),
      fc.integer({ min: 1, max: 20 }),
      async (answers, trials) => {
        let at = 0
        const knee = await findKnee({ ...rates, trials }, async () => answers[at++]!)
        expect(knee.trials).toBeLessThanOrEqual(trials)
        if (knee.held !== undefined && knee.broke !== undefined) expect(knee.held).toBeLessThan(knee.broke)
      },
    ),
  )
})
