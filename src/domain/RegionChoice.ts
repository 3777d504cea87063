// Which region a caller is sent to: the specification's rule as one pure function. Called by the router for every
// request; knows neither how a caller was located nor how a region's health was found out.
import { countryHub } from "./CountryHubs.ts"
import { kilometresBetween, type Point } from "./Geography.ts"
import type { Region, RoundTrips } from "./RegionMap.ts"

/** What is known of where somebody is; nothing at all is possible. */
export interface Place {
  readonly country?: string
  readonly point?: Point
}

export interface Choice {
  readonly regions: ReadonlyArray<Region>
  readonly isHealthy: (code: string) => boolean
  readonly rttMs: RoundTrips
  /** The caller's country, where it is known. */
  readonly country: string | undefined
  readonly point: Point
  /** `global` ignores borders. */
  readonly scope: "country" | "global"
  /** An integer from 0 of the caller's own: regions at the same spot share their callers by it. */
  readonly spread: number
}

/** Regions that close to each other are one spot: two sites of a city. */
const sameSpotKm = 1

/** Where a place is: its point, or the hub of its country, or else nowhere. */
export const pointOf = ({ country, point }: Place): Point | undefined =>
  point ?? (country === undefined ? undefined : countryHub(country))

const nearest = (regions: ReadonlyArray<Region>, { point, spread }: Choice): Region | undefined => {
  const distancesKm = regions.map((region) => kilometresBetween(region, point))
  const shortestKm = Math.min(...distancesKm)
  const first = regions[distancesKm.indexOf(shortestKm)]
  if (first === undefined) return undefined
  const sites = regions.filter((region) => kilometresBetween(region, first) < sameSpotKm)
  return sites[spread % sites.length]
}

/** Measured between the hubs of the two countries, in either direction. */
const measuredMs = (from: string, to: string, rttMs: RoundTrips): number | undefined =>
  rttMs[from]?.[to] ?? rttMs[to]?.[from]

/**
 * The regions of the country with the shortest measured round trip; all of them where none was measured, and distance
 * decides. The two are never weighed against each other: one is for a whole country, the other for one point in it.
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
  return nearest(inCountry.length > 0 ? inCountry : acrossTheBorder(healthy, choice), choice)
}
