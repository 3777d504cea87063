// A real node in the test's own process: the layers that `serve` runs, listening on a free port, over a fresh data
// directory and a catalog of the test's choice. Besides the interface of clients a test sees what operators
// see in /metrics, process ids and the transport's counters. For signals and whole processes see NodeProcess.
import { join } from "node:path"
import { Context, Effect, Exit, Layer, Logger, References, Scope } from "effect"
import { HttpServer } from "effect/http"
import type { SqlClient } from "effect/sql"
import type { Drain } from "#actors/Drain.ts"
import type { Device } from "#actors/device/Device.ts"
import type { HostGauges } from "#actors/engine/HostOptions.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { ModelStatus } from "#actors/model/ModelState.ts"
import type { Redeployment } from "#actors/model/Redeployment.ts"
import { SettleEvery } from "#api/live/LiveAdmission.ts"
import { CurrentRealtimeBudget, type RealtimeBudget } from "#api/live/SocketShare.ts"
import { nodeLayer } from "#cli/roles/NodeLayer.ts"
import { load } from "#config/Config.ts"
import type { SettingName } from "#config/Settings.ts"
import { DetectionPatience } from "#services/detection/DetectionModels.ts"
import { UploadRetry } from "#services/jobs/JobEnd.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import type { Jobs } from "#store/ledger/Jobs.ts"
import { LeaseTicks } from "#store/ledger/LeasedBalances.ts"
import type { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { BeatEvery } from "#store/nodes/Presence.ts"
import { Listener } from "#transport/server/TransportServer.ts"
import type { TransportCounts } from "#transport/TransportCounters.ts"
import type { TransportSettings } from "#transport/TransportSettings.ts"
import { deployments } from "#weights/ModelFiles.ts"
import { uses } from "../groups/Uses.ts"
import { withCompiledCode } from "../process/CompiledCode.ts"
import { temporaryDir } from "../process/TemporaryDir.ts"
import { overTls, ownFiles, tlsPorts } from "../servers/TestCertificates.ts"
import { unwatchPort, watchPort } from "../wire/WireTap.ts"
import { fakeModel, type TestModel, writeCatalog } from "./TestCatalog.ts"

export { temporaryDir } from "../process/TemporaryDir.ts"

interface TestKeys {
  /** Key of an organization with a payment method. */
  readonly dev: string
  /** Key of an organization with 5 USD. */
  readonly credit: string
  /** Key of an organization without credit. */
  readonly broke: string
  readonly revoked: string
}

export interface TestNodeOptions {
  readonly models?: ReadonlyArray<TestModel>
  /** Requests a minute; off by default, because a test makes many. */
  readonly rateLimit?: number
  readonly transport?: Partial<TransportSettings>
  /** Whether to serve TLS, with a certificate that this process trusts. Default: by EDGEWISE_TEST_TLS. */
  readonly tls?: boolean
  /** Any other settings of `serve`. */
  readonly settings?: Partial<Record<SettingName, string>>
  /** A data directory that the node leaves in place. Absent: a new one that is removed at the end. */
  readonly dataDir?: string
  /** Receives its log lines; absent: they are dropped. */
  readonly log?: Layer.Layer<never>
  /** What its realtime sockets share; absent: what those of this process share. */
  readonly realtime?: RealtimeBudget
  /** Where nodes share a store: interval of the beats. */
  readonly beatMs?: number
  /** Where nodes share a store: how often leases of money are looked through for those that idle. */
  readonly leaseTickMs?: number
  /** Pause of a job whose shared upload cannot be reached. */
  readonly uploadRetryMs?: number
  /** After which a live session that goes on is charged for its audio so far. */
  readonly settleEveryMs?: number
  /** How long an answer of a detection model is waited for. */
  readonly detectionMs?: number
}

type Services =
  | Accounts
  | SqlClient.SqlClient
  | Device
  | Drain
  | Jobs
  | UsageLedger
  | ModelRegistry
  | Redeployment
  | Listener
  | HttpServer.HttpServer

export interface TestNode {
  readonly port: number
  readonly base: string
  /** `ws://` or `wss://`, host and port. */
  readonly socketBase: string
  readonly dataDir: string
  /** The catalog file it was started with, for tests that edit it. */
  readonly catalog: string
  readonly keys: TestKeys
  readonly counts: TransportCounts
  readonly listener: Listener["Service"]
  /** Gauges and counters of /metrics, by name and labels. */
  readonly metrics: () => Promise<ReadonlyMap<string, number>>
  readonly fetch: (path: string, init?: RequestInit) => Promise<Response>
  /** POSTs JSON with the development key, or another. */
  readonly post: (path: string, body: unknown, init?: PostOptions) => Promise<Response>
  /** The gauges of a model's host, read without a request. Throws if the model is not loaded. */
  readonly gauges: (model: string) => HostGauges
  readonly status: (model: string) => ModelStatus | undefined
  /** Runs an effect against the node's own services. */
  readonly run: <A, E>(effect: Effect.Effect<A, E, Services>) => Promise<A>
  readonly stop: () => Promise<void>
}

interface PostOptions {
  readonly key?: string
  readonly signal?: AbortSignal
}

/** The transport of every test node. Set EDGEWISE_TRANSPORT to run tests on another one than the default. */
export const transport = process.env.EDGEWISE_TRANSPORT

/** Whether test nodes serve with Node's own server, whose parser differs. */
export const onNode = transport === "node"

const makeKeys = Effect.gen(function* () {
  const accounts = yield* Accounts
  // They exist already if a node starts again on the same directory, or another one on the same database.
  yield* Effect.ignore(accounts.createOrg({ name: "dev", paymentMethod: true }))
  const dev = yield* accounts.createKey({ org: "dev" })
  const credit = yield* accounts.createKey({ org: "credit" })
  yield* Effect.ignore(accounts.createOrg({ name: "broke" }))
  const broke = yield* accounts.createKey({ org: "broke" })
  const revoked = yield* accounts.createKey({ org: "dev", user: "gone" })
  yield* accounts.revokeKey(revoked.keyId)
  return { dev: dev.apiKey, credit: credit.apiKey, broke: broke.apiKey, revoked: revoked.apiKey }
})

export const startNode = async (options: TestNodeOptions = {}): Promise<TestNode> => {
  uses("process", "a listening server")
  const dir = temporaryDir()
  const dataDir = options.dataDir ?? join(dir.path, "data")
  const catalog = join(dir.path, "catalog.json")
  writeCatalog(catalog, options.models ?? [fakeModel])
  withCompiledCode(dataDir)
  const scope = Scope.makeUnsafe()
  const secure = options.tls ?? overTls
  const files = secure ? await ownFiles() : undefined
  const flags = {
    port: "0",
    dataDir,
    catalog,
    rateLimit: String(options.rateLimit ?? 0),
    ...(files === undefined ? {} : { tlsCert: files.cert, tlsKey: files.key }),
    // Tests read metrics that include the last event.
    metricsAgeMs: "0",
    ...(transport === undefined ? {} : { transport }),
    ...options.settings,
  }
  const build = Effect.gen(function* () {
    const config = yield* load(flags, {})
    const deployed = yield* deployments(config)
    const quiet = Layer.mergeAll(Logger.layer([]), Layer.succeed(References.MinimumLogLevel, "None"))
    const realtime =
      options.realtime === undefined ? Layer.empty : Layer.succeed(CurrentRealtimeBudget, options.realtime)
    const { beatMs, detectionMs, leaseTickMs, settleEveryMs, uploadRetryMs } = options
    const layer = nodeLayer(config, deployed, options.transport).pipe(
      Layer.provide(
        Layer.mergeAll(
          options.log ?? quiet,
          realtime,
          beatMs === undefined ? Layer.empty : Layer.succeed(BeatEvery, beatMs),
          leaseTickMs === undefined ? Layer.empty : Layer.succeed(LeaseTicks, leaseTickMs),
          uploadRetryMs === undefined ? Layer.empty : Layer.succeed(UploadRetry, uploadRetryMs),
          settleEveryMs === undefined ? Layer.empty : Layer.succeed(SettleEvery, settleEveryMs),
          detectionMs === undefined
            ? Layer.empty
            : Layer.succeed(DetectionPatience, { speech: detectionMs, "turn ends": detectionMs }),
        ),
      ),
    )
    return yield* Layer.buildWithScope(layer, scope)
  })
  const services = await Effect.runPromise(build).catch((error: unknown) => {
    dir.remove()
    throw error
  })
  const run = <A, E>(effect: Effect.Effect<A, E, Services>) =>
    Effect.runPromise(Effect.provideContext(effect, services))
  const keys = await run(makeKeys)
  const { address } = Context.get(services, HttpServer.HttpServer)
  const port = "port" in address ? address.port : 0
  const base = `${secure ? "https" : "http"}://127.0.0.1:${port}`
  if (secure) tlsPorts.add(port)
  watchPort(port, "edge")
  let stopped: Promise<void> | undefined
  const node: TestNode = {
    port,
    base,
    socketBase: base.replace(/^http/, "ws"),
    dataDir,
    catalog,
    keys,
    run,
    counts: Context.get(services, Listener).counts,
    listener: Context.get(services, Listener),
    metrics: async () => parseMetrics(await (await fetch(`${base}/metrics`)).text()),
    fetch: (path, init) => fetch(base + path, init),
    post: (path, body, { key = keys.dev, signal } = {}) =>
      fetch(base + path, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: typeof body === "string" ? body : JSON.stringify(body),
        ...(signal === undefined ? {} : { signal }),
      }),
    status: (model) => Context.get(services, ModelRegistry).find(model)?.status,
    gauges: (model) => {
      const gauges = Context.get(services, ModelRegistry).find(model)?.host?.gauges()
      if (gauges === undefined) throw new Error(`${model} is not loaded`)
      return gauges
    },
    stop: () => {
      tlsPorts.delete(port)
      unwatchPort(port)
      stopped ??= Effect.runPromise(Scope.close(scope, Exit.void)).finally(dir.remove)
      return stopped
    },
  }
  return node
}

