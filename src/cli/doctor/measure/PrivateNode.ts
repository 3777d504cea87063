// The measured node: the layers that `serve` runs, in this process, on a free port of 127.0.0.1, over a temporary data
// directory with a key of its own. Its engines run in processes with the same confinement as in `serve`. All of it ends
// with the scope.
import { copyFileSync, existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Logger, References, type Scope } from "effect"
import { HttpServer } from "effect/http"
import { Device } from "#actors/device/Device.ts"
import { LiveSessions } from "#actors/live/LiveSessions.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { Config } from "#config/Settings.ts"
import type { Deployment } from "#domain/models/Deployment.ts"
import type { Target } from "#harness/client/Exchange.ts"
import { SpeechAdmission } from "#services/SpeechAdmission.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { resultFiles } from "#store/files/ResultFiles.ts"
import { weightsDir } from "#weights/Weights.ts"
import { nodeLayer } from "../../roles/NodeLayer.ts"
import { NotMeasured } from "../load/LoadClient.ts"

export interface PrivateNode {
  readonly target: Target
  readonly registry: ModelRegistry["Service"]
  readonly device: Device["Service"]
  readonly live: LiveSessions["Service"]
  readonly speech: SpeechAdmission["Service"]
}

/** Removed with the scope, also after an interruption. */
const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "edgewise-doctor-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
)

/** The node's log is not printed: the report says what failed. */
const quiet = Layer.mergeAll(Logger.layer([]), Layer.succeed(References.MinimumLogLevel, "None"))

/** The operator's settings, except addresses, store, key and limits for callers. */
const privateConfig = (config: Config, dataDir: string): Config => ({
  ...config,
  dataDir,
  databaseUrl: "",
  host: "127.0.0.1",
  port: 0,
  roles: ["edge"],
  tls: "off",
  tlsCert: "",
  tlsKey: "",
  devKey: "off",
  authJwksUrl: "",
  rateLimit: 0,
  idleUnloadSeconds: 0,
  accessLog: false,
})

/** The command loads the models one after the other, so that each load is timed alone. */
const onDemand = (deployment: Deployment): Deployment => ({
  ...deployment,
  entry: { ...deployment.entry, runtime: { ...deployment.entry.runtime, load: "demand" } },
})

/**
 * Copies what the operator's node measured after earlier loads, so that models use the same numbers of threads here.
 */
const copyMeasurements = (from: string, to: string): void => {
  for (const name of resultFiles) {
    const file = join(from, name)
    if (existsSync(file)) copyFileSync(file, join(to, name))
  }
}

const makeKey = Effect.gen(function* () {
  const accounts = yield* Accounts
  yield* accounts.createOrg({ name: "doctor", paymentMethod: true })
  return (yield* accounts.createKey({ org: "doctor" })).apiKey
})

const portOf = (server: HttpServer.HttpServer["Service"]): number =>
  "port" in server.address ? server.address.port : 0

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

export const privateNode = (
  config: Config,
  deployed: ReadonlyArray<Deployment>,
): Effect.Effect<PrivateNode, NotMeasured, Scope.Scope> =>
  Effect.gen(function* () {
    const dataDir = yield* temporaryFolder
    // Pulled weights are read from the operator's data directory.
    symlinkSync(weightsDir(config.dataDir), weightsDir(dataDir))
    copyMeasurements(config.dataDir, dataDir)
    const own = privateConfig(config, dataDir)
    const built = yield* Layer.build(nodeLayer(own, deployed.map(onDemand)).pipe(Layer.provide(quiet)))
    const node = Effect.gen(function* () {
      const key = yield* makeKey
      return {
        target: {
          base: `http://127.0.0.1:${portOf(yield* HttpServer.HttpServer)}`,
          headers: { authorization: `Bearer ${key}` },
          // A day: each task has a deadline of its own.
          timeoutMs: 86_400_000,
        },
        registry: yield* ModelRegistry,
        device: yield* Device,
        live: yield* LiveSessions,
        speech: yield* SpeechAdmission,
      }
    })
    return yield* Effect.provideContext(node, built)
  }).pipe(
    Effect.mapError(
      (error) => new NotMeasured({ problem: `the private node could not start: ${messageOf(error)}` }),
    ),
  )
