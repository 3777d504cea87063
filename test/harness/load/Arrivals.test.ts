// Poisson arrivals.
import fc from "fast-check"
import { expect, it } from "vitest"
import { poissonArrivals } from "#harness/load/Arrivals.ts"

const rates = fc.double({ min: 0.1, max: 500, noNaN: true })

it("ascend, end in time, and are the same for the same seed", () => {
  fc.assert(
    fc.property(rates, fc.nat(), (rate, seed) => {
      const untilMs = 50_000 / rate
      const moments = [...poissonArrivals(rate, untilMs, seed)]
      expect(moments).toEqual([...poissonArrivals(rate, untilMs, seed)])
      for (const [at, moment] of moments.entries()) {
        expect(moment).toBeGreaterThanOrEqual(moments[at - 1] ?? 0)
        expect(moment).toBeLessThan(untilMs)
      }
    }),
  )
})

it("have the rate and the spread of a Poisson process", () => {
  fc.assert(
    fc.property(rates, fc.nat(), (rate, seed) => {
      const expected = 4_000
      const moments = [...poissonArrivals(rate, (1000 * expected) / rate, seed)]
      // Six standard deviations.
      expect(Math.abs(moments.length - expected)).toBeLessThan(6 * Math.sqrt(expected))
      const gaps = moments.map((moment, at) => moment - (moments[at - 1] ?? 0))
      const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length
      const deviation = Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length)
      // Exponential gaps deviate by their mean; even ones by 0.
      expect(deviation / mean).toBeGreaterThan(0.85)
      expect(deviation / mean).toBeLessThan(1.15)
      // Memoryless: a share of 1/e of the gaps is longer than the mean.
      const longer = gaps.filter((gap) => gap > mean).length / gaps.length
      expect(Math.abs(longer - 1 / Math.E)).toBeLessThan(0.05)
    }),
    { numRuns: 30 },
  )
})
