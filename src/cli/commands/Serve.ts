// `edgewise serve`: starts the node's roles, prints how to reach it, and drains it when it is told to stop.
import { Console, Effect, Fiber, Option } from "effect"
import { Command } from "effect/cli"
import { Drain } from "#actors/Drain.ts"
import { load } from "#config/Config.ts"
import { hubSettings, otlpSettings } from "#config/OtherVariables.ts"
import type { Config } from "#config/Settings.ts"
import { type Role, roles } from "#config/settings/ListenerSettings.ts"
import { confinementLine, switchOff } from "#confine/Launch.ts"
import type { Deployment } from "#domain/models/Deployment.ts"
import type { NodeMeters } from "#http/NodeMeters.ts"
import { tryDataDirectory } from "#store/files/DataDir.ts"
import { transportLine } from "#transport/server/TransportChoice.ts"
import { frontEndLack } from "#weights/FrontEnd.ts"
import { curlLine, readyLine } from "../roles/CurlLine.ts"
import { credentialLines } from "../roles/FirstCredential.ts"
import { onLauncherGone, reportCrash, tellLauncher } from "../roles/Launcher.ts"
import { decoderLine, nodeDecoder, requireNamedDecoder } from "../roles/NodeDecoder.ts"
import { deployedNow, nodeMeters } from "../roles/NodeLayer.ts"
import { rolesLayer } from "../roles/Roles.ts"
import { Started } from "../roles/Started.ts"
import { startWarnings } from "../roles/StartWarnings.ts"
import { LinesWritten, telemetry } from "../roles/Telemetry.ts"
import { SetupFailed } from "../setup/InstallPackages.ts"
import { gpuProblem, webrtcProblem } from "../setup/Packages.ts"
import { keepCertificate, type NodeCertificate, nodeCertificate } from "../shared/NodeCertificate.ts"
import { Reload, reloadOnHangup } from "../shared/Reload.ts"
import { settingFlags, textsOf } from "../shared/SettingFlags.ts"
import { keepHeapSmall } from "../shared/V8Flags.ts"
import { version } from "../shared/Version.ts"

/** What each listener is for. */
const purposes: Readonly<Record<Role, string>> = {
  edge: "the API and the playground",
  auth: "session tokens for browsers",
  router: "the edge that is nearest to a caller",
}

const rolesLine = (started: Config["roles"]): string => {
  const all = started.map((role) => `${role}: ${purposes[role]}`).join("; ")
  return started.length === 1 ? all : `${all}; --roles edge starts the first alone`
}

const isUsable = ({ missing = [], problem }: Deployment): boolean =>
  problem === undefined && missing.length === 0

const greet = Effect.fnUntraced(function* (
  config: Config,
  deployed: ReadonlyArray<Deployment>,
  certificate: NodeCertificate | undefined,
) {
  const { credential, listening } = yield* Started
  yield* Console.log(`edgewise ${version}, region ${config.region}`)
  for (const { base, listener, role } of listening.toSorted(
    (a, b) => roles.indexOf(a.role) - roles.indexOf(b.role),
  )) {
    yield* Console.log(`${role} listening on ${base} with ${transportLine(listener.transport)}`)
  }
  yield* Console.log(rolesLine(config.roles))
  if (config.roles.includes("edge")) {
    yield* Console.log(confinementLine())
    yield* Console.log(yield* decoderLine(config))
  }
  if (certificate?.selfSigned === true) {
    yield* Console.log(`self-signed certificate, SHA-256 ${certificate.certificate.fingerprint}`)
    yield* Console.log(`clients must trust this file, e.g. curl --cacert ${certificate.files.cert}`)
  }
  const demonstrations = deployed.filter(({ entry }) => entry.demonstration).length
  if (demonstrations > 0) {
    yield* Console.log(
      `${demonstrations} of ${deployed.length} models run on small built-in demonstration weights`,
    )
  }
  const later = deployed.filter((one) => isUsable(one) && one.entry.runtime.load !== "start")
  if (later.length > 0)
    yield* Console.log(`loaded when first used: ${later.map(({ entry }) => entry.id).join(", ")}`)
  for (const { entry, missing = [], problem } of deployed) {
    if (problem !== undefined) yield* Console.log(`${entry.id} cannot be loaded: ${problem}`)
    else if (missing.length > 0)
      yield* Console.log(`${entry.id} is not pulled: edgewise models pull ${entry.id}`)
    const lack = frontEndLack(entry)
    if (lack?.all === false) yield* Console.log(`${entry.id}: ${lack.problem}`)
    const withoutGpu = gpuProblem(entry)
    if (withoutGpu !== undefined) yield* Console.log(withoutGpu)
  }
  if (credential === undefined) return
  for (const line of credentialLines(credential, config)) yield* Console.log(line)
})

