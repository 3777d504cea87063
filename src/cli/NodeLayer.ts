// The layers of one node, stacked: what `serve` runs and what the contract tests start in their own process.
// Knows every room by its layer and decides nothing; settings come from Config.
import { join } from "node:path"
import { Layer } from "effect"
import { HttpRouter } from "effect/http"
import { Device } from "#actors/Device.ts"
import { Drain } from "#actors/Drain.ts"
import { type Deployment, ModelRegistry } from "#actors/ModelRegistry.ts"
import { SessionTokens } from "#api/Authentication.ts"
import { EdgeRoutes } from "#api/EdgeRoutes.ts"
import { NodeIdentity } from "#api/Health.ts"
import { Repository } from "#api/Models.ts"
import { RateLimit } from "#api/RateLimit.ts"
import { TranscriptionJobs } from "#api/TranscriptionJobs.ts"
import { UploadDir } from "#api/TranscriptionUpload.ts"
import { CodecPool } from "#audio/CodecPool.ts"
import { Decoder } from "#audio/Decoder.ts"
import { VoiceUrl } from "#audio/VoiceUrl.ts"
import { storeLayer } from "#store/Store.ts"
import type { TransportSettings } from "#transport/TransportSettings.ts"
import * as UwsServer from "#transport/UwsServer.ts"
import type { Config } from "../Config.ts"
import { version } from "./Version.ts"

/** Every origin may call an inference endpoint: the credential is in a header, never in a cookie. */
const edgeHeaders = { "access-control-allow-origin": "*" }

/** A path is one spelling: what Unmatched does not know must not be served either. */
const routerConfig = { caseSensitive: true, ignoreTrailingSlash: false, ignoreDuplicateSlashes: false }

const edge = (config: Config, settings: Partial<TransportSettings>) =>
  HttpRouter.serve(EdgeRoutes, { routerConfig, disableLogger: true, disableListenLog: true }).pipe(
    Layer.provideMerge(
      UwsServer.layer({ host: config.host, port: config.port, responseHeaders: edgeHeaders, settings }),
    ),
  )

/** A node, listening as soon as it is built. `settings` shortens the transport's deadlines for tests. */
export const nodeLayer = (
  config: Config,
  deployed: ReadonlyArray<Deployment>,
  settings: Partial<TransportSettings> = {},
) =>
  edge(config, settings).pipe(
    Layer.provideMerge(TranscriptionJobs.layer),
    Layer.provideMerge(ModelRegistry.layer(deployed)),
    Layer.provideMerge(Device.layer()),
    Layer.provideMerge(
      Layer.mergeAll(
        CodecPool.layer(),
        Decoder.layer(),
        VoiceUrl.layer(),
        Drain.layer,
        RateLimit.layer(config.rateLimit),
        SessionTokens.none,
        storeLayer({ dataDir: config.dataDir }),
        Layer.succeed(NodeIdentity, { name: config.region, version }),
        Layer.succeed(Repository, config.catalog),
        Layer.succeed(UploadDir, join(config.dataDir, "uploads")),
      ),
    ),
  )
