// Which region a caller is sent to: the specification's rule as one pure function. Called by the router for every
// request; knows neither how a caller was located nor how a region's health and round trip were found out.
import { countryHub } from "./CountryHubs.ts"
import { expectedRoundTripsMs, type Measurements } from "./ExpectedRoundTrip.ts"
import { kilometresBetween, type Point } from "./Geography.ts"
import type { Region, RoundTrips } from "./RegionMap.ts"

/** What is known of where a caller is; both may be missing. */
export interface Place {
  readonly country?: string
  readonly point?: Point
}

export interface Choice {
  readonly regions: ReadonlyArray<Region>
  readonly isHealthy: (code: string) => boolean
  /** Round trips between countries that an operator has measured. */
  readonly rttMs: RoundTrips
  /** The router's own measurements; undefined where they say nothing about this caller. */
  readonly measurements: Measurements | undefined
  /** The caller's country, where it is known. */
  readonly country: string | undefined
  readonly point: Point
  /** `global` ignores borders. */
  readonly scope: "country" | "global"
  /** An integer from 0 that is fixed for the caller: regions at the same spot share their callers by it. */
  readonly spread: number
}

/** Regions that are this close to each other are one spot: two sites of a city. */
const sameSpotKm = 1
/** Sites of a spot share their callers while their round trips differ by no more than this. A guess. */
const sameSpotMs = 2

/** Where a place is: its point, or the hub of its country; undefined where neither is known. */
export const pointOf = ({ country, point }: Place): Point | undefined =>
  point ?? (country === undefined ? undefined : countryHub(country))

/** A fixed number of a caller and a region: the region with the highest one gets the caller (rendezvous hashing). */
const affinity = (spread: number, code: string): number => {
  let hash = spread | 0
  for (let i = 0; i < code.length; i++) hash = Math.imul(hash ^ code.charCodeAt(i), 0x01000193)
  // Mixes the high bits down: similar codes must not order all callers alike.
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return (hash ^ (hash >>> 16)) >>> 0
}

/** The caller's region among equal sites. It changes for no other caller when one of the sites leaves. */
const siteFor = (sites: ReadonlyArray<Region>, spread: number): Region | undefined => {
  let best: Region | undefined
  for (const site of sites) {
    if (best === undefined || affinity(spread, site.code) > affinity(spread, best.code)) best = site
  }
  return best
}

/** The region with the lowest cost, or another site at its spot that costs at most `tolerance` more. */
const cheapest = (
  regions: ReadonlyArray<Region>,
  costs: ReadonlyArray<number>,
  { spread, tolerance }: { readonly spread: number; readonly tolerance: number },
): Region | undefined => {
  const lowest = Math.min(...costs)
  const first = regions[costs.indexOf(lowest)]
  if (first === undefined) return undefined
  const sites = regions.filter(
    (region, i) => kilometresBetween(region, first) < sameSpotKm && (costs[i] ?? 0) - lowest <= tolerance,
  )
  return siteFor(sites, spread)
}

const nearest = (regions: ReadonlyArray<Region>, { point, spread }: Choice): Region | undefined => {
  const distancesKm = regions.map((region) => kilometresBetween(region, point))
  return cheapest(regions, distancesKm, { spread, tolerance: sameSpotKm })
}

/** By the round trips that the caller can expect; by distance where nothing was measured. */
const quickest = (regions: ReadonlyArray<Region>, choice: Choice): Region | undefined => {
  const { measurements, point, spread } = choice
  const expectedMs = measurements && expectedRoundTripsMs(regions, point, measurements)
  return expectedMs === undefined
    ? nearest(regions, choice)
    : cheapest(regions, expectedMs, { spread, tolerance: sameSpotMs })
}

/** Measured between the hubs of the two countries, in either direction. */
const measuredMs = (from: string, to: string, rttMs: RoundTrips): number | undefined =>
  rttMs[from]?.[to] ?? rttMs[to]?.[from]

/**
 * The regions of the country with the shortest round trip in the operator's table; all of them where it has none for
 * the caller's country. The table comes before the router's measurements: it was measured where the caller is.
 */
const acrossTheBorder = (healthy: ReadonlyArray<Region>, { country, rttMs }: Choice) => {
  if (country === undefined) return healthy
  let best = healthy
  let bestMs = Number.POSITIVE_INFINITY
  for (const to of new Set(healthy.map((region) => region.country))) {
    const ms = measuredMs(country, to, rttMs)
    if (ms === undefined || ms >= bestMs) continue
    best = healthy.filter((region) => region.country === to)
    bestMs = ms
  }
  return best
}

/** The caller's region; undefined where no region is healthy. */
export const chooseRegion = (choice: Choice): Region | undefined => {
  const healthy = choice.regions.filter((region) => choice.isHealthy(region.code))
  if (choice.scope === "global") return nearest(healthy, choice)
  const inCountry = healthy.filter((region) => region.country === choice.country)
  return inCountry.length > 0
    ? nearest(inCountry, choice)
    : quickest(acrossTheBorder(healthy, choice), choice)
}
