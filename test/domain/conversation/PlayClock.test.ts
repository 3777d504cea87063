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

it("with a way to the client, audio is played that much later, and never goes back", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), fc.integer({ min: 0, max: 300 }), (steps, delayMs) => {
      const clock = new PlayClock(rateHz, undefined, () => delayMs)
      let nowMs = 0
      let before = 0
      for (const { samples, stops, waitMs } of steps) {
        nowMs += waitMs
        const played = clock.playedSamples(nowMs)
        expect(played).toBeGreaterThanOrEqual(before)
        expect(played).toBeLessThanOrEqual(clock.sentSamples)
        before = played
        if (stops) {
          clock.stopped(nowMs)
          expect(clock.sentSamples).toBe(played)
        } else clock.sent(samples, nowMs)
        expect(clock.playedSamples(nowMs)).toBe(played)
      }
      expect(clock.playedSamples(Math.max(nowMs, clock.playedUntilMs))).toBe(clock.sentSamples)
    }),
  )
})

it("what was played before a pause stays played while the next audio is on its way", () => {
  const clock = new PlayClock(rateHz, undefined, () => 100)
  clock.sent(24_000, 0)
  expect(clock.playedSamples(100)).toBe(0)
  expect(clock.playedSamples(600)).toBe(12_000)
  clock.sent(24_000, 5_000)
  expect(clock.playedSamples(5_050)).toBe(24_000)
  expect(clock.playedSamples(5_600)).toBe(36_000)
})

it("a client that says what it has played is followed", () => {
  const clock = new PlayClock(rateHz)
  clock.sent(48_000, 0)
  clock.played(12_000, 700)
  expect(clock.playedSamples(700)).toBe(12_000)
  expect(clock.playedSamples(1_200)).toBe(24_000)
  expect(clock.playedUntilMs).toBe(2_200)
  clock.played(60_000, 1_200)
  expect(clock.playedSamples(1_200)).toBe(24_000)
})

it("audio that comes late begins when it comes", () => {
  const clock = new PlayClock(rateHz)
  clock.sent(24_000, 0)
  clock.sent(24_000, 5_000)
  expect(clock.playedSamples(5_500)).toBe(36_000)
  expect(clock.playedUntilMs).toBe(6_000)
})
