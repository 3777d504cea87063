// The built-in regions and their places (protocol 15.4), and two further codes of nodes. Data only: city coordinates rounded to a
// hundredth of a degree (1 km).
import type { Region } from "./RegionMap.ts"

const canada = (name: string, latitude: number, longitude: number) =>
  ({ name, country: "CA", latitude, longitude }) as const
const unitedStates = (name: string, latitude: number, longitude: number) =>
  ({ name, country: "US", latitude, longitude }) as const

const places: Readonly<Record<string, Omit<Region, "code">>> = {
  "yto-01": canada("Toronto", 43.65, -79.38),
  "yul-01": canada("Montreal", 45.5, -73.57),
  "yul-02": canada("Montreal (second)", 45.5, -73.57),
  "yvr-02": canada("Vancouver", 49.28, -123.12),
  "nyc-01": unitedStates("New York", 40.71, -74.01),
  "nyc-02": unitedStates("New York (second)", 40.71, -74.01),
  "dfw-01": unitedStates("Dallas", 32.78, -96.8),
  "dfw-02": unitedStates("Dallas (second)", 32.78, -96.8),
  "sfo-01": unitedStates("San Francisco", 37.77, -122.42),
  "sfo-03": unitedStates("San Francisco (third)", 37.77, -122.42),
  "lax-01": unitedStates("Los Angeles", 34.05, -118.24),
  "sea-01": unitedStates("Seattle", 47.61, -122.33),
  "chi-01": unitedStates("Chicago", 41.88, -87.63),
  "phx-01": unitedStates("Phoenix", 33.45, -112.07),
  "was-01": unitedStates("Washington DC", 38.91, -77.04),
  "mia-01": unitedStates("Miami", 25.76, -80.19),
}

export const builtInRegions: ReadonlyArray<Region> = Object.entries(places).map(([code, place]) => ({
  code,
  ...place,
}))

/** The staging node: clients are never sent there, but a router may run there. */
export const stagingRegion: Region = {
  code: "sfo-02",
  ...unitedStates("San Francisco (staging)", 37.77, -122.42),
}

/** `local` deploys every model of the catalog. */
export const nodeRegions: ReadonlyArray<string> = ["local", ...Object.keys(places), stagingRegion.code]
