// The router role as a layer: its listener over the regions, their health and the geo database that the settings name.
import { Context, Effect, Layer } from "effect"
import { Drain } from "#actors/Drain.ts"
import { TrustedProxies } from "#api/access/RequestAddresses.ts"
import { RegionDirectory, RouterRoutes } from "#api/RouterRoutes.ts"
import { RegionHealth } from "#api/regions/RegionHealth.ts"
import type { Config } from "#config/Settings.ts"
import { ownAddress } from "#domain/access/OwnAddress.ts"
import { edgeAddress, type Region, type RegionMap } from "#domain/regions/RegionMap.ts"
import { builtInRegions, stagingRegion } from "#domain/regions/Regions.ts"
import type { NodeMeters } from "#http/NodeMeters.ts"
import { GeoDatabase } from "#store/files/GeoDatabase.ts"
import { BadRegions, readRegions } from "#store/files/RegionsFile.ts"
import { tlsFiles } from "../shared/NodeCertificate.ts"
import { roleListener, serveRoutes } from "./NodeLayer.ts"
import { announce, Started } from "./Started.ts"

/** The place of a node outside of the table of protocol 15.4. It is the only region, so its place does not matter. */
const standalonePlace = { name: "Local", country: "ZZ", latitude: 0, longitude: 0 } as const

const known: ReadonlyArray<Region> = [...builtInRegions, stagingRegion]

/** The regions of the settings. Undefined if they name none, so this node is the only one. */
const regionMap = (config: Config): Effect.Effect<RegionMap | undefined, BadRegions> => {
  if (config.regions !== "") return readRegions(config.regions)
  if (config.edgeDomain === "") return Effect.succeed(undefined)
  const [first, ...rest] = builtInRegions
  return Effect.succeed(first && { regions: [first, ...rest], rtt_ms: {} })
}

const withEndpoints = (config: Config, { regions }: RegionMap) =>
  Effect.forEach(regions, (region) => {
    if (region.endpoint !== undefined) return Effect.succeed({ ...region, endpoint: region.endpoint })
    if (config.edgeDomain !== "") {
      return Effect.succeed({ ...region, endpoint: edgeAddress(region.code, config.edgeDomain) })
    }
    const problem = `${region.code} has no endpoint, and EDGEWISE_EDGE_DOMAIN is not set`
    return Effect.fail(new BadRegions({ path: config.regions, problem }))
  })

/** The regions that this router hands out, with their addresses. Undefined if this node is the only one. */
export const endpointsOf = (config: Config) =>
  Effect.flatMap(regionMap(config), (map) =>
    map === undefined ? Effect.succeed(undefined) : withEndpoints(config, map),
  )

/** The address of this process's edge, or the address at which the settings say that one listens. */
const edgeBase = (config: Config, { listening }: Started["Service"]): string =>
  listening.find(({ role }) => role === "edge")?.base ??
  `${tlsFiles(config) === undefined ? "http" : "https"}://${config.host.includes(":") ? `[${config.host}]` : config.host}:${config.port}`

/** Directory and health of the regions. */
const regions = (config: Config, observer: NodeMeters) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const started = yield* Started
      const ttlSeconds = config.routeTtlSeconds
      const map = yield* regionMap(config)
      if (map === undefined) {
        const own = known.find(({ code }) => code === config.region) ?? {
          code: config.region,
          ...standalonePlace,
        }
        return Layer.merge(
          RegionHealth.unwatched,
          Layer.succeed(RegionDirectory, {
            regions: [own],
            rttMs: {},
            home: { country: own.country, point: own, isKnown: true },
            ttlSeconds,
            endpointOf: (_, host) => ownAddress(edgeBase(config, started), host),
          }),
        )
      }
      const placed = yield* withEndpoints(config, map)
      const endpoints = new Map(placed.map(({ code, endpoint }) => [code, endpoint]))
      const home = [...placed, ...known].find(({ code }) => code === config.region)
      return Layer.merge(
        config.regionHealthSeconds === 0
          ? RegionHealth.unwatched
          : Layer.tap(
              RegionHealth.watched({ regions: placed, everyMs: config.regionHealthSeconds * 1000 }),
              (context) =>
                Effect.sync(() => {
                  observer.regions = Context.get(context, RegionHealth).readings
                }),
            ),
        Layer.succeed(RegionDirectory, {
          regions: placed,
          rttMs: map.rtt_ms,
          home: { country: home?.country, point: home ?? map.regions[0], isKnown: home !== undefined },
          ttlSeconds,
          endpointOf: ({ code }) => endpoints.get(code) ?? "",
        }),
      )
    }),
  )

export const routerRole = (config: Config, observer: NodeMeters) =>
  Layer.mergeAll(serveRoutes(RouterRoutes), Layer.effectDiscard(announce("router"))).pipe(
    Layer.provide(roleListener(config, "router", observer)),
    Layer.provide([
      regions(config, observer),
      config.geoipDb === "" ? GeoDatabase.none : GeoDatabase.file(config.geoipDb),
      Layer.succeed(TrustedProxies, config.trustedProxies),
      Drain.layer,
    ]),
  )
