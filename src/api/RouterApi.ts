// GET /v1/route, the only thing the router's listener serves: which edge a caller should talk to.
import { Clock, Context, Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { Drain } from "#actors/Drain.ts"
import { subscriberOf } from "#domain/access/ClientAddress.ts"
import type { Point } from "#domain/regions/Geography.ts"
import { chooseRegion, pointOf } from "#domain/regions/RegionChoice.ts"
import type { Region, RoundTrips } from "#domain/regions/RegionMap.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import { errorResponse, problemResponse } from "#http/ErrorBody.ts"
import { pathOf } from "#http/NotFound.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import { locateCaller } from "./regions/CallerPlace.ts"
import { RegionHealth } from "./regions/RegionHealth.ts"

/** What a router hands out. */
export class RegionDirectory extends Context.Service<
  RegionDirectory,
  {
    readonly regions: ReadonlyArray<Region>
    readonly rttMs: RoundTrips
    /** Where the router itself stands; a caller of unknown place is taken to be there. */
    readonly home: {
      readonly country: string | undefined
      readonly point: Point
      /** False where the settings do not say it: `point` is then only some region's, and ranks regions by distance. */
      readonly isKnown: boolean
    }
    readonly ttlSeconds: number
    /** Base address of a region's edge, as a client that sent this `Host` header can reach it. */
    readonly endpointOf: (region: Region, host: string | undefined) => string
  }
>()("edgewise/api/RegionDirectory") {}

/** The one path of this role, with GET alone. */
export const routePath = "/v1/route"

/** The answer to every other path and method (protocol 15.1). */
const forbidden = problemResponse({ status: 403, detail: "Forbidden" })

/** Retry-After: regions are probed about that often. A guess. */
const noneHealthy = problemResponse({
  status: 503,
  detail: "No healthy region",
  headers: { "retry-after": "5" },
})

/** A fixed number of the address: callers of one network stay together, and networks spread over equal regions. */
const spreadOf = (address: string): number => {
  let sum = 0
  for (let i = 0; i < address.length; i++) sum = (sum * 31 + address.charCodeAt(i)) % 0x7fffffff
  return sum
}

const scopeOf = (url: string): Effect.Effect<"country" | "global", InvalidRequest> => {
  const scope = new URL(url, "http://router").searchParams.get("scope")
  if (scope === null) return Effect.succeed("country")
  if (scope === "global") return Effect.succeed("global")
  return Effect.fail(new InvalidRequest({ field: "scope", problem: "must be global, or left out" }))
}

const route = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const { endpointOf, home, regions, rttMs, ttlSeconds } = yield* RegionDirectory
  const { isHealthy, roundTripMs } = yield* RegionHealth
  const nowMs = yield* Clock.currentTimeMillis
  const scope = yield* scopeOf(request.url)
  const { address, place } = yield* locateCaller(request)
  const point = pointOf(place)
  const caller =
    point === undefined
      ? { point: home.point, country: place.country ?? home.country }
      : { point, country: place.country }
  // A router of unknown place can speak for callers of unknown place alone: their round trips are taken to be its own.
  const measuredAt = home.isKnown ? home.point : point === undefined ? caller.point : undefined
  const measurements = measuredAt && {
    from: measuredAt,
    roundTripMs: (code: string) => roundTripMs(code, nowMs),
  }
  const spread = spreadOf(address === "" ? "" : subscriberOf(address))
  const region = chooseRegion({ regions, isHealthy, rttMs, measurements, ...caller, scope, spread })
  if (region === undefined) {
    const notes = yield* CurrentRequest
    notes.failure = "no region is healthy: none answers its health check"
    return noneHealthy
  }
  const { code, name } = region
  return HttpServerResponse.jsonUnsafe(
    { region: code, name, endpoint: endpointOf(region, request.headers.host), ttl: ttlSeconds },
    // Private: the answer is this caller's.
    { headers: { "cache-control": `private, max-age=${ttlSeconds}` } },
  )
})

/** The whole role as one handler. */
export const routerApi = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
  if (request.method !== "GET" || pathOf(request.url) !== routePath) return Effect.succeed(forbidden)
  return Effect.flatMap(Drain, (drain) => drain.admit(route(request))).pipe(Effect.catch(errorResponse))
})
