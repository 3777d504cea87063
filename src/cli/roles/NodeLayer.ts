// The layers of one node, combined from the settings of Config.
import { networkInterfaces } from "node:os"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { CallPeers } from "#actors/calls/CallPeers.ts"
import { Drain } from "#actors/Drain.ts"
import { Device } from "#actors/device/Device.ts"
import { NvidiaSmi } from "#actors/device/NvidiaSmi.ts"
import { LiveSessions } from "#actors/live/LiveSessions.ts"
import { memoryWatch } from "#actors/model/MemoryWatch.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { NodeTree, part } from "#actors/NodeTree.ts"
import * as Specifications from "#actors/Specifications.ts"
import { knownPaths as authPaths } from "#api/AuthRoutes.ts"
import { AuthFailures } from "#api/access/AuthFailures.ts"
import { DevelopmentKeyCheck, makeDevelopmentKeyCheck } from "#api/access/DevelopmentKey.ts"
import { Idempotency } from "#api/access/Idempotency.ts"
import { CurrentOperatorToken, OperatorToken } from "#api/access/OperatorToken.ts"
import { PublicKeys } from "#api/access/PublicKeys.ts"
import { RateLimit } from "#api/access/RateLimit.ts"
import { TrustedProxies } from "#api/access/RequestAddresses.ts"
import { sessionVerifier } from "#api/access/SessionVerifier.ts"
import { OpenCalls } from "#api/calls/OpenCalls.ts"
import { ConversationSessions } from "#api/conversation/ConversationSessions.ts"
import { SecretSessions } from "#api/conversation/door/SecretSessions.ts"
import { EdgeRoutes, knownPaths as edgePaths } from "#api/EdgeRoutes.ts"
import { standardHeaders } from "#api/http/StandardHeaders.ts"
import { IntakePace } from "#api/live/IntakePace.ts"
import { EventLoopDelay } from "#api/metrics/EventLoopDelay.ts"
import { MetricsPage } from "#api/metrics/Metrics.ts"
import { CatalogReload } from "#api/operations/CatalogReload.ts"
import { ModelPulls } from "#api/operations/ModelPulls.ts"
import { Repository } from "#api/operations/Models.ts"
import { knownPaths as routerPaths } from "#api/RouterRoutes.ts"
import { TwilioToken } from "#api/telephony/TwilioSocket.ts"
import { CodecPool } from "#audio/codecs/CodecPool.ts"
import { Decoder, defaultLimits } from "#audio/Decoder.ts"
import { VoiceUrl } from "#audio/VoiceUrl.ts"
import { catalogRegions } from "#config/Config.ts"
import { hubSettings, isHubOffline, s3Access, visibleGpus } from "#config/OtherVariables.ts"
import type { Config } from "#config/Settings.ts"
import { portSettings, type Role } from "#config/settings/ListenerSettings.ts"
import { type DevKeyAccess, devKeyAccess } from "#domain/access/DevelopmentKey.ts"
import type { Deployment } from "#domain/models/Deployment.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { LogRate } from "#domain/process/LogRate.ts"
import { CurrentLogRate } from "#domain/process/OperatorLog.ts"
import { NodeIdentity } from "#http/NodeIdentity.ts"
import { CurrentNodeMeters, NodeMeters } from "#http/NodeMeters.ts"
import { PictureUrl } from "#pictures/PictureUrl.ts"
import { answerFailures } from "#services/AnswerFailures.ts"
import { ConversationList, Conversations } from "#services/Conversations.ts"
import { detectionModels } from "#services/detection/DetectionModels.ts"
import { s3Uploads } from "#services/jobs/S3Uploads.ts"
import { sharedUploads } from "#services/jobs/SharedUploads.ts"
import { TranscriptionJobs } from "#services/jobs/TranscriptionJobs.ts"
import { OpenAiNames } from "#services/ModelLookup.ts"
import { SpeechAdmission } from "#services/SpeechAdmission.ts"
import { ringFolder } from "#services/TranscriptionAudio.ts"
import { UploadDir } from "#services/TranscriptionUpload.ts"
import { keepOperatorToken } from "#store/accounts/OperatorToken.ts"
import { storeUpkeep } from "#store/deletion/StoreUpkeep.ts"
import { compiledCode } from "#store/files/CompileCacheFolder.ts"
import { edgeLock } from "#store/files/DataDir.ts"
import { processHome } from "#store/files/ProcessFolder.ts"
import { keptMeasurements } from "#store/files/ResultFiles.ts"
import { parseS3Address } from "#store/files/S3Address.ts"
import type { StoreUnavailable } from "#store/files/StoreErrors.ts"
import { Presence } from "#store/nodes/Presence.ts"
import { type Store, storeLayer } from "#store/Store.ts"
import { SigningKeys } from "#store/signing/SigningKeys.ts"
import { Retention } from "#store/sql/Retention.ts"
import { requestsWaitBriefly } from "#store/sql/StorePresence.ts"
import * as TransportServer from "#transport/server/TransportServer.ts"
import type { TransportSettings } from "#transport/TransportSettings.ts"
import { deployedConversations, deployments, locate } from "#weights/ModelFiles.ts"
import { weightsDir } from "#weights/Weights.ts"
import { tlsFiles } from "../shared/NodeCertificate.ts"
import { version } from "../shared/Version.ts"
import { portFor } from "./Launcher.ts"
import { nodeDecoder } from "./NodeDecoder.ts"