/**
 * A node of several answers 503 for so long before it closes its connections, milliseconds: the proxy in front of them sends what arrives in
 * that time to another, and has noticed the end before a request is lost on a connection that is being closed. It is three of the checks
 * of docs/regions-of-nodes.md.
 */
const noticedMs = 1_500

/** The last lines of the start, printed once the models have loaded that it loads. */
const sayReady = Effect.fnUntraced(function* (
  deployed: ReadonlyArray<Deployment>,
  certificate: NodeCertificate | undefined,
) {
  const { credential, listening, loads } = yield* Started
  yield* loads
  yield* yield* LinesWritten
  const base = listening.find(({ role }) => role === "edge")?.base
  const model = deployed.find((one) => one.entry.kind === "text" && isUsable(one))?.entry.id
  if (credential === undefined || base === undefined || model === undefined)
    return yield* Console.log("ready")
  const target = { base, key: credential.key?.apiKey, model, certificate }
  yield* Console.log(`${readyLine(target)}\n${curlLine(target)}`)
})

/** Completes at the first SIGINT or SIGTERM. A second one ends the process at once. */
const toldToStop = Effect.callback<string>((resume) => {
  const onSignal = (signal: string) => {
    process.removeAllListeners("SIGINT").removeAllListeners("SIGTERM")
    process.once("SIGINT", () => process.exit(1)).once("SIGTERM", () => process.exit(1))
    tellLauncher({ stopping: true })
    resume(Effect.succeed(signal))
  }
  process.once("SIGINT", onSignal).once("SIGTERM", onSignal)
  onLauncherGone(() => onSignal("the process that started the node has ended"))
})

const run = Effect.fnUntraced(function* (config: Config, meters: NodeMeters) {
  yield* reportCrash
  const certificate = yield* nodeCertificate(config)
  const serves = config.roles.includes("edge")
  if (serves || config.roles.includes("auth")) yield* tryDataDirectory(config.dataDir)
  if (serves) {
    yield* requireNamedDecoder(config)
    const withoutCalls = webrtcProblem(config)
    if (withoutCalls !== undefined) return yield* new SetupFailed({ message: withoutCalls })
    // Found out while the models load.
    yield* Effect.forkChild(Effect.ignore(nodeDecoder(config)), { startImmediately: true })
  }
  for (const warning of yield* startWarnings(config)) yield* Effect.logWarning(warning)
  const deployed = serves ? yield* deployedNow(config) : []
  const stopping = yield* Effect.forkChild(toldToStop, { startImmediately: true })
  yield* Effect.gen(function* () {
    const { listening } = yield* Started
    tellLauncher({
      listening: Object.fromEntries(listening.map(({ base, role }) => [role, Number(new URL(base).port)])),
    })
    yield* greet(config, deployed, certificate)
    const saying = yield* Effect.forkScoped(sayReady(deployed, certificate))
    const listeners = listening.map(({ listener }) => listener)
    if (certificate !== undefined) yield* keepCertificate(config, certificate, listeners)
    const signal = yield* Fiber.join(stopping)
    yield* Fiber.interrupt(saying)
    const drain = yield* Drain
    yield* Effect.logInfo("draining").pipe(Effect.annotateLogs({ signal, inFlight: drain.inFlight() }))
    yield* Effect.forEach(listeners, (listener) => listener.windDown({ accept: true }))
    const finished = yield* drain.close.pipe(
      // Responses of finished work may still be in transmission.
      Effect.andThen(Effect.forEach(listeners, (listener) => listener.idle)),
      Effect.zip(config.databaseUrl === "" ? Effect.void : Effect.sleep(noticedMs), { concurrent: true }),
      Effect.timeoutOption(config.drainSeconds * 1000),
    )
    if (Option.isNone(finished)) {
      yield* Effect.logWarning("drain time is over").pipe(Effect.annotateLogs({ cut: drain.inFlight() }))
    }
  }).pipe(Effect.scoped, Effect.provide(rolesLayer(config, deployed, meters)))
  yield* Effect.logInfo("stopped")
})

export const serve = Command.make(
  "serve",
  settingFlags,
  Effect.fn(function* (given) {
    const config = yield* load(textsOf(given))
    // Read again when it is used; here so that a mistake in it is found before anything starts.
    yield* hubSettings()
    keepHeapSmall()
    if (!config.confine) switchOff()
    const otlp = yield* otlpSettings()
    const meters = nodeMeters()
    // Around everything: a SIGHUP while the node starts must not end it.
    yield* Effect.andThen(reloadOnHangup, run(config, meters)).pipe(
      Effect.scoped,
      Effect.provide(Reload.layer),
      Effect.provide(telemetry(config, otlp, meters)),
    )
  }),
).pipe(Command.withDescription("Run a node"))
