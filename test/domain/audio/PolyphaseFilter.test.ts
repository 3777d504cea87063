// Output samples that are computed four at a time have the bits of those that are computed alone.
import * as fc from "fast-check"
import { expect, it } from "vitest"
import { PolyphaseFilter } from "#domain/audio/PolyphaseFilter.ts"

it("a row of output samples is that of each", () => {
  const rates = fc.constantFrom(8_000, 11_025, 16_000, 22_050, 24_000, 44_100)
  fc.assert(
    fc.property(
      rates,
      rates,
      fc.array(fc.integer({ min: -32_768, max: 32_767 }), { maxLength: 300 }),
      fc.integer({ min: -60, max: 5_000 }),
      fc.nat(40),
      (from, to, samples, start, count) => {
        const filter = new PolyphaseFilter(from, to, { halfCrossings: 16, beta: 8, rollOff: 0.92 })
        const n = Math.max(0, Math.floor((start * to) / from) - 5)
        const out = new Float64Array(count)
        filter.fill(n, Float64Array.from(samples), start, out)
        const each = Array.from({ length: count }, (_, i) =>
          filter.sampleAt(n + i, Int16Array.from(samples), start),
        )
        expect([...out]).toEqual(each)
      },
    ),
    { numRuns: 100 },
  )
})
