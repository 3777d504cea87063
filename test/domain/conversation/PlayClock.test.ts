// The play clock: what has been sent is played in order, at its rate, and what an interruption stops is never played.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { PlayClock } from "#domain/conversation/PlayClock.ts"

const rateHz = 24_000

const step = fc.record({
  waitMs: fc.integer({ min: 0, max: 3_000 }),
  samples: fc.integer({ min: 0, max: 48_000 }),
  stops: fc.boolean(),
})

it("plays at most what was sent, never goes back, and stands still after a stop", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const clock = new PlayClock(rateHz)
      let nowMs = 0
      let before = 0
      for (const { samples, stops, waitMs } of steps) {
        nowMs += waitMs
        const played = clock.playedSamples(nowMs)
        expect(played).toBeGreaterThanOrEqual(before)
        expect(played).toBeLessThanOrEqual(clock.sentSamples)
        expect(played - before).toBeLessThanOrEqual((waitMs * rateHz) / 1000 + 1)
        before = played
        if (stops) {
          clock.stopped(nowMs)
          expect(clock.sentSamples).toBe(played)
          expect(clock.playedUntilMs).toBeLessThanOrEqual(nowMs)
        } else clock.sent(samples, nowMs)
      }
      expect(clock.playedSamples(Math.max(nowMs, clock.playedUntilMs))).toBe(clock.sentSamples)
    }),
  )
})

it("audio that comes late begins when it comes", () => {
  const clock = new PlayClock(rateHz)
  clock.sent(24_000, 0)
  clock.sent(24_000, 5_000)
  expect(clock.playedSamples(5_500)).toBe(36_000)
  expect(clock.playedUntilMs).toBe(6_000)
})