/**
 * A path has one spelling: what KnownPaths does not hold must not be served either. The router's own limit for a parameter is 100
 * characters, which a model's id may exceed; the head of a request is limited anyway.
 */
const routerConfig = {
  caseSensitive: true,
  ignoreTrailingSlash: false,
  ignoreDuplicateSlashes: false,
  maxParamLength: Number.POSITIVE_INFINITY,
}

const hourMs = 3_600_000

const uploadFolder = (config: Config): string => join(config.dataDir, "uploads")

/** What the HTTP library of a listener depends on, the same for every role. */
export const listenerFacts = (config: Config) => ({
  host: config.host,
  tls: tlsFiles(config),
  transport: config.transport,
  isTrusted: config.trustedProxies,
})

/** The listener of a role. @param more what the listeners of other roles have not */
export const roleListener = (
  config: Config,
  role: Role,
  observer: NodeMeters,
  { settings, ...more }: Pick<TransportServer.ListenOptions, "anonymousPerSecond" | "settings"> = {},
) => {
  const { chunkedBodies, maxConnections } = config
  return TransportServer.layer({
    ...listenerFacts(config),
    port: portFor(role, config[portSettings[role]]),
    responseHeaders: standardHeaders,
    settings: { chunkedBodies, maxConnections, ...settings },
    observer,
    ...more,
  })
}

/** What a role's listener serves. Access lines are written elsewhere. */
export const serveRoutes = <A, E, R>(routes: Layer.Layer<A, E, R>) =>
  Layer.provide(
    HttpRouter.serve(routes, { routerConfig, disableLogger: true, disableListenLog: true }),
    requestsWaitBriefly,
  )

const edge = (config: Config, settings: Partial<TransportSettings>, observer: NodeMeters) =>
  serveRoutes(EdgeRoutes).pipe(
    Layer.provideMerge(
      roleListener(config, "edge", observer, {
        settings: { spillFolder: uploadFolder(config), ...settings },
        anonymousPerSecond: config.anonymousRate,
      }),
    ),
  )

/**
 * The store and keys that the roles of a process share. It must be made once and passed to each role, because each new
 * layer value would be built again.
 */
export type NodeStore = Layer.Layer<Store | SigningKeys, StoreUnavailable>

export const nodeStore = (config: Config): NodeStore => {
  const { databaseGraceSeconds, databaseUrl, dataDir, roles, signingKeyDays } = config
  const keys = { makesKeys: roles.includes("auth"), rotateEveryMs: signingKeyDays * 24 * 60 * 60 * 1000 }
  const signing = databaseUrl === "" ? SigningKeys.layer({ dataDir, ...keys }) : SigningKeys.sharedLayer(keys)
  const store = signing.pipe(
    Layer.provideMerge(storeLayer({ dataDir, databaseUrl, databaseGraceMs: databaseGraceSeconds * 1000 })),
    Layer.provideMerge(Layer.succeed(Retention, retentionOf(config))),
  )
  return part("store", Specifications.part("the store goes on without it", "store"), store)
}

const withSharedUploads = ({ uploads }: Config, store: NodeStore) => {
  if (uploads === "") return store
  const address = parseS3Address(uploads)
  if (address === undefined) return Layer.provideMerge(sharedUploads(uploads), store)
  const bucket = Layer.unwrap(Effect.map(s3Access(), (access) => s3Uploads({ address, access })))
  return Layer.provideMerge(bucket, store)
}

