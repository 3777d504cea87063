// `edgewise doctor`: measures on a private node, in about a minute, what this machine can do with the catalog.
// docs/doctor.md says how each figure is measured.
import { Console, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { load } from "#config/Config.ts"
import { switchOff } from "#confine/Launch.ts"
import { nearestName } from "#domain/models/NearestName.ts"
import { examine } from "../doctor/Examination.ts"
import { pageOf } from "../doctor/report/Page.ts"
import { deployedNow } from "../roles/NodeLayer.ts"
import { AlreadyReported } from "../shared/CommandLine.ts"
import { interrupted } from "../shared/NodeClient.ts"
import { integerFlag, jsonFlag, printJson, wrongUsage } from "../shared/Output.ts"
import { progressLine } from "../shared/ProgressLine.ts"
import { settingFlags, textsOf } from "../shared/SettingFlags.ts"
import { keepHeapSmall } from "../shared/V8Flags.ts"

/** With the steps before it, about a minute. */
const defaultSeconds = 55
const leastSeconds = 5
const mostSeconds = 3_600

const refusedUsage = (message: string) => wrongUsage(["doctor"], message)

const unknownModel = (id: string, known: ReadonlyArray<string>) => {
  const near = nearestName(id, known)
  return refusedUsage(
    near === undefined
      ? `--model: this catalog deploys no model ${id} here; it deploys ${known.join(", ")}`
      : `--model: this catalog deploys no model ${id} here; did you mean ${near}?`,
  )
}

const { catalog, confine, dataDir, memoryMb, region, regions } = settingFlags

export const doctor = Command.make(
  "doctor",
  {
    model: Flag.String("model").pipe(
      Flag.withMetavar("ID"),
      Flag.withDescription("Measure this model only; may be given several times; default: all models"),
      Flag.between(0, 256),
    ),
    seconds: integerFlag(
      "seconds",
      leastSeconds,
      mostSeconds,
      "SECONDS",
      `Time for loading and measuring models, ${leastSeconds} to ${mostSeconds}; models that do not fit are marked; default: ${defaultSeconds}`,
    ).pipe(Flag.withDefault(defaultSeconds)),
    json: jsonFlag,
    catalog,
    dataDir,
    region,
    regions,
    memoryMb,
    confine,
  },
  Effect.fn(function* ({ json, model, seconds, ...given }) {
    const config = yield* load(textsOf(given))
    const all = yield* deployedNow(config)
    const known = all.map(({ entry }) => entry.id)
    const unknown = model.find((id) => !known.includes(id))
    if (unknown !== undefined) return yield* unknownModel(unknown, known)
    const deployed = model.length === 0 ? all : all.filter(({ entry }) => model.includes(entry.id))
    // Same as in `serve`.
    keepHeapSmall()
    if (!config.confine) switchOff()
    const examination = Effect.gen(function* () {
      const progress = yield* progressLine()
      return yield* examine({ config, deployed, seconds, progress })
    })
    const document = yield* Effect.scoped(Effect.raceFirst(examination, interrupted))
    if (json) yield* printJson(document)
    else yield* Console.log(pageOf(document))
    if (!document.ok) return yield* new AlreadyReported({ exitStatus: 1 })
  }),
).pipe(Command.withDescription("Measure what this machine can do with the catalog, and what limits it"))
