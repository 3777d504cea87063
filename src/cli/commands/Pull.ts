// `edgewise models pull`: fetches the weights of models whose files are on a hub, and lists them. A node on the same
// data directory uses them at the next load of the model.
import { Console, Effect, type Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { load } from "#config/Config.ts"
import { hubSettings, isHubOffline } from "#config/OtherVariables.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { BadCatalog, readCatalog } from "#weights/CatalogFile.ts"
import type { PullWatcher } from "#weights/Download.ts"
import { locate } from "#weights/ModelFiles.ts"
import { pullDefaults } from "#weights/PullFile.ts"
import { type PulledFile, pullModel } from "#weights/PullModel.ts"
import { weightsDir } from "#weights/Weights.ts"
import { nodeAccess, nodeFlags } from "../shared/NodeClient.ts"
import { jsonFlag, printJson } from "../shared/Output.ts"
import { type ProgressLine, progressLine } from "../shared/ProgressLine.ts"
import { type FileRecord, pullOnNode } from "../shared/PullOnNode.ts"

class HubOffline extends Schema.TaggedError<HubOffline>()("HubOffline", {}) {
  override get message(): string {
    return "HF_HUB_OFFLINE is set: nothing is pulled"
  }
}

/** Without a terminal, one line per tenth of the file. */
const tenth = 0.1

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`

/** Progress on standard error: a bar on a terminal, lines elsewhere. */
const watcherOf = (name: string, bar: ProgressLine | undefined): PullWatcher => {
  const say = (text: string): void => void process.stderr.write(`${name}: ${text}\n`)
  let next = 0
  return {
    waiting: () =>
      bar === undefined ? say("waiting for another pull of this file") : bar.show("waiting", undefined),
    retrying: (problem, attempt) => {
      if (bar === undefined) say(`${problem}; attempt ${attempt}`)
      else bar.show(`attempt ${attempt}`, undefined)
    },
    progress: (doneBytes, totalBytes) => {
      const done = totalBytes === 0 ? 1 : doneBytes / totalBytes
      if (bar !== undefined) return bar.show(name.slice(-40), done)
      if (done < next) return
      say(`${Math.floor(done * 100)} % of ${megabytes(totalBytes)}`)
      next = Math.floor(done / tenth + 1) * tenth
    },
  }
}

/** The same for one file. The bar is removed when the file is there. */
const watch = (name: string) =>
  Effect.map(progressLine(), (line) => watcherOf(name, process.stderr.isTTY === true ? line : undefined))

const checkWords = { catalog: "SHA-256 as in the catalog", hub: "SHA-256 as the hub declares" }

const lineOf = ({ checked_by, fetched, size_bytes, source }: FileRecord): string =>
  `${source}  ${megabytes(size_bytes)}  ${fetched ? "pulled" : "already there"}, ` +
  `${checked_by === null ? "no SHA-256 to check it against" : checkWords[checked_by]}`

/** One pulled model as `--json` prints it. `path` is set if this command wrote the file. */
interface Document {
  readonly id: string
  readonly files: ReadonlyArray<FileRecord & { readonly path?: string }>
}

const recordOf = ({ checkedBy, fetched, path, role, sha256, sizeBytes, source }: PulledFile) => ({
  role,
  source,
  path,
  size_bytes: sizeBytes,
  sha256,
  checked_by: checkedBy ?? null,
  fetched,
})

/** Pulls into the data directory of the settings, with the catalog of the settings. */
const pullHere = Effect.fnUntraced(function* (ids: ReadonlySet<string>) {
  const config = yield* load({})
  if (isHubOffline()) return yield* new HubOffline()
  const settings = { ...pullDefaults, hub: yield* hubSettings(), dir: weightsDir(config.dataDir) }
  const { models } = yield* readCatalog(config.catalog)
  const entries = yield* Effect.forEach(ids, (id) => {
    const entry = models.find((one) => one.id === id)
    const problem = `has no model ${id}; it has ${models.map((one) => one.id).join(", ")}`
    return entry === undefined
      ? Effect.fail(new BadCatalog({ path: config.catalog, problem }))
      : Effect.succeed(entry)
  })
  const pulled: Array<Document> = []
  for (const entry of entries) {
    const files = yield* pullModel({ catalog: config.catalog, entry, settings, watch })
    pulled.push({ id: entry.id, files: files.map(recordOf) })
    // Reports what a start would report, e.g. a local file of the same entry that is missing.
    const { problem } = yield* locate(config.catalog, entry, settings.dir)
    if (problem !== undefined)
      return yield* new BadCatalog({ path: config.catalog, problem: `${entry.id}: ${problem}` })
  }
  return pulled
})

/** Has the running node pull, with its catalog and into its data directory. */
const pullThere = Effect.fnUntraced(function* (
  ids: ReadonlySet<string>,
  given: { readonly url: Option.Option<string>; readonly key: Option.Option<string> },
) {
  const access = yield* nodeAccess(given)
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
    node: Flag.Boolean("node").pipe(
      Flag.withDescription("Have the running node pull, into its own data directory; needs a superadmin key"),
      Flag.withDefault(false),
    ),
    json: jsonFlag,
    ...nodeFlags,
  },
  Effect.fn(function* ({ ids, json, key, node, url }) {
    const startedMs = yield* monotonicMs
    const wanted = new Set(ids)
    const models = yield* node ? pullThere(wanted, { url, key }) : pullHere(wanted)
    const seconds = ((yield* monotonicMs) - startedMs) / 1000
    if (json) return yield* printJson({ seconds, models })
    for (const { files, id } of models) {
      if (files.length === 0) yield* Console.log(`${id}: its weights are local files`)
      for (const file of files) yield* Console.log(lineOf(file))
    }
  }),
).pipe(Command.withDescription("Fetch the weights of models from their hub"))