/** How long the store keeps things, from the settings in hours and days. */
const retentionOf = ({ answerHours, jobHours, receiptDays }: Config): Retention => ({
  answerMs: answerHours * hourMs,
  jobMs: jobHours * hourMs,
  receiptMs: receiptDays === 0 ? undefined : receiptDays * 24 * hourMs,
})

const sessions = ({ authJwksUrl }: Config) =>
  sessionVerifier.pipe(
    Layer.provide(authJwksUrl === "" ? PublicKeys.local : PublicKeys.remote({ url: authJwksUrl })),
  )

/** From where the development key is accepted, for every role of the process. */
export const developmentKeyAccess = ({ databaseUrl, devKey, host }: Config): DevKeyAccess =>
  devKeyAccess({ setting: devKey, host, sharedDatabase: databaseUrl !== "" })

/** The counters of one process, whatever its roles. */
export const nodeMeters = (): NodeMeters =>
  new NodeMeters([edgePaths, authPaths, routerPaths].flatMap(Object.keys))

/** Addresses of this machine that others may reach; the loopback address where it has no other. */
const ownAddresses = (): ReadonlyArray<string> => {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  const others = all.filter(({ address, internal }) => !internal && !address.startsWith("fe80:"))
  return others.length === 0 ? ["127.0.0.1"] : others.map(({ address }) => address)
}

const isAny = (host: string): boolean => host === "0.0.0.0" || host === "::"

/** The UDP socket is bound like the listener, so that a node that listens on loopback takes no call from elsewhere. */
const callPeers = ({ host, webrtcAddress, webrtcPort }: Config) =>
  webrtcPort === 0
    ? CallPeers.off
    : part(
        "calls",
        Specifications.part("no calls are taken"),
        CallPeers.layer({
          port: webrtcPort,
          bindAddress: isAny(host) ? undefined : host,
          addresses: webrtcAddress.length > 0 ? webrtcAddress : isAny(host) ? ownAddresses() : [host],
        }),
      )

/** What the catalog deploys here now. */
export const deployedNow = (config: Config) =>
  Effect.flatMap(catalogRegions(config), (regions) => deployments(config, regions))

/** The conversations that the catalog deploys here now. */
const conversationsNow = (config: Config) =>
  Effect.flatMap(catalogRegions(config), (regions) => deployedConversations(config, regions))

/** The present location of an entry's weights. A wrong file is a problem of its model only. */
const relocate =
  ({ catalog, dataDir }: Config) =>
  (entry: ModelEntry): Effect.Effect<Deployment> =>
    Effect.catch(locate(catalog, entry, weightsDir(dataDir)), ({ message: problem }) =>
      Effect.succeed({ entry, files: {}, sizeBytes: 0, problem }),
    )

/** Pulls of weights by the node itself, on an operator's request. */
const modelPulls = ({ catalog, dataDir }: Config) =>
  Layer.unwrap(
    Effect.map(hubSettings(), (hub) =>
      ModelPulls.layer({
        hub: isHubOffline() ? undefined : hub,
        dir: weightsDir(dataDir),
        dataDir,
        catalog,
      }),
    ),
  )

/** The operator token, once the edge listens: it names the port. */
const operatorToken = ({ dataDir }: Config) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { address } = yield* HttpServer.HttpServer
      const token = (yield* CurrentOperatorToken).issue("port" in address ? address.port : 0)
      yield* keepOperatorToken(dataDir, token)
    }),
  )

/** What this node offers to the others that share its store, once the edge listens: that names the port. */
const offers = ({ host }: Config) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { address } = yield* HttpServer.HttpServer
      const jobs = yield* TranscriptionJobs
      const registry = yield* ModelRegistry
      const port = "port" in address ? address.port : 0
      const presence = yield* Presence
      presence.offers(() => ({
        address: `${host.includes(":") ? `[${host}]` : host}:${port}`,
        models: registry.all().map(({ entry }) => entry.id),
        freeSlots: jobs.freeSlots(),
      }))
    }),
  )

