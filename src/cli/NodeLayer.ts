// The layers of one node, stacked: what `serve` runs and what the contract tests start in their own process.
// Knows every room by its layer and decides nothing; settings come from Config.
import { join } from "node:path"
import { Layer } from "effect"
import { HttpRouter } from "effect/http"
import { Device } from "#actors/Device.ts"
import { Drain } from "#actors/Drain.ts"
import { LiveSessions } from "#actors/LiveSessions.ts"
import { type Deployment, ModelRegistry } from "#actors/ModelRegistry.ts"
import { EdgeRoutes } from "#api/EdgeRoutes.ts"
import { NodeIdentity } from "#api/Health.ts"
import { Repository } from "#api/Models.ts"
import { PublicKeys } from "#api/PublicKeys.ts"
import { RateLimit } from "#api/RateLimit.ts"
import { sessionVerifier } from "#api/SessionVerifier.ts"
import { SpeechAdmission } from "#api/SpeechAdmission.ts"
import { TranscriptionJobs } from "#api/TranscriptionJobs.ts"
import { UploadDir } from "#api/TranscriptionUpload.ts"
import { CodecPool } from "#audio/CodecPool.ts"
import { Decoder } from "#audio/Decoder.ts"
import { VoiceUrl } from "#audio/VoiceUrl.ts"
import { SigningKeys } from "#store/SigningKeys.ts"
import { type Store, storeLayer } from "#store/Store.ts"
import type { StoreUnavailable } from "#store/StoreErrors.ts"
import type { TransportSettings } from "#transport/TransportSettings.ts"
import * as UwsServer from "#transport/UwsServer.ts"
import type { Config } from "../Config.ts"
import { version } from "./Version.ts"

/** Every origin may call: the credential is in a header, never in a cookie. */
export const anyOrigin = { "access-control-allow-origin": "*" }

/** A path is one spelling: what Unmatched does not know must not be served either. */
const routerConfig = { caseSensitive: true, ignoreTrailingSlash: false, ignoreDuplicateSlashes: false }

const edge = (config: Config, settings: Partial<TransportSettings>) =>
  HttpRouter.serve(EdgeRoutes, { routerConfig, disableLogger: true, disableListenLog: true }).pipe(
    Layer.provideMerge(
      UwsServer.layer({ host: config.host, port: config.port, responseHeaders: anyOrigin, settings }),
    ),
  )

/** What the roles of a process share. Made once and passed to each: a layer is built once as long as it is the same. */
export type NodeStore = Layer.Layer<Store | SigningKeys, StoreUnavailable>

export const nodeStore = (config: Config): NodeStore =>
  SigningKeys.layer({
    dataDir: config.dataDir,
    makesKeys: config.roles.includes("auth"),
    rotateEveryMs: config.signingKeyDays * 24 * 60 * 60 * 1000,
  }).pipe(Layer.provideMerge(storeLayer({ dataDir: config.dataDir })))

const sessions = ({ authJwksUrl }: Config) =>
  sessionVerifier.pipe(
    Layer.provide(authJwksUrl === "" ? PublicKeys.local : PublicKeys.remote({ url: authJwksUrl })),
  )

/** A node, listening as soon as it is built. `settings` shortens the transport's deadlines for tests. */
export const nodeLayer = (
  config: Config,
  deployed: ReadonlyArray<Deployment>,
  settings: Partial<TransportSettings> = {},
  store: NodeStore = nodeStore(config),
) =>
  edge(config, settings).pipe(
    Layer.provideMerge(TranscriptionJobs.layer),
    Layer.provideMerge(LiveSessions.layer),
    Layer.provideMerge(ModelRegistry.layer(deployed)),
    Layer.provideMerge(Device.layer()),
    Layer.provideMerge(
      Layer.mergeAll(
        CodecPool.layer(),
        Decoder.layer(),
        VoiceUrl.layer(),
        Drain.layer,
        RateLimit.layer(config.rateLimit),
        SpeechAdmission.layer,
        sessions(config),
        Layer.succeed(NodeIdentity, { name: config.region, version }),
        Layer.succeed(Repository, config.catalog),
        Layer.succeed(UploadDir, join(config.dataDir, "uploads")),
      ),
    ),
    Layer.provideMerge(store),
  )
