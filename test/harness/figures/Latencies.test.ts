// Histograms of durations: precise to three digits, and they add up.
import fc from "fast-check"
import { expect, it } from "vitest"
import { Latencies } from "#harness/figures/Latencies.ts"
import { percentile } from "#harness/figures/Statistics.ts"

const durations = fc.array(fc.double({ min: 0.001, max: 100_000, noNaN: true }), {
  minLength: 1,
  maxLength: 200,
})

const filled = (values: ReadonlyArray<number>): Latencies => {
  const latencies = new Latencies()
  for (const value of values) latencies.record(value)
  return latencies
}

it("gives the nearest rank to three digits", () => {
  fc.assert(
    fc.property(durations, fc.constantFrom(50, 90, 95, 99, 100), (values, at) => {
      const exact = percentile(values, at / 100)
      const shown = filled(values).at(at)
      expect(Math.abs(shown - exact)).toBeLessThanOrEqual(0.002 * exact + 0.001)
    }),
  )
})

it("two histograms together are that of all values, also after encoding", () => {
  fc.assert(
    fc.property(durations, durations, (a, b) => {
      const sum = filled(a)
      sum.add(Latencies.decoded(filled(b).encoded))
      const all = filled([...a, ...b])
      expect(sum.count).toBe(all.count)
      // The encoded form keeps the highest value to three digits only.
      for (const at of [1, 25, 50, 90, 99, 100]) expect(sum.at(at) / all.at(at)).toBeCloseTo(1, 2)
    }),
    { numRuns: 30 },
  )
})

it("ignores NaN and bounds what is too small or too large", () => {
  const latencies = filled([Number.NaN, -1, 0, 1e12])
  expect(latencies.count).toBe(3)
  expect(latencies.max).toBeLessThan(3_700_000)
  expect(new Latencies().mean).toBeNaN()
})
