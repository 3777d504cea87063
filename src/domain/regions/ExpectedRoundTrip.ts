// Which round trip a caller can expect to each region, estimated from what a router measures where it stands. Pure; used
// by the choice of a region across borders.
//
// Distance alone gives `distanceMs`. Where the router's own round trip to a region differs from what distance gives for
// the router's place, the difference is carried over to the caller:
// - A longer one (a detour, a slow access link, a loaded edge) adds the same number of milliseconds for every caller.
// - A shorter one (a straighter cable than assumed) shortens the caller's estimate in the same proportion.
// For a caller at the router's place the estimate is therefore exactly what was measured, and it departs from that
// gradually as the caller is farther away.
import { kilometresBetween, type Point } from "./Geography.ts"

/**
 * Round trip of a kilometre between two points. Light in fibre takes 0.01 ms there and back, and cables are about half
 * as long again as the great circle. A guess between the two, which only has to rank regions.
 */
const msPerKm = 0.015

export const distanceMs = (a: Point, b: Point): number => kilometresBetween(a, b) * msPerKm

/** What a router has measured. */
export interface Measurements {
  /** Where it was measured. */
  readonly from: Point
  /** Milliseconds to a region, by its code; undefined where nothing was measured of late. */
  readonly roundTripMs: (code: string) => number | undefined
}

interface Place extends Point {
  readonly code: string
}

/** To the microsecond: estimates that are equal by the formula must not differ by a rounding error. */
const rounded = (ms: number): number => Math.round(ms * 1000) / 1000

/** The lower median of what measurements are above distance; 0 where they are not, or there are none. */
const typicalExcessMs = (excessesMs: ReadonlyArray<number>): number => {
  const sorted = excessesMs.toSorted((a, b) => a - b)
  return Math.max(0, sorted[Math.floor((sorted.length - 1) / 2)] ?? 0)
}

/**
 * The expected round trips of a caller at `point`, in milliseconds and in the order of the regions; undefined where no
 * region was measured. A region that was not measured among others that were is taken to be as much slower than its
 * distance as they typically are. A lower measurement never makes a region look worse beside the others.
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
