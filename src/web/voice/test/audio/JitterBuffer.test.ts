// When pieces of a stream are played: they never overlap, never start before they came, and join without a gap as long as
// they come in time.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { JitterBuffer } from "../../audio/JitterBuffer.js"

const rate = 24_000

const pieces = fc.array(
  fc.record({
    wait: fc.double({ min: 0, max: 0.4, noNaN: true }),
    samples: fc.integer({ min: 1, max: 24_000 }),
  }),
  {
    minLength: 1,
    maxLength: 60,
  },
)

describe("any stream", () => {
  it("is played in order, each sample once, no piece before it came", () => {
    fc.assert(
      fc.property(pieces, fc.double({ min: 0, max: 1_000, noNaN: true }), (stream, began) => {
        const buffer = new JitterBuffer(rate)
        let now = began
        let end = 0
        for (const { samples, wait } of stream) {
          now += wait
          const played = buffer.push(samples, now)
          expect(played.start).toBeGreaterThanOrEqual(now)
          // Times of some hundred seconds have errors of 1e-13.
          expect(played.start).toBeGreaterThan(end - 1e-9)
          if (played.silence === 0 && end !== 0) expect(Math.abs(played.start - end)).toBeLessThan(1e-9)
          end = played.start + samples / rate
          expect(Math.abs(buffer.end - end)).toBeLessThan(1e-9)
          // Whole samples of the clock: a fraction would be a click.
          const sample = played.start * rate
          expect(Math.abs(sample - Math.round(sample))).toBeLessThan(1e-4)
        }
        const silence = buffer.pieces.reduce((sum, one) => sum + one.silence, 0)
        const played = stream.reduce((sum, { samples }) => sum + samples, 0) / rate
        const first = buffer.pieces[0]!.start
        expect(Math.abs(buffer.end - (first + played + silence))).toBeLessThan(1e-6)
        expect(buffer.underruns === 0).toBe(silence === 0)
      }),
    )
  })
})

it("plays a stream that is faster than speech without a gap", () => {
  const buffer = new JitterBuffer(rate)
  for (let i = 0; i < 50; i++) buffer.push(2_400, i * 0.09)
  expect(buffer.underruns).toBe(0)
  expect(buffer.smallestMargin).toBeGreaterThan(0.05)
})

it("waits longer after an under-run, so that the same lateness causes no second one", () => {
  const buffer = new JitterBuffer(rate, 0.05)
  buffer.push(2_400, 0)
  // The first piece is played from 0.05 to 0.15 s, so this one is 30 ms late.
  const late = buffer.push(2_400, 0.18)
  expect(late.silence).toBeCloseTo(0.13, 3)
  expect(buffer.push(2_400, 0.37).silence).toBe(0)
  expect(buffer.underruns).toBe(1)
  expect(buffer.smallestMargin).toBeCloseTo(-0.03, 5)
})
