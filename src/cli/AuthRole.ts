// The auth role as a layer: its listener over the store and the signing keys. Knows every room by its layer and decides
// nothing.
import { Layer } from "effect"
import { HttpServer } from "effect/http"
import { Drain } from "#actors/Drain.ts"
import { authApi } from "#api/AuthApi.ts"
import { TrustedProxies } from "#api/CallerAddress.ts"
import { RateLimit } from "#api/RateLimit.ts"
import { AuthFailures, SessionSeconds } from "#api/Sessions.ts"
import * as UwsServer from "#transport/UwsServer.ts"
import type { Config } from "../Config.ts"
import { anyOrigin, type NodeStore } from "./NodeLayer.ts"
import { announce } from "./Started.ts"

export const authRole = (config: Config, store: NodeStore) =>
  Layer.mergeAll(HttpServer.serve(authApi), Layer.effectDiscard(announce("auth"))).pipe(
    Layer.provide(
      UwsServer.layerServer({ host: config.host, port: config.authPort, responseHeaders: anyOrigin }),
    ),
    Layer.provide([
      AuthFailures.layer,
      // Its own count: sessions are not requests to an edge.
      RateLimit.layer(config.rateLimit),
      Layer.succeed(SessionSeconds, config.sessionSeconds),
      Layer.succeed(TrustedProxies, config.trustedProxies),
      Drain.layer,
      store,
    ]),
  )
