// `edgewise models pull`: fetches the weights of models whose files are on a hub, and lists them. A node on the same
// data directory uses them at the next load of the model.
import { Console, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { load } from "#config/Config.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { BadCatalog } from "#weights/CatalogFile.ts"
import { locate } from "#weights/ModelFiles.ts"
import { readModels } from "#weights/NodeCatalog.ts"
import { type GivenNode, operatorAccess, operatorFlags } from "../shared/NodeClient.ts"
import { jsonFlag, printJson, switchFlag } from "../shared/Output.ts"
import { progressLine } from "../shared/ProgressLine.ts"
import { type FileRecord, pullOnNode } from "../shared/PullOnNode.ts"
import { catalogFlags, textsOf } from "../shared/SettingFlags.ts"
import { lineOf, pullEntry, pullSettingsOf, recordOf, watcherOf } from "./PullHere.ts"

/** One pulled model as `--json` prints it. `path` is set if this command wrote the file. */
interface Document {
  readonly id: string
  readonly files: ReadonlyArray<FileRecord & { readonly path?: string }>
}

/** Pulls into the data directory of the settings, with the catalog of the settings. */
const pullHere = Effect.fnUntraced(function* (
  ids: ReadonlySet<string>,
  given: Parameters<typeof textsOf>[0],
) {
  const config = yield* load(textsOf(given))
  const settings = yield* pullSettingsOf(config.dataDir)
  const models = (yield* readModels(config)).map(({ entry }) => entry)
  const entries = yield* Effect.forEach(ids, (id) => {
    const entry = models.find((one) => one.id === id)
    const problem = `has no model ${id}; it has ${models.map((one) => one.id).join(", ")}`
    return entry === undefined
      ? Effect.fail(new BadCatalog({ path: config.catalog, problem }))
      : Effect.succeed(entry)
  })
  const pulled: Array<Document> = []
  for (const entry of entries) {
    const files = yield* pullEntry(config.catalog, entry, settings)
    pulled.push({ id: entry.id, files: files.map(recordOf) })
    // Reports what a start would report, e.g. a local file of the same entry that is missing.
    const { problem } = yield* locate(config.catalog, entry, settings.dir)
    if (problem !== undefined)
      return yield* new BadCatalog({ path: config.catalog, problem: `${entry.id}: ${problem}` })
  }
  return pulled
})

/** Has the running node pull, with its catalog and into its data directory. */
const pullThere = Effect.fnUntraced(function* (ids: ReadonlySet<string>, given: GivenNode) {
  const access = yield* operatorAccess(given)
  const pulled: Array<Document> = []
  for (const id of ids) {
    const files = yield* Effect.scoped(
      Effect.flatMap(progressLine(), (line) =>
        pullOnNode(access, id, (name) => watcherOf(name, process.stderr.isTTY === true ? line : undefined)),
      ),
    )
    pulled.push({ id, files })
  }
  return pulled
})

export const pull = Command.make(
  "pull",
  {
    ids: Argument.String("ID").pipe(
      Argument.withDescription("Models of the catalog"),
      Argument.variadic({ min: 1, max: 100 }),
    ),
    node: switchFlag("node", "Have the running node pull, into its own data directory; for its operator"),
    json: jsonFlag,
    ...catalogFlags,
    ...operatorFlags,
  },
  Effect.fn(function* ({ catalog, dataDir, ids, json, key, node, url }) {
    const startedMs = yield* monotonicMs
    const wanted = new Set(ids)
    const models = yield* node
      ? pullThere(wanted, { url, key, dataDir })
      : pullHere(wanted, { catalog, dataDir })
    const seconds = ((yield* monotonicMs) - startedMs) / 1000
    if (json) return yield* printJson({ seconds, models })
    for (const { files, id } of models) {
      if (files.length === 0) yield* Console.log(`${id}: its weights are local files`)
      for (const file of files) yield* Console.log(lineOf(file))
    }
  }),
).pipe(Command.withDescription("Fetch the weights of models from their hub"))
