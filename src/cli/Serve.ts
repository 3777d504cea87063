// `edgewise serve`: starts a node's roles (Roles), tells how to reach it, and drains it when it is told to stop.
import { Console, Effect, Fiber, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { Drain } from "#actors/Drain.ts"
import type { Deployment } from "#actors/ModelRegistry.ts"
import type { NodeMeters } from "#api/NodeMeters.ts"
import { deployments } from "#store/ModelFiles.ts"
import { weightsDir } from "#store/Weights.ts"
import { type Config, hubSettings, load, otlpSettings, roles, type SettingName, settings } from "../Config.ts"
import { Hangup } from "./Hangup.ts"
import { keepHeapSmall } from "./HeapGrowth.ts"
import { nodeMeters } from "./NodeLayer.ts"
import { rolesLayer } from "./Roles.ts"
import { Started } from "./Started.ts"
import { telemetry } from "./Telemetry.ts"
import { version } from "./Version.ts"

/** Temperature 0: the first answer somebody sees should be the model's best one. */
const curlLine = (base: string, key: string, model: string) =>
  `curl ${base}/v1/chat/completions -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' ` +
  `-d '{"model":"${model}","temperature":0,"messages":[{"role":"user","content":"What is the capital of Italy?"}]}'`

const greet = Effect.fnUntraced(function* (config: Config, deployed: ReadonlyArray<Deployment>) {
  const { developmentKey: key, listening } = yield* Started
  yield* Console.log(`edgewise ${version}, region ${config.region}`)
  for (const { base, role } of listening.toSorted((a, b) => roles.indexOf(a.role) - roles.indexOf(b.role))) {
    yield* Console.log(`${role} listening on ${base}`)
  }
  const demonstrations = deployed.filter(({ entry }) => entry.demonstration).length
  if (demonstrations > 0) {
    yield* Console.log(
      `${demonstrations} of ${deployed.length} models run on small built-in demonstration weights`,
    )
  }
  for (const { entry, missing = [] } of deployed) {
    if (missing.length > 0) yield* Console.log(`${entry.id} is not pulled: edgewise models pull ${entry.id}`)
  }
  const base = listening.find(({ role }) => role === "edge")?.base
  if (key === undefined || base === undefined) return
  yield* Console.log(`development API key: ${key}`)
  const model = deployed.find(({ entry }) => entry.kind === "text")?.entry.id
  if (model !== undefined) yield* Console.log(`try it:\n${curlLine(base, key, model)}`)
})

/** Completes at the first SIGINT or SIGTERM; a second one ends the process at once. */
const toldToStop = Effect.callback<string>((resume) => {
  const onSignal = (signal: string) => {
    process.removeAllListeners("SIGINT").removeAllListeners("SIGTERM")
    process.once("SIGINT", () => process.exit(1)).once("SIGTERM", () => process.exit(1))
    resume(Effect.succeed(signal))
  }
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal)
})

const run = Effect.fnUntraced(function* (config: Config, meters: NodeMeters) {
  const serves = config.roles.includes("edge")
  const deployed = serves ? yield* deployments(config.catalog, config.region, weightsDir(config.dataDir)) : []
  const stopping = yield* Effect.forkChild(toldToStop, { startImmediately: true })
  yield* Effect.gen(function* () {
    yield* greet(config, deployed)
    const signal = yield* Fiber.join(stopping)
    const drain = yield* Drain
    yield* Effect.logInfo("draining").pipe(Effect.annotateLogs({ signal, inFlight: drain.inFlight() }))
    const listeners = (yield* Started).listening.map(({ listener }) => listener)
    yield* Effect.forEach(listeners, (listener) => listener.windDown({ accept: true }))
    const finished = yield* drain.close.pipe(
      // Work that is done may still be on its way to its client.
      Effect.andThen(Effect.forEach(listeners, (listener) => listener.idle)),
      Effect.timeoutOption(config.drainSeconds * 1000),
    )
    if (Option.isNone(finished)) {
      yield* Effect.logWarning("drain time is over").pipe(Effect.annotateLogs({ cut: drain.inFlight() }))
    }
  }).pipe(Effect.provide(rolesLayer(config, deployed, meters)))
  yield* Effect.logInfo("stopped")
})

const flagOf = (name: SettingName) =>
  Flag.String(settings[name].flag).pipe(
    Flag.withDescription(`${settings[name].help} (${settings[name].variable})`),
    Flag.optional,
  )

const flags = {
  host: flagOf("host"),
  roles: flagOf("roles"),
  port: flagOf("port"),
  authPort: flagOf("authPort"),
  routerPort: flagOf("routerPort"),
  dataDir: flagOf("dataDir"),
  databaseUrl: flagOf("databaseUrl"),
  region: flagOf("region"),
  catalog: flagOf("catalog"),
  rateLimit: flagOf("rateLimit"),
  authFailureLimit: flagOf("authFailureLimit"),
  idleUnloadSeconds: flagOf("idleUnloadSeconds"),
  evictIdle: flagOf("evictIdle"),
  memoryMb: flagOf("memoryMb"),
  drainSeconds: flagOf("drainSeconds"),
  sessionSeconds: flagOf("sessionSeconds"),
  signingKeyDays: flagOf("signingKeyDays"),
  authJwksUrl: flagOf("authJwksUrl"),
  trustedProxies: flagOf("trustedProxies"),
  edgeDomain: flagOf("edgeDomain"),
  regions: flagOf("regions"),
  routeTtlSeconds: flagOf("routeTtlSeconds"),
  regionHealthSeconds: flagOf("regionHealthSeconds"),
  geoipDb: flagOf("geoipDb"),
  log: flagOf("log"),
  accessLog: flagOf("accessLog"),
  logLevel: flagOf("logLevel"),
} satisfies Record<SettingName, unknown>

export const serve = Command.make(
  "serve",
  flags,
  Effect.fn(function* (given) {
    const texts: Partial<Record<SettingName, string>> = {}
    for (const [name, value] of Object.entries(given)) {
      if (Option.isSome(value)) texts[name as SettingName] = value.value
    }
    const config = yield* load(texts)
    // Read again where it is used; here so that a mistake in it is found before anything starts.
    yield* hubSettings()
    keepHeapSmall()
    const otlp = yield* otlpSettings()
    const meters = nodeMeters()
    // Around all of it: a SIGHUP while the node starts must not end it.
    yield* run(config, meters).pipe(
      Effect.provide(Hangup.layer),
      Effect.provide(telemetry(config, otlp, meters)),
    )
  }),
).pipe(Command.withDescription("Run a node"))
