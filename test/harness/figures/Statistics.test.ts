// The statistics of repeated readings.
import fc from "fast-check"
import { expect, it } from "vitest"
import { median, percentile, spreadOf } from "#harness/figures/Statistics.ts"

const readings = fc.array(fc.double({ min: 0, max: 1e9, noNaN: true }), { minLength: 1, maxLength: 50 })

it("takes the middle, or the mean of the two middle ones", () => {
  expect(median([3, 1, 2])).toBe(2)
  expect(median([4, 1, 3, 2])).toBe(2.5)
  expect(median([])).toBeNaN()
})

it("takes the nearest rank", () => {
  const hundred = Array.from({ length: 100 }, (_, at) => 100 - at)
  expect(percentile(hundred, 0.5)).toBe(50)
  expect(percentile(hundred, 0.99)).toBe(99)
  expect(percentile(hundred, 1)).toBe(100)
  expect(percentile([7], 0.01)).toBe(7)
  expect(percentile([], 0.5)).toBeNaN()
})

it("keeps median and percentiles between the lowest and the highest reading, in any order", () => {
  fc.assert(
    fc.property(readings, fc.double({ min: 0, max: 1, noNaN: true }), (values, share) => {
      const { high, low, median: middle } = spreadOf(values)
      expect(middle).toBeGreaterThanOrEqual(low)
      expect(middle).toBeLessThanOrEqual(high)
      expect(values).toContain(percentile(values, share))
      expect(spreadOf(values.toReversed())).toEqual(spreadOf(values))
    }),
  )
})
