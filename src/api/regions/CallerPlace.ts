// The place of a caller: from a trusted proxy's headers, else from the geo database by its address, else
// unknown.
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { isPoint, type Point } from "#domain/regions/Geography.ts"
import type { Place } from "#domain/regions/RegionChoice.ts"
import { GeoDatabase } from "#store/files/GeoDatabase.ts"
import { clientAddressOf, peerAddress, TrustedProxies } from "../access/RequestAddresses.ts"

/** Cloudflare's header names; other proxies can be configured to send them. */
const countryHeader = "cf-ipcountry"
const latitudeHeader = "cf-iplatitude"
const longitudeHeader = "cf-iplongitude"

/** Cloudflare's codes for "unknown" and for the Tor network, which has no place. */
const noCountry = ["XX", "T1"]

const degrees = (text: string | undefined): number =>
  text !== undefined && /^[+-]?\d{1,3}(?:\.\d{1,12})?$/.test(text) ? Number(text) : Number.NaN

const pointIn = (headers: HttpServerRequest.HttpServerRequest["headers"]): Point | undefined => {
  const point = { latitude: degrees(headers[latitudeHeader]), longitude: degrees(headers[longitudeHeader]) }
  return isPoint(point) ? point : undefined
}

const placeIn = (headers: HttpServerRequest.HttpServerRequest["headers"]): Place | undefined => {
  const country = headers[countryHeader]?.toUpperCase() ?? ""
  if (!/^[A-Z]{2}$/.test(country) || noCountry.includes(country)) return undefined
  const point = pointIn(headers)
  return point === undefined ? { country } : { country, point }
}

interface Caller {
  readonly address: string
  readonly place: Place
}

export const locateCaller = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const isTrusted = yield* TrustedProxies
  const address = yield* clientAddressOf(request)
  const said = isTrusted(peerAddress(request)) ? placeIn(request.headers) : undefined
  const caller: Caller = { address, place: said ?? (yield* GeoDatabase).locate(address) }
  return caller
})
