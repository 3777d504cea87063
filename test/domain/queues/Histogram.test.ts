import fc from "fast-check"
import { expect, it } from "vitest"
import { PlaybackClock } from "#domain/audio/PlaybackClock.ts"
import { Histogram, timeBoundsMs } from "#domain/queues/Histogram.ts"

it("counts every number once, in the first bucket that holds it, and adds them up", () => {
  const bounds = fc.uniqueArray(fc.double({ noNaN: true, noDefaultInfinity: true }), {
    minLength: 1,
    maxLength: 8,
  })
  fc.assert(
    fc.property(bounds, fc.array(fc.double({ noDefaultInfinity: true })), (some, values) => {
      const sorted = some.toSorted((a, b) => a - b)
      const histogram = new Histogram(sorted)
      for (const value of values) histogram.record(value)
      const numbers = values.filter((value) => !Number.isNaN(value))
      expect(histogram.count).toBe(numbers.length)
      expect(histogram.sum).toBe(numbers.reduce((sum, value) => sum + value, 0))
      sorted.forEach((bound, at) => {
        const upTo = histogram.counts.slice(0, at + 1).reduce((sum, count) => sum + count, 0)
        expect(upTo).toBe(numbers.filter((value) => value <= bound).length)
      })
    }),
  )
})

it("the bounds of times rise", () => {
  expect(timeBoundsMs).toEqual([...new Set(timeBoundsMs)].toSorted((a, b) => a - b))
})

it("a listener hears no silence as long as audio comes in time, and all of the gap when it does not", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 1, max: 48_000 }), fc.integer({ min: 0, max: 3_000 })), {
        maxLength: 30,
      }),
      (pieces) => {
        const clock = new PlaybackClock(24_000)
        let nowMs = 1_000
        let audioMs = 0
        let silentMs = 0
        expect(clock.begun).toBe(false)
        for (const [samples, pauseMs] of pieces) {
          silentMs += clock.delivered(samples, nowMs)
          // What was played and what was silent fill the time since the first piece.
          const endMs = 1_000 + audioMs + silentMs
          expect(endMs).toBeGreaterThanOrEqual(nowMs - 1e-6)
          audioMs += samples / 24
          nowMs += pauseMs
        }
        if (pieces.every(([samples, pauseMs]) => pauseMs <= samples / 24)) expect(silentMs).toBeLessThan(1e-6)
      },
    ),
  )
})