/** A node, which listens as soon as the layer is built. `settings` shortens the transport's deadlines for tests. */
export const nodeLayer = (
  config: Config,
  deployed: ReadonlyArray<Deployment>,
  settings: Partial<TransportSettings> = {},
  store: NodeStore = nodeStore(config),
  meters: NodeMeters = nodeMeters(),
) =>
  Layer.merge(operatorToken(config), offers(config)).pipe(
    Layer.provideMerge(Layer.merge(edge(config, settings, meters), answerFailures)),
    Layer.provide(MetricsPage.layer({ maxAgeMs: config.metricsAgeMs, restricted: config.metricsAuth })),
    Layer.provideMerge(modelPulls(config)),
    Layer.provideMerge(
      CatalogReload.layer(
        Effect.all({ deployments: deployedNow(config), conversations: conversationsNow(config) }),
      ),
    ),
    Layer.provideMerge(storeUpkeep),
    Layer.provideMerge(
      part(
        "transcription jobs",
        Specifications.part("jobs that were accepted wait, and new ones are refused"),
        TranscriptionJobs.layer,
      ),
    ),
    Layer.provideMerge(
      part("conversations", Specifications.part("the others go on"), ConversationSessions.layer),
    ),
    Layer.provideMerge(
      Layer.mergeAll(SecretSessions.layer, OpenCalls.layer, callPeers(config), detectionModels),
    ),
    Layer.provideMerge(
      part("live sessions", Specifications.part("idle sessions are not closed"), LiveSessions.layer),
    ),
    Layer.provideMerge(
      part(
        "memory",
        Specifications.part("the level of memory pressure stays as it is"),
        memoryWatch({ evicts: config.evictIdle }),
      ),
    ),
    Layer.provideMerge(
      part(
        "models",
        Specifications.part("the model's requests are answered 503, the others go on"),
        ModelRegistry.layer(deployed, {
          idleUnloadMs: config.idleUnloadSeconds * 1000,
          evicts: config.evictIdle,
          relocate: relocate(config),
        }),
      ),
    ),
    Layer.provideMerge(
      part(
        "devices",
        Specifications.part("nothing can be loaded on it; loaded models go on"),
        Device.layer({
          budgetBytes: config.memoryMb === 0 ? undefined : config.memoryMb * 1024 * 1024,
          visible: visibleGpus(),
        }),
      ),
    ),
    Layer.provideMerge(NvidiaSmi.layer()),
    Layer.provideMerge(
      Layer.mergeAll(
        CodecPool.layer(),
        Decoder.layer({
          program: Effect.map(nodeDecoder(config), ({ program }) => program),
          ...(config.audioHours === 0
            ? {}
            : { limits: { ...defaultLimits, maxSeconds: config.audioHours * 3_600 } }),
        }),
        VoiceUrl.layer,
        PictureUrl.layer({ plainHttp: config.httpPictures }),
        Drain.layer,
        EventLoopDelay.layer,
        Layer.succeed(CurrentNodeMeters, meters),
        Layer.sync(CurrentLogRate, () => new LogRate()),
        RateLimit.layer(config.rateLimit),
        IntakePace.layer(config.rateLimit > 0),
        Idempotency.layer,
        AuthFailures.layer(config.authFailureLimit),
        Layer.succeed(TrustedProxies, config.trustedProxies),
        Layer.succeed(DevelopmentKeyCheck, makeDevelopmentKeyCheck(developmentKeyAccess(config))),
        Layer.sync(CurrentOperatorToken, () => new OperatorToken()),
        SpeechAdmission.layer,
        sessions(config),
        Layer.succeed(NodeIdentity, { name: config.region, version }),
        Layer.succeed(Repository, config.catalog),
        Layer.succeed(OpenAiNames, config.openaiAliases),
        Layer.succeed(TwilioToken, config.twilioToken),
        // The catalog has been read before, for its models: a mistake in it has been reported then.
        Layer.effect(
          Conversations,
          Effect.map(Effect.orDie(conversationsNow(config)), (all) => new ConversationList(all)),
        ),
        Layer.succeed(UploadDir, uploadFolder(config)),
      ),
    ),
    Layer.provideMerge(withSharedUploads(config, store)),
    Layer.provideMerge(NodeTree.layer),
    Layer.provideMerge(processHome(config.dataDir, ringFolder(uploadFolder(config)))),
    Layer.provideMerge(Layer.effectDiscard(edgeLock(config.dataDir))),
    Layer.provideMerge(compiledCode(config.dataDir)),
    Layer.provideMerge(keptMeasurements(config.dataDir)),
  )
