// `edgewise check`: finds what would stop or hinder `serve` with the same settings, without serving. Reads files, makes
// and removes an empty file in the data directory, and binds each port for a moment.
import { Console, Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { catalogRegions, environmentMistakes, load } from "#config/Config.ts"
import { otlpSettings } from "#config/OtherVariables.ts"
import type { Config } from "#config/Settings.ts"
import { portSettings } from "#config/settings/ListenerSettings.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { isDeployedIn } from "#domain/models/ModelEntry.ts"
import { GeoDatabase } from "#store/files/GeoDatabase.ts"
import { listenProblem } from "#transport/ListenProblem.ts"
import { locate } from "#weights/ModelFiles.ts"
import { readModels } from "#weights/NodeCatalog.ts"
import { weightsDir } from "#weights/Weights.ts"
import { nodeDecoder, requireNamedDecoder } from "../roles/NodeDecoder.ts"
import { dataDirProblem } from "../roles/Probes.ts"
import { endpointsOf } from "../roles/RouterRole.ts"
import { clockProblem, memoryProblem } from "../roles/StartWarnings.ts"
import { gpuProblem, webrtcProblem } from "../setup/Packages.ts"
import { AlreadyReported, exitStatusOf, linesOf } from "../shared/CommandLine.ts"
import { nodeCertificate } from "../shared/NodeCertificate.ts"
import { jsonFlag, printJson } from "../shared/Output.ts"
import { settingFlags, textsOf } from "../shared/SettingFlags.ts"

type Subject =
  | "settings"
  | "certificates"
  | "regions"
  | "geo database"
  | "catalog"
  | "weights"
  | "gpu"
  | "calls"
  | "data directory"
  | "clock"
  | "memory"
  | "decoder"
  | "ports"

export interface Finding {
  readonly subject: Subject
  /** One line that names the file, key or setting at fault. */
  readonly problem: string
  /** 2 for settings and for files that an operator writes, 1 for all else. */
  readonly exitStatus: number
}

const findingsOf = (subject: Subject, error: unknown): ReadonlyArray<Finding> =>
  linesOf(error).map((problem) => ({ subject, problem, exitStatus: exitStatusOf(error) }))

/** Runs a step and returns its failure as findings. */
const attempt = <A, E>(subject: Subject, step: Effect.Effect<A, E>): Effect.Effect<ReadonlyArray<Finding>> =>
  Effect.match(step, { onFailure: (error) => findingsOf(subject, error), onSuccess: () => [] })

const weightsOf = (config: Config, entry: ModelEntry): Effect.Effect<ReadonlyArray<Finding>> =>
  Effect.match(locate(config.catalog, entry, weightsDir(config.dataDir)), {
    onFailure: ({ message }) => [{ subject: "weights" as const, problem: message, exitStatus: 1 }],
    onSuccess: (deployment) => {
      const pull =
        (deployment.missing ?? []).length === 0 ? [] : [`it is not pulled: edgewise models pull ${entry.id}`]
      const wrong =
        "problem" in deployment && typeof deployment.problem === "string" ? [deployment.problem] : []
      return [...pull, ...wrong].map((problem) => ({
        subject: "weights" as const,
        problem: problem.startsWith(`${entry.id}: `) ? problem : `${entry.id}: ${problem}`,
        exitStatus: 1,
      }))
    },
  })

const catalogAndWeights = (config: Config): Effect.Effect<ReadonlyArray<Finding>> =>
  Effect.gen(function* () {
    // A wrong regions file is reported separately.
    const regions = yield* Effect.orElseSucceed(catalogRegions(config), () => undefined)
    const models = (yield* readModels(config, regions)).map(({ entry }) => entry)
    const deployed = models.filter((entry) => isDeployedIn(entry, config.region))
    if (deployed.length === 0) {
      const problem = `${config.catalog}: no model is deployed in the region ${config.region}`
      return [{ subject: "catalog" as const, problem, exitStatus: 2 }]
    }
    const gpus = deployed.flatMap((entry): ReadonlyArray<Finding> => {
      const problem = gpuProblem(entry)
      return problem === undefined ? [] : [{ subject: "gpu", problem, exitStatus: 1 }]
    })
    return [...gpus, ...(yield* Effect.forEach(deployed, (entry) => weightsOf(config, entry))).flat()]
  }).pipe(Effect.catch((error) => Effect.succeed(findingsOf("catalog", error))))

const listenersOf = (config: Config) =>
  config.roles.map((role) => ({ role, port: config[portSettings[role]] })).filter((one) => one.port !== 0)

/** Runs a step that returns the problem in one line, if there is one. */
const oneFinding = (subject: Subject, step: Effect.Effect<string | undefined>) =>
  Effect.map(
    step,
    (problem): ReadonlyArray<Finding> => (problem === undefined ? [] : [{ subject, problem, exitStatus: 1 }]),
  )

const decoder = (config: Config): Effect.Effect<ReadonlyArray<Finding>> =>
  config.decoder === "auto"
    ? oneFinding(
        "decoder",
        Effect.match(nodeDecoder(config), { onFailure: ({ detail }) => detail, onSuccess: () => undefined }),
      )
    : attempt("decoder", requireNamedDecoder(config))

const ports = (config: Config): Effect.Effect<ReadonlyArray<Finding>> =>
  Effect.map(
    Effect.forEach(listenersOf(config), ({ port, role }) =>
      oneFinding(
        "ports",
        Effect.map(
          Effect.promise(() => listenProblem(config.host, port)),
          (problem) => (problem === undefined ? undefined : `${role}: ${problem}`),
        ),
      ),
    ),
    (found) => found.flat(),
  )

/** Everything that is wrong. Files and ports are checked only if the settings that name them are valid. */
export const findings = (texts: Parameters<typeof load>[0]): Effect.Effect<ReadonlyArray<Finding>> =>
  Effect.gen(function* () {
    const unknown = environmentMistakes().map(
      (problem): Finding => ({ subject: "settings", problem, exitStatus: 2 }),
    )
    const telemetry = yield* attempt("settings", otlpSettings())
    const loaded = yield* Effect.result(load(texts))
    if (loaded._tag === "Failure") {
      return [...unknown, ...telemetry, ...findingsOf("settings", loaded.failure)]
    }
    const config = loaded.success
    const { geoipDb, roles } = config
    const steps = [
      // This would make a self-signed certificate if there is none, which a check must not do.
      config.tls === "self-signed" ? undefined : attempt("certificates", nodeCertificate(config)),
      roles.includes("router") || config.regions !== "" ? attempt("regions", endpointsOf(config)) : undefined,
      roles.includes("router") && geoipDb !== ""
        ? attempt("geo database", Effect.scoped(Layer.build(GeoDatabase.file(geoipDb))))
        : undefined,
      roles.includes("edge") ? catalogAndWeights(config) : undefined,
      roles.includes("edge") || roles.includes("auth")
        ? oneFinding("data directory", dataDirProblem(config.dataDir))
        : undefined,
      oneFinding("clock", clockProblem(config)),
      roles.includes("edge")
        ? oneFinding(
            "memory",
            Effect.sync(() => memoryProblem(config)),
          )
        : undefined,
      roles.includes("edge") ? decoder(config) : undefined,
      roles.includes("edge")
        ? oneFinding(
            "calls",
            Effect.sync(() => webrtcProblem(config)),
          )
        : undefined,
      ports(config),
    ]
    const found = yield* Effect.forEach(steps, (step) => step ?? Effect.succeed([]))
    return [...unknown, ...telemetry, ...found.flat()]
  })

export const check = Command.make(
  "check",
  { ...settingFlags, json: jsonFlag },
  Effect.fn(function* ({ json, ...given }) {
    const found = yield* findings(textsOf(given))
    const exitStatus = Math.max(0, ...found.map((finding) => finding.exitStatus))
    if (json) {
      const listed = found.map(({ problem, subject }) => ({ subject, problem }))
      yield* printJson({ ok: found.length === 0, findings: listed })
    } else {
      for (const { problem, subject } of found) yield* Console.log(`${subject}: ${problem}`)
      if (found.length === 0)
        yield* Console.log("nothing is wrong with settings, files, data directory and ports")
    }
    if (exitStatus > 0) return yield* new AlreadyReported({ exitStatus })
  }),
).pipe(Command.withDescription("Check settings, files and ports as `serve` would, without serving"))
