// Pace and admission of live sessions from measured costs: bounds that hold for any cost and any speakers.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  fullShare,
  type LiveCost,
  paceOf,
  seldomShareOf,
  shareOfAll,
  slowestSeconds,
  speakersThatFit,
} from "#domain/audio/LivePace.ts"

const costs: fc.Arbitrary<LiveCost> = fc.record({
  captionMs: fc.double({ min: 1, max: 5_000, noNaN: true }),
  fixedShare: fc.double({ min: 0, max: 1, noNaN: true }),
})
const window = fc.double({ min: 0.25, max: 10, noNaN: true })
const windows = fc.array(window, { minLength: 1, maxLength: 30 })
/** Whether the engine can serve all of them, each with captions as seldom as allowed. */
const fits = (all: ReadonlyArray<number>, cost: LiveCost) =>
  all.length <= 1 || all.reduce((sum, seconds) => sum + seldomShareOf(seconds, cost), 0) <= fullShare
const paces = (all: ReadonlyArray<number>, cost: LiveCost) => all.map((seconds) => paceOf(seconds, all, cost))

describe("the pace", () => {
  it("lies between what was requested and the slowest", () => {
    fc.assert(
      fc.property(windows, costs, (all, cost) => {
        paces(all, cost).forEach((pace, i) => {
          expect(pace).toBeGreaterThanOrEqual(all[i]!)
          expect(pace).toBeLessThanOrEqual(slowestSeconds(all[i]!, cost) + 1e-9)
        })
      }),
    )
  })

  it("fills no more than the share for equal speakers who fit", () => {
    let several = 0
    fc.assert(
      fc.property(window, fc.integer({ min: 2, max: 20 }), costs, (seconds, count, cost) => {
        const all = Array.from({ length: count }, () => seconds)
        if (!fits(all, cost)) return
        several++
        expect(shareOfAll(paces(all, cost), cost)).toBeLessThanOrEqual(fullShare + 1e-9)
      }),
      { numRuns: 1_000, seed: 1 },
    )
    expect(several).toBeGreaterThan(20)
  })

  it("is the requested one while captions are cheap, for a speaker alone as for many", () => {
    fc.assert(
      fc.property(windows, (all) => {
        const cost = { captionMs: 0.1, fixedShare: 0 }
        expect(paces(all, cost)).toEqual(all)
      }),
    )
    expect(paceOf(1, [1], { captionMs: 600, fixedShare: 0.1 })).toBe(1)
  })

  it("grows with the cost and with the speakers", () => {
    fc.assert(
      fc.property(windows, costs, fc.double({ min: 1, max: 3, noNaN: true }), (all, cost, factor) => {
        const dearer = { ...cost, captionMs: cost.captionMs * factor }
        expect(paceOf(all[0]!, all, dearer)).toBeGreaterThanOrEqual(paceOf(all[0]!, all, cost) - 1e-9)
        expect(paceOf(all[0]!, [...all, 1], cost)).toBeGreaterThanOrEqual(paceOf(all[0]!, all, cost) - 1e-9)
      }),
    )
  })
})

describe("admission", () => {
  it("always has a place for the first, and never one more than fit", () => {
    fc.assert(
      fc.property(window, costs, (seconds, cost) => {
        const count = speakersThatFit(seconds, cost)
        const of = (n: number) => Array.from({ length: n }, () => seconds)
        expect(fits(of(1), cost)).toBe(true)
        if (count < 100) expect(fits(of(count + 1), cost)).toBe(false)
        if (count > 1 && count < 100) expect(fits(of(count - 1), cost)).toBe(true)
      }),
    )
  })

  it("follows the cost: four with a quarter of a second a caption, two with 700 ms, one with more", () => {
    const of = (captionMs: number, fixedShare = 0) => speakersThatFit(1, { captionMs, fixedShare })
    expect(of(20)).toBe(45)
    expect(of(250, 0.03)).toBe(4)
    expect(of(700, 0.07)).toBe(2)
    expect(of(1_500)).toBe(1)
    // Where closing alone takes too much, captions may still come.
    expect(of(20, 1)).toBe(1)
  })
})
