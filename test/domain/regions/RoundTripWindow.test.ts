// Round trips: the window over a router's measurements, and what they let other callers expect.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { distanceMs, expectedRoundTripsMs } from "#domain/regions/ExpectedRoundTrip.ts"
import { RoundTripWindow } from "#domain/regions/RoundTripWindow.ts"

describe("a window of measurements", () => {
  it("is the shortest of the last five that are not too old", () => {
    const sample = fc.record({ ms: fc.nat({ max: 1_000 }), afterMs: fc.nat({ max: 60 }) })
    fc.assert(
      fc.property(fc.array(sample, { maxLength: 20 }), fc.nat({ max: 200 }), (samples, laterMs) => {
        const window = new RoundTripWindow(100)
        let nowMs = 0
        const taken = samples.map(({ afterMs, ms }) => {
          nowMs += afterMs
          window.add(ms, nowMs)
          return { ms, atMs: nowMs }
        })
        nowMs += laterMs
        const counting = taken.slice(-5).filter(({ atMs }) => atMs >= nowMs - 100)
        const expected = counting.length === 0 ? undefined : Math.min(...counting.map(({ ms }) => ms))
        expect(window.shortestMs(nowMs)).toBe(expected)
      }),
    )
  })

  it("ignores what is no measurement", () => {
    const window = new RoundTripWindow(100)
    for (const ms of [Number.NaN, Number.POSITIVE_INFINITY, -1]) window.add(ms, 0)
    expect(window.shortestMs(0)).toBeUndefined()
  })
})

describe("an expected round trip", () => {
  const paris = { code: "par", latitude: 48.86, longitude: 2.35 }
  const newYork = { code: "nyc", latitude: 40.71, longitude: -74.01 }
  const saoPaulo = { code: "sao", latitude: -23.55, longitude: -46.63 }
  const regions = [paris, newYork, saoPaulo]
  const lagos = { latitude: 6.5, longitude: 3.4 }
  const expected = (point: typeof lagos, ms: Readonly<Record<string, number>>, from = paris) =>
    expectedRoundTripsMs(regions, point, { from, roundTripMs: (code) => ms[code] })!

  it("is what was measured, for a caller where the router stands", () => {
    const ms = { par: 2, nyc: 74, sao: 240 }
    expect(expected(paris, ms)).toEqual([2, expect.closeTo(74, 3), expect.closeTo(240, 3)])
    // Shorter than distance gives.
    const straight = { par: 0.5, nyc: 61, sao: 101 }
    expect(expected(paris, straight)).toEqual([0.5, expect.closeTo(61, 3), expect.closeTo(101, 3)])
  })

  it("carries the detour to a region over to callers elsewhere", () => {
    const byDistance = regions.map((region) => distanceMs(lagos, region))
    const detour = { par: 0, nyc: distanceMs(paris, newYork), sao: distanceMs(paris, saoPaulo) + 60 }
    expect(expected(lagos, detour)).toEqual([
      expect.closeTo(byDistance[0]!, 3),
      expect.closeTo(byDistance[1]!, 3),
      expect.closeTo(byDistance[2]! + 60, 3),
    ])
  })

  it("of a region that was not measured is as much longer than its distance as others typically are", () => {
    const ms = { par: 20, sao: distanceMs(paris, saoPaulo) + 30 }
    expect(expected(lagos, ms)[1]).toBeCloseTo(distanceMs(lagos, newYork) + 20, 3)
    expect(
      expectedRoundTripsMs(regions, lagos, { from: paris, roundTripMs: () => undefined }),
    ).toBeUndefined()
  })

  it("is never negative, grows with the measurement, and agrees with distance where that agrees", () => {
    const point = fc.record({
      latitude: fc.double({ min: -90, max: 90, noNaN: true }),
      longitude: fc.double({ min: -180, max: 180, noNaN: true }),
    })
    fc.assert(
      fc.property(
        point,
        point,
        point,
        fc.double({ min: 0, max: 900, noNaN: true }),
        (place, from, caller, ms) => {
          const region = { code: "r", ...place }
          const at = (measured: number) =>
            expectedRoundTripsMs([region], caller, { from, roundTripMs: () => measured })![0]!
          expect(at(ms)).toBeGreaterThanOrEqual(0)
          expect(at(ms + 5)).toBeGreaterThanOrEqual(at(ms))
          expect(Math.abs(at(distanceMs(from, region)) - distanceMs(caller, region))).toBeLessThan(0.001)
        },
      ),
    )
  })
})
