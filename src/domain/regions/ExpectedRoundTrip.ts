// Estimates a client's round trip to each region from the router's own measurements. Pure.
//
// Distance alone gives `distanceMs`. If the router's own round trip to a region differs from what distance gives for
// the router's place, the difference is applied to the client. A longer round trip (a detour, a slow access link, a
// loaded edge) adds the same number of milliseconds for every client. A shorter one (a straighter cable than assumed)
// shortens the client's estimate in the same proportion. For a client at the router's place the estimate is therefore
// exactly the measurement; it departs from that gradually with the distance.
import { kilometresBetween, type Point } from "./Geography.ts"

/**
 * Round trip per kilometre between two points. Light in fibre takes 0.01 ms there and back, and cables are about half
 * as long again as the great circle. A guess between the two; it only has to rank regions.
 */
const msPerKm = 0.015

export const distanceMs = (a: Point, b: Point): number => kilometresBetween(a, b) * msPerKm

/** A router's measurements. */
export interface Measurements {
  /** Where they were taken. */
  readonly from: Point
  /** Milliseconds to a region, by its code. Undefined without a recent measurement. */
  readonly roundTripMs: (code: string) => number | undefined
}

interface Place extends Point {
  readonly code: string
}

/** To the microsecond: rounding errors must not distinguish equal estimates. */
const rounded = (ms: number): number => Math.round(ms * 1000) / 1000

/** The lower median of the excess of measurements over distance. 0 if there is none. */
const typicalExcessMs = (excessesMs: ReadonlyArray<number>): number => {
  const sorted = excessesMs.toSorted((a, b) => a - b)
  return Math.max(0, sorted[Math.floor((sorted.length - 1) / 2)] ?? 0)
}

/**
 * The expected round trips of a client at `point`, in milliseconds and in the order of the regions. Undefined if no
 * region was measured. A region that was not measured is taken to exceed its distance as much as the others typically
 * do. A lower measurement never makes a region rank worse.
 */
export const expectedRoundTripsMs = (
  regions: ReadonlyArray<Place>,
  point: Point,
  { from, roundTripMs }: Measurements,
): ReadonlyArray<number> | undefined => {
  const known = regions.map((region) => ({
    measuredMs: roundTripMs(region.code),
    fromRouterMs: distanceMs(from, region),
    fromCallerMs: distanceMs(point, region),
  }))
  const excessesMs = known.flatMap(({ fromRouterMs, measuredMs }) =>
    measuredMs === undefined ? [] : [measuredMs - fromRouterMs],
  )
  if (excessesMs.length === 0) return undefined
  const typicalMs = typicalExcessMs(excessesMs)
  return known.map(({ fromCallerMs, fromRouterMs, measuredMs }) => {
    if (measuredMs === undefined) return rounded(fromCallerMs + typicalMs)
    return rounded(
      measuredMs < fromRouterMs
        ? (fromCallerMs * measuredMs) / fromRouterMs
        : fromCallerMs + measuredMs - fromRouterMs,
    )
  })
}
