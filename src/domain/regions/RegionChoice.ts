// The choice of a client's region (protocol 15.2) as one pure function.
import { countryHub } from "./CountryHubs.ts"
import { expectedRoundTripsMs, type Measurements } from "./ExpectedRoundTrip.ts"
import { kilometresBetween, type Point } from "./Geography.ts"
import type { Region, RoundTrips } from "./RegionMap.ts"

/** What is known of a client's place; both may be missing. */
export interface Place {
  readonly country?: string
  readonly point?: Point
}

export interface Choice {
  readonly regions: ReadonlyArray<Region>
  readonly isHealthy: (code: string) => boolean
  /** An operator's measured round trips between countries. */
  readonly rttMs: RoundTrips
  /** The router's own measurements. Undefined if they say nothing about this client. */
  readonly measurements: Measurements | undefined
  /** The client's country, if known. */
  readonly country: string | undefined
  readonly point: Point
  /** `global` ignores borders. */
  readonly scope: "country" | "global"
  /** An integer from 0 that is constant for the client. Regions at the same place share their clients by it. */
  readonly spread: number
}

/** Regions this close to each other are one place, e.g. two sites of a city. */
const sameSpotKm = 1
/** Sites of a place share their clients while their round trips differ by no more than this. A guess. */
const sameSpotMs = 2

/** The point of a place, or the hub of its country. Undefined if neither is known. */
export const pointOf = ({ country, point }: Place): Point | undefined =>
  point ?? (country === undefined ? undefined : countryHub(country))

/** A constant number of a client and a region: the region with the highest one gets the client (rendezvous hashing). */
const affinity = (spread: number, code: string): number => {
  let hash = spread | 0
  for (let i = 0; i < code.length; i++) hash = Math.imul(hash ^ code.charCodeAt(i), 0x01000193)
  // Mixes the high bits down: similar codes must not rank all clients alike.
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return (hash ^ (hash >>> 16)) >>> 0
}

/** The client's region among equal sites. When a site is removed, only its own clients move. */
const siteFor = (sites: ReadonlyArray<Region>, spread: number): Region | undefined => {
  let best: Region | undefined
  for (const site of sites) {
    if (best === undefined || affinity(spread, site.code) > affinity(spread, best.code)) best = site
  }
  return best
}

/** The region with the lowest cost, or another site at its place that costs at most `tolerance` more. */
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

/** By expected round trips, or by distance without measurements. */
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
 * The regions of the country with the shortest round trip in the operator's table; all regions if the table lacks the
 * client's country. The table takes precedence over the router's measurements, because it was measured in the client's
 * country.
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

/** The client's region. Undefined if no region is healthy. */
export const chooseRegion = (choice: Choice): Region | undefined => {
  const healthy = choice.regions.filter((region) => choice.isHealthy(region.code))
  if (choice.scope === "global") return nearest(healthy, choice)
  const inCountry = healthy.filter((region) => region.country === choice.country)
  return inCountry.length > 0
    ? nearest(inCountry, choice)
    : quickest(acrossTheBorder(healthy, choice), choice)
}
