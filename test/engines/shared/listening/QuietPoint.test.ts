import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { firstPiece } from "#engines/shared/listening/QuietPoint.ts"

const rateHz = 16_000
const options = { maxSamples: 8 * rateHz, searchSamples: 5 * rateHz, rateHz, last: true }

/** A tone with a pause of 200 ms. */
const toneWithPause = (seconds: number, pauseAt: number) =>
  Float32Array.from({ length: seconds * rateHz }, (_, i) => {
    const t = i / rateHz
    return t >= pauseAt && t < pauseAt + 0.2 ? 0 : Math.sin(i / 9)
  })

describe("firstPiece", () => {
  it("takes everything that fits", () => {
    expect(firstPiece(new Float32Array(8 * rateHz).fill(1), options)).toBe(8 * rateHz)
    expect(firstPiece(new Float32Array(0), options)).toBe(0)
  })

  it("cuts inside a pause", () => {
    for (const pauseAt of [3.1, 5, 7.7]) {
      const cut = firstPiece(toneWithPause(20, pauseAt), options) / rateHz
      expect(cut).toBeGreaterThan(pauseAt)
      expect(cut).toBeLessThan(pauseAt + 0.2)
    }
  })

  it("does not look further back than it may", () => {
    expect(firstPiece(toneWithPause(20, 1), options)).toBeGreaterThan(3 * rateHz)
  })

  it("cuts a window that fits when audio follows it", () => {
    const cut = firstPiece(toneWithPause(8, 6), { ...options, last: false }) / rateHz
    expect(cut).toBeGreaterThan(6)
    expect(cut).toBeLessThan(6.2)
  })

  it("pieces cover any audio, and none is longer than allowed", () => {
    const audio = fc.array(fc.constantFrom(0, 0.2, 1), { maxLength: 40 })
    fc.assert(
      fc.property(audio, fc.integer({ min: 1, max: 5000 }), (levels, maxSamples) => {
        const samples = Float32Array.from(
          levels.flatMap((level) => Array.from({ length: 500 }, (_, i) => level * Math.cos(i))),
        )
        let at = 0
        while (at < samples.length) {
          const piece = firstPiece(samples.subarray(at), {
            maxSamples,
            searchSamples: 2000,
            rateHz: 1000,
            last: true,
          })
          expect(piece).toBeGreaterThan(0)
          expect(piece).toBeLessThanOrEqual(maxSamples)
          at += piece
        }
      }),
    )
  })
})
