// The router role's handler behind the endpoint that RouterApi declares: which edge a caller should talk to.
import { Clock, Context, Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import { Drain } from "#actors/Drain.ts"
import { subscriberOf } from "#domain/access/ClientAddress.ts"
import type { Point } from "#domain/regions/Geography.ts"
import { chooseRegion, pointOf } from "#domain/regions/RegionChoice.ts"
import type { Region, RoundTrips } from "#domain/regions/RegionMap.ts"
import { InvalidRequest, NoHealthyRegion } from "#domain/wire/Errors.ts"
import { errorResponse, problemResponse } from "#http/ErrorBody.ts"
import { pathOf } from "#http/NotFound.ts"
import { wantsErrorObject } from "#http/RequestContext.ts"
import { knownPathsOf } from "./declared/KnownPaths.ts"
import { QueryCheckLive } from "./declared/QueryErrors.ts"
import { RouterApi } from "./declared/RouterApi.ts"
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

/** Paths and their methods, for the labels of metrics. */
export const knownPaths = knownPathsOf(RouterApi)

/** The answer to every other path and method (protocol 15.1). */
const forbidden = (headers: Readonly<Record<string, string | undefined>>) =>
  problemResponse(
    {
      status: 403,
      detail: "Forbidden",
      advice:
        "This is a router, which serves GET /v1/route alone; the base URL of a client is that of an edge",
    },
    wantsErrorObject(headers),
  )

/** A fixed number of the address: callers of one network stay together, and networks spread over equal regions. */
const spreadOf = (address: string): number => {
  let sum = 0
  for (let i = 0; i < address.length; i++) sum = (sum * 31 + address.charCodeAt(i)) % 0x7fffffff
  return sum
}

const scopeOf = (scope: string | undefined): Effect.Effect<"country" | "global", InvalidRequest> => {
  if (scope === undefined) return Effect.succeed("country")
  if (scope === "global") return Effect.succeed("global")
  return Effect.fail(new InvalidRequest({ field: "scope", problem: "must be global, or left out" }))
}

const route = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  query: { readonly scope?: string },
) {
  const { endpointOf, home, regions, rttMs, ttlSeconds } = yield* RegionDirectory
  const { isHealthy, roundTripMs } = yield* RegionHealth
  const nowMs = yield* Clock.currentTimeMillis
  const scope = yield* scopeOf(query.scope)
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
  if (region === undefined) return yield* new NoHealthyRegion()
  const { code, name } = region
  return HttpApiSchema.withHeaders({
    body: { region: code, name, endpoint: endpointOf(region, request.headers.host), ttl: ttlSeconds },
    // Private: the answer is this caller's.
    headers: { "cache-control": `private, max-age=${ttlSeconds}` },
  })
})

const Routes = HttpApiBuilder.group(RouterApi, "Routes", (handlers) =>
  handlers.handle("route", ({ query, request }) =>
    Effect.flatMap(Drain, (drain) => drain.admit(route(request, query))).pipe(Effect.catch(errorResponse)),
  ),
)

/** Checked before the router is asked: it would answer HEAD, and take `/v1/route;x` for the path. */
const Others = HttpRouter.middleware(
  (handled) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers, method, url }) =>
      method === "GET" && Object.hasOwn(knownPaths, pathOf(url))
        ? handled
        : Effect.succeed(forbidden(headers)),
    ),
  { global: true },
)

/** Everything the router listener serves. */
export const RouterRoutes = Layer.mergeAll(
  HttpApiBuilder.layer(RouterApi).pipe(Layer.provide(Routes), Layer.provide(QueryCheckLive)),
  Others,
)
