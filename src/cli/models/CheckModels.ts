// `edgewise models check`: whether models would load here, without loading them: their files (there, complete, of the right kind, with
// the right sum) and the memory that a node would claim for them.

import { Console, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { Device, hostBytesOf } from "#actors/device/Device.ts"
import { claimOf, processBytes, tooLargeProblem } from "#actors/model/MemoryClaim.ts"
import { load } from "#config/Config.ts"
import type { Config } from "#config/Settings.ts"
import { partKinds } from "#domain/conversation/ConversationEntry.ts"
import type { Deployment } from "#domain/models/Deployment.ts"
import { isDeployedIn, type ModelEntry } from "#domain/models/ModelEntry.ts"
import { suggestion } from "#domain/models/NearestName.ts"
import { isOnProcessor } from "#domain/models/Placement.ts"
import { table } from "#domain/process/Columns.ts"
import { checkGguf } from "#weights/formats/GgufCheck.ts"
import { bytesOf } from "#weights/found/FoundModel.ts"
import { locate } from "#weights/ModelFiles.ts"
import {
  type CatalogConversation,
  type CatalogModel,
  originOf,
  readEntries,
  writtenCatalog,
} from "#weights/NodeCatalog.ts"
import { sumProblems } from "#weights/PulledSums.ts"
import { weightsDir } from "#weights/Weights.ts"
import { AlreadyReported } from "../shared/CommandLine.ts"
import { localFailure } from "../shared/NodeClient.ts"
import { jsonFlag, printJson, switchFlag, textFlag } from "../shared/Output.ts"
import { catalogFlags, textsOf } from "../shared/SettingFlags.ts"
import { withDevice } from "./MachineMemory.ts"

interface Checked {
  readonly id: string
  readonly from: string
  readonly weights: "here" | "not pulled" | "unusable"
  readonly claimedBytes: number
  /** What the contexts of all sequences take once they are full. Undefined where the files do not say. */
  readonly contextBytes: number | undefined
  readonly problems: ReadonlyArray<string>
}

const megabytes = (bytes: number): string => String(Math.ceil(bytes / 1024 ** 2))

const numberOf = (value: unknown, fallback: number): number => (typeof value === "number" ? value : fallback)

/** Defaults as those of the adapter. */
export const contextBytesOf = ({ entry, files }: Deployment): Effect.Effect<number | undefined> =>
  entry.adapter !== "llama-gguf" || files.weights === undefined
    ? Effect.succeed(undefined)
    : Effect.promise(() => checkGguf(files.weights ?? "").catch(() => undefined)).pipe(
        Effect.map((found) =>
          found === undefined || "problem" in found || found.tokenBytes === undefined
            ? undefined
            : found.tokenBytes *
              numberOf(entry.options.slots, 16) *
              Math.min(
                numberOf(entry.options.contextTokens, 8192),
                found.contextTokens ?? Number.POSITIVE_INFINITY,
              ),
        ),
      )

const checkOne = Effect.fnUntraced(function* (config: Config, { entry, file }: CatalogModel, sums: boolean) {
  const device = yield* Device
  const dir = weightsDir(config.dataDir)
  const found = yield* Effect.match(locate(config.catalog, entry, dir), {
    onFailure: ({ message }): Deployment => ({ entry, files: {}, sizeBytes: 0, problem: message }),
    onSuccess: (deployment) => deployment,
  })
  const { missing = [], problem } = found
  // What is not here counts with the size that the catalog expects.
  const sizeBytes = Math.max(found.sizeBytes, bytesOf(entry.files))
  const tooLarge = yield* tooLargeProblem(device, { entry, sizeBytes }, processBytes)
  const claimedBytes = hostBytesOf(claimOf({ entry, sizeBytes }, processBytes), false)
  const contextBytes = yield* contextBytesOf(found)
  const fullBytes = claimedBytes + (contextBytes ?? 0)
  const grows =
    tooLarge === undefined && isOnProcessor(entry) && fullBytes > device.modelBytes()
      ? [
          `with full contexts it takes ${megabytes(fullBytes)} MB, models may have ${megabytes(device.modelBytes())} MB; lower its options.slots or options.contextTokens`,
        ]
      : []
  const wrongSums = sums ? yield* Effect.promise(() => sumProblems(dir, entry)) : []
  const checked: Checked = {
    id: entry.id,
    from: originOf(file),
    weights:
      problem !== undefined || wrongSums.length > 0 ? "unusable" : missing.length > 0 ? "not pulled" : "here",
    claimedBytes,
    contextBytes,
    problems: [
      ...(problem === undefined ? [] : [`${problem}; repair the file, or remove the model and add it again`]),
      ...wrongSums,
      ...(missing.length === 0 ? [] : [`it is not pulled: edgewise models pull ${entry.id}`]),
      ...(tooLarge === undefined
        ? []
        : [`${tooLarge}; add a smaller one in its place, or raise EDGEWISE_MEMORY_MB where there is more`]),
      ...grows,
    ],
  }
  return checked
})

/** The models that load at the start, and those that were added, need their memory at the same time. */
const togetherProblem = (
  models: ReadonlyArray<CatalogModel>,
  checked: ReadonlyArray<Checked>,
  modelBytes: number,
): string | undefined => {
  const atStart = new Set(
    models.filter(({ entry }) => entry.runtime.load === "start").map(({ entry }) => entry.id),
  )
  const bytes = checked
    .filter(({ id }) => atStart.has(id))
    .reduce((sum, { claimedBytes }) => sum + claimedBytes, 0)
  return bytes <= modelBytes
    ? undefined
    : `the models that load at the start need ${megabytes(bytes)} MB together, models may have ${megabytes(modelBytes)} MB: set runtime.load of some to "demand", or EDGEWISE_EVICT_IDLE=true`
}

const chosen = (all: ReadonlyArray<CatalogModel>, ids: ReadonlyArray<string>, path: string) => {
  const known = all.map(({ entry }: { readonly entry: ModelEntry }) => entry.id)
  const unknown = ids.find((id) => !known.includes(id))
  if (unknown !== undefined)
    return Effect.fail(localFailure(`catalog ${path}: has no model ${unknown}${suggestion(unknown, known)}`))
  return Effect.succeed(ids.length === 0 ? all : all.filter(({ entry }) => ids.includes(entry.id)))
}

/** The models of a conversation: it has no weights of its own. */
const partsOf = (conversations: ReadonlyArray<CatalogConversation>, id: string) => {
  const found = conversations.find(({ entry }) => entry.id === id)?.entry
  return found === undefined ? undefined : partKinds.map((kind) => found.conversation[kind])
}

export const checkModels = Command.make(
  "check",
  {
    ids: Argument.String("ID").pipe(
      Argument.withDescription(
        "Models of the catalog, or a conversation, which stands for its models; without any, all that this region deploys",
      ),
      Argument.variadic({ min: 0, max: 100 }),
    ),
    sums: switchFlag(
      "sums",
      "Also read every pulled file and compute its SHA-256, which takes seconds a gigabyte",
    ),
    json: jsonFlag,
    ...catalogFlags,
    memoryMb: textFlag(
      "memory-mb",
      "MB",
      "Check against this much memory; default: this machine's, or EDGEWISE_MEMORY_MB",
    ),
  },
  Effect.fn(function* ({ catalog, dataDir, ids, json, memoryMb, sums }) {
    const config = yield* load(textsOf({ catalog, dataDir, memoryMb }))
    const entries = yield* readEntries(config)
    const all = entries.models.filter(({ entry }) => isDeployedIn(entry, config.region))
    const named = ids.flatMap((id) => partsOf(entries.conversations, id) ?? [id])
    const models = yield* chosen(all, named, writtenCatalog(config))
    const { checked, modelBytes } = yield* withDevice(
      config,
      Effect.gen(function* () {
        return {
          checked: yield* Effect.forEach(models, (model) => checkOne(config, model, sums)),
          modelBytes: (yield* Device).modelBytes(),
        }
      }),
    )
    const together = togetherProblem(models, checked, modelBytes)
    const isRight = together === undefined && checked.every(({ problems }) => problems.length === 0)
    if (json)
      yield* printJson({
        ok: isRight,
        memory_bytes: modelBytes,
        models: checked.map(({ claimedBytes, contextBytes, problems, ...one }) => ({
          ...one,
          claimed_bytes: claimedBytes,
          context_bytes: contextBytes ?? null,
          problems,
        })),
        problem: together ?? null,
      })
    else {
      const rows = checked.map(({ claimedBytes, contextBytes, from, id, problems, weights }) => [
        id,
        from,
        weights,
        megabytes(claimedBytes),
        contextBytes === undefined ? "" : megabytes(contextBytes),
        problems.length === 0 ? "fits" : "does not load",
      ])
      yield* Console.log(table(["id", "from", "weights", "memory MB", "contexts MB", "verdict"], rows))
      yield* Console.log(`models may have ${megabytes(modelBytes)} MB here`)
      for (const { id, problems } of checked)
        for (const problem of problems) yield* Console.log(`${id}: ${problem}`)
      if (together !== undefined) yield* Console.log(together)
    }
    if (!isRight) return yield* new AlreadyReported({ exitStatus: 1 })
  }),
).pipe(Command.withDescription("Check files and memory of models without loading them"))
