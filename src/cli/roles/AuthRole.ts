// The auth role as a layer: its listener over the store and the signing keys.
import { Layer } from "effect"
import { Drain } from "#actors/Drain.ts"
import { AuthRoutes } from "#api/AuthRoutes.ts"
import { AuthFailures } from "#api/access/AuthFailures.ts"
import { DevelopmentKeyCheck, makeDevelopmentKeyCheck } from "#api/access/DevelopmentKey.ts"
import { RateLimit } from "#api/access/RateLimit.ts"
import { TrustedProxies } from "#api/access/RequestAddresses.ts"
import { SessionSeconds, sessionFailuresAMinute } from "#api/access/Sessions.ts"
import type { Config } from "#config/Settings.ts"
import type { NodeMeters } from "#http/NodeMeters.ts"
import { developmentKeyAccess, type NodeStore, roleListener, serveRoutes } from "./NodeLayer.ts"
import { announce } from "./Started.ts"

export const authRole = (config: Config, store: NodeStore, observer: NodeMeters) =>
  Layer.mergeAll(serveRoutes(AuthRoutes), Layer.effectDiscard(announce("auth"))).pipe(
    Layer.provide(roleListener(config, "auth", observer)),
    Layer.provide([
      AuthFailures.layer(sessionFailuresAMinute),
      // Counted separately: requests for sessions are not requests to an edge.
      RateLimit.layer(config.rateLimit),
      Layer.succeed(SessionSeconds, config.sessionSeconds),
      Layer.succeed(TrustedProxies, config.trustedProxies),
      Layer.succeed(DevelopmentKeyCheck, makeDevelopmentKeyCheck(developmentKeyAccess(config))),
      Drain.layer,
      store,
    ]),
  )
