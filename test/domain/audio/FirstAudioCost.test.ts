import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { FirstAudioCost, longestFirstAudioMs } from "#domain/audio/FirstAudioCost.ts"

interface Begun {
  readonly atMs: number
  readonly costMs: number
}

/** Streams that come at these times to an engine that computes one first piece after the other; how long each admitted one waits. */
const waitsOf = (load: FirstAudioCost, arrivals: ReadonlyArray<Begun>): ReadonlyArray<number> => {
  const waits: Array<number> = []
  const sounding: Array<number> = []
  let freeAtMs = 0
  for (const { atMs, costMs } of arrivals) {
    while (sounding[0] !== undefined && sounding[0] <= atMs) load.sounded(sounding.shift()!)
    if (!load.admits(undefined)) continue
    load.began(atMs)
    freeAtMs = Math.max(freeAtMs, atMs) + costMs
    sounding.push(freeAtMs)
    waits.push(freeAtMs - atMs)
  }
  for (const atMs of sounding) load.sounded(atMs)
  return waits
}

/** Times between arrivals, costs between a lowest and a highest. */
const crowds = fc
  .record({
    lowestMs: fc.integer({ min: 5, max: 1_500 }),
    spread: fc.double({ min: 1, max: 2, noNaN: true }),
    gapsMs: fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 200 }),
  })
  .chain(({ gapsMs, lowestMs, spread }) =>
    fc.record({
      lowestMs: fc.constant(lowestMs),
      highestMs: fc.constant(lowestMs * spread),
      gapsMs: fc.constant(gapsMs),
      costsMs: fc.array(fc.double({ min: lowestMs, max: lowestMs * spread, noNaN: true }), {
        minLength: gapsMs.length,
        maxLength: gapsMs.length,
      }),
    }),
  )

const measured = (costMs: number): FirstAudioCost => {
  const load = new FirstAudioCost()
  load.began(-costMs)
  load.sounded(0)
  return load
}

describe("the beginnings of streams", () => {
  it("keep every admitted stream's first audio within the bound, as far as costs are like those before", () => {
    fc.assert(
      fc.property(crowds, ({ costsMs, gapsMs, highestMs, lowestMs }) => {
        let atMs = 0
        const arrivals = gapsMs.map((gapMs, at) => {
          atMs += gapMs
          return { atMs, costMs: costsMs[at]! }
        })
        const waits = waitsOf(measured(lowestMs), arrivals)
        const bound = Math.max(highestMs, (longestFirstAudioMs * highestMs) / lowestMs)
        expect(Math.max(...waits)).toBeLessThanOrEqual(bound + 1e-6)
      }),
    )
  })

  it("admit as many at once as the bound holds, at least one", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5_000 }), (costMs) => {
        const arrivals = Array.from({ length: 3_000 }, () => ({ atMs: 0, costMs }))
        const waits = waitsOf(measured(costMs), arrivals)
        expect(waits.length).toBe(Math.max(1, Math.floor(longestFirstAudioMs / costMs)))
      }),
      { numRuns: 30 },
    )
  })

  it("cost what the model's real-time factor says, until one was measured", () => {
    const load = new FirstAudioCost()
    expect(load.expectedMs(undefined)).toBe(0)
    expect(load.expectedMs(0.2)).toBeCloseTo(600)
    load.began(0)
    load.sounded(50)
    expect(load.expectedMs(0.2)).toBe(50)
  })

  it("follow a change within some ten streams, and say nothing where they ended in silence", () => {
    const load = measured(100)
    for (let at = 0; at < 20; at++) {
      load.began(at * 1_000)
      load.gaveUp(at * 1_000 + 900)
    }
    expect(load.expectedMs(0)).toBe(100)
    for (let at = 20; at < 40; at++) {
      load.began(at * 1_000)
      load.sounded(at * 1_000 + 500)
    }
    expect(load.expectedMs(0)).toBeGreaterThan(450)
  })
})