/** `name{labels} value` lines; anything else but a comment is an error. */
export const parseMetrics = (text: string): ReadonlyMap<string, number> =>
  new Map(
    text
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => {
        const match = /^([a-z_]+(?:\{[^}]*\})?) (-?[0-9.e+-]+)$/.exec(line)
        if (match === null) throw new Error(`not a metric: ${line}`)
        return [match[1]!, Number(match[2])] as const
      }),
  )

/** True if no request runs or waits at any model. */
export const isIdle = (metrics: ReadonlyMap<string, number>): boolean =>
  [...metrics].every(
    ([name, value]) =>
      value === 0 || !/^edgewise_(requests_in_flight|slots_busy|requests_waiting)(\{|$)/.test(name),
  )

/** Polls until `condition` holds: for facts that no event announces. Fails after `patienceMs`. */
export const eventually = async (
  condition: () => boolean | Promise<boolean>,
  what: string,
  patienceMs = 60_000,
): Promise<void> => {
  const startMs = performance.now()
  while (!(await condition())) {
    const waitedMs = performance.now() - startMs
    if (waitedMs > patienceMs) throw new Error(`did not happen: ${what}`)
    // What takes long is asked for less often: many conditions are a request to the node.
    const pauseMs = waitedMs < 200 ? 5 : waitedMs < 1_000 ? 20 : 50
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

/** Waits for models with `load: start`, with a long limit because engine processes start slowly on a busy machine. */
export const untilLoaded = (node: TestNode, ...models: ReadonlyArray<string>): Promise<void> =>
  eventually(() => models.every((model) => node.status(model) === "loaded"), `${models} are loaded`, 120_000)

export const untilIdle = (node: TestNode): Promise<void> =>
  eventually(async () => isIdle(await node.metrics()), "the node is idle")
