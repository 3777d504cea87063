// A cost stands while it is measured, and what was learned beyond the usual one is forgotten while it is not.
import fc from "fast-check"
import { expect, it } from "vitest"
import { halvesMs, LearnedCost, standsMs } from "#domain/queues/LearnedCost.ts"

const cost = fc.double({ min: 0, max: 1e6, noNaN: true })
const ms = fc.nat(600_000)

it("is what was learned last as long as that stands, then falls towards the usual cost, and never below it", () => {
  fc.assert(
    fc.property(cost, cost, ms, ms, ms, (usual, learned, atMs, firstMs, secondMs) => {
      const known = new LearnedCost(usual)
      expect(known.at(atMs)).toBe(undefined)
      known.learn(learned, atMs)
      expect(known.at(atMs + Math.min(firstMs, standsMs))).toBe(learned)
      const [soon, late] = [Math.min(firstMs, secondMs), Math.max(firstMs, secondMs)]
      const [earlier, later] = [known.at(atMs + soon)!, known.at(atMs + late)!]
      expect(later).toBeLessThanOrEqual(earlier)
      expect(later).toBeGreaterThanOrEqual(Math.min(usual, learned))
      // What is cheaper than usual is no bad minute.
      if (learned <= usual) expect(later).toBe(learned)
    }),
  )
})

it("halves in each half-life, and what is learned then stands again", () => {
  const known = new LearnedCost(100, 100)
  known.learn(900, 0)
  expect(known.at(standsMs + halvesMs)).toBeCloseTo(500)
  expect(known.at(standsMs + 3 * halvesMs)).toBeCloseTo(200)
  known.learn(700, 60_000)
  expect(known.at(60_000 + standsMs)).toBe(700)
})

it("takes the lowest measurement for the usual cost: one at a load may be of a word, whose cost is high", () => {
  const known = new LearnedCost(0.35, 0.35)
  known.learn(0.2, 0)
  known.learn(0.6, 1_000)
  expect(known.at(1_000 + standsMs + 20 * halvesMs)).toBeCloseTo(0.2)
})
