// 24 kHz to 16 kHz: pieces of any size give the same output, tones below 7 kHz pass unchanged and without delay, tones
// limit are gone.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Resampler } from "#audio/Resampler.ts"

const tone = (hz: number, seconds: number, rateHz: number): Int16Array =>
  new Int16Array(seconds * rateHz).map((_, i) =>
    Math.round(16_000 * Math.sin((2 * Math.PI * hz * i) / rateHz)),
  )
const power = (samples: Int16Array): number =>
  samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length
const db = (ratio: number): number => 10 * Math.log10(ratio)

describe("a tone", () => {
  it.each([100, 1_000, 3_000, 5_000, 6_000])("of %s Hz passes, where it was", (hz) => {
    const out = new Resampler(24_000, 16_000).push(tone(hz, 1, 24_000)).subarray(200, 15_000)
    const wanted = tone(hz, 1, 16_000).subarray(200, 15_000)
    const error = out.map((sample, i) => sample - wanted[i]!)
    expect(db(power(error) / power(wanted))).toBeLessThan(-55)
  })

  it.each([9_000, 10_000, 11_500])("of %s Hz is gone", (hz) => {
    const out = new Resampler(24_000, 16_000).push(tone(hz, 1, 24_000)).subarray(200, 15_000)
    expect(db(power(out) / power(tone(1_000, 1, 16_000)))).toBeLessThan(-60)
  })
})

it("comes out the same in pieces of any size, two samples for three", () => {
  const samples = new Int16Array(24_000).map((_, i) => ((i * 7_919) % 40_001) - 20_000)
  const whole = new Resampler(24_000, 16_000).push(samples)
  expect(whole.length).toBeGreaterThan(15_950)
  expect(whole.length).toBeLessThanOrEqual(16_000)
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 3_000 }), { minLength: 1, maxLength: 6 }), (sizes) => {
      const downsampler = new Resampler(24_000, 16_000)
      const out: Array<number> = []
      for (let at = 0, i = 0; at < samples.length; i++) {
        const size = sizes[i % sizes.length]!
        out.push(...downsampler.push(samples.subarray(at, at + size)))
        at += size
      }
      expect(Int16Array.from(out)).toEqual(whole)
    }),
    { numRuns: 30 },
  )
})

it("does not wrap around at full scale", () => {
  const square = new Int16Array(2_400).map((_, i) => (i % 48 < 24 ? 32_767 : -32_768))
  const out = new Resampler(24_000, 16_000).push(square)
  for (let i = 100; i < 1_500; i++) {
    const inside = (i * 1.5) % 24
    if (inside > 6 && inside < 18)
      expect(Math.sign(out[i]!)).toBe(Math.floor((i * 1.5) / 24) % 2 === 0 ? 1 : -1)
  }
})
