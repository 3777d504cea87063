// `edgewise models pull`: fetches the weights of models whose files are on a hub, and says what came. A node that runs
// finds them at the model's next load.
import { Console, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { parseHubFile } from "#domain/HubFile.ts"
import type { ModelEntry } from "#domain/Model.ts"
import { monotonicMs } from "#domain/Monotonic.ts"
import { BadCatalog, readCatalog } from "#store/CatalogFile.ts"
import type { PullSettings, PullWatcher } from "#store/Download.ts"
import { locate } from "#store/ModelFiles.ts"
import { type Pulled, pullDefaults, pullFile } from "#store/PullFile.ts"
import { weightsDir } from "#store/Weights.ts"
import { hubSettings, load } from "../Config.ts"
import { type ProgressLine, progressLine } from "./ProgressLine.ts"
import { jsonFlag, printJson } from "./Usage.ts"

interface PulledFile extends Pulled {
  readonly role: string
  readonly source: string
}

/** Where nobody watches a bar, a line for every tenth. */
const tenth = 0.1

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`

/** Progress on standard error: a bar on a terminal, lines elsewhere. */
const watcherOf = (name: string, bar: ProgressLine | undefined): PullWatcher => {
  const say = (text: string): void => void process.stderr.write(`${name}: ${text}\n`)
  let next = 0
  return {
    waiting: () => (bar === undefined ? say("another pull has it, waiting") : bar.show("waiting", undefined)),
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

const filesOf = (catalog: string, entry: ModelEntry) =>
  Effect.forEach(
    Object.entries(entry.files).filter(([, { source }]) => source.startsWith("hf:")),
    ([role, { sha256, source }]) => {
      const file = parseHubFile(source)
      const problem = `${entry.id}: ${role}: ${source} is not hf:owner/repo@commit/file`
      return file === undefined
        ? Effect.fail(new BadCatalog({ path: catalog, problem }))
        : Effect.succeed({ role, source, sha256, file })
    },
  )

const pullModel = Effect.fnUntraced(function* (catalog: string, entry: ModelEntry, settings: PullSettings) {
  const pulled: Array<PulledFile> = []
  for (const { file, role, sha256, source } of yield* filesOf(catalog, entry)) {
    const name = file.path.slice(file.path.lastIndexOf("/") + 1)
    const came = yield* Effect.scoped(
      Effect.flatMap(progressLine(), (line) =>
        pullFile(file, sha256, settings, watcherOf(name, process.stderr.isTTY === true ? line : undefined)),
      ),
    )
    pulled.push({ role, source, ...came })
  }
  return pulled
})

const checkWords = { catalog: "SHA-256 as in the catalog", hub: "SHA-256 as the hub says" }

const lineOf = ({ checkedBy, fetched, sizeBytes, source }: PulledFile): string =>
  `${source}  ${megabytes(sizeBytes)}  ${fetched ? "pulled" : "was here"}, ` +
  `${checkedBy === undefined ? "no SHA-256 to check it against" : checkWords[checkedBy]}`

const documentOf = ({ checkedBy, fetched, path, role, sha256, sizeBytes, source }: PulledFile) => ({
  role,
  source,
  path,
  size_bytes: sizeBytes,
  sha256,
  checked_by: checkedBy ?? null,
  fetched,
})

export const pull = Command.make(
  "pull",
  {
    ids: Argument.String("ID").pipe(
      Argument.withDescription("Models of the catalog"),
      Argument.variadic({ min: 1, max: 100 }),
    ),
    json: jsonFlag,
  },
  Effect.fn(function* ({ ids, json }) {
    const config = yield* load({})
    const settings = { ...pullDefaults, hub: yield* hubSettings(), dir: weightsDir(config.dataDir) }
    const { models } = yield* readCatalog(config.catalog)
    const entries = yield* Effect.forEach(new Set(ids), (id) => {
      const entry = models.find((one) => one.id === id)
      return entry === undefined
        ? Effect.fail(
            new BadCatalog({
              path: config.catalog,
              problem: `has no model ${id}; it has ${models.map((one) => one.id).join(", ")}`,
            }),
          )
        : Effect.succeed(entry)
    })
    const startedMs = yield* monotonicMs
    const pulled: Array<readonly [ModelEntry, ReadonlyArray<PulledFile>]> = []
    for (const entry of entries) {
      pulled.push([entry, yield* pullModel(config.catalog, entry, settings)])
      // What a start would say, now: e.g. a file of the same entry that is local and not there.
      const { problem } = yield* locate(config.catalog, entry, settings.dir)
      if (problem !== undefined)
        return yield* new BadCatalog({ path: config.catalog, problem: `${entry.id}: ${problem}` })
    }
    const seconds = ((yield* monotonicMs) - startedMs) / 1000
    if (json) {
      return yield* printJson({
        seconds,
        models: pulled.map(([{ id }, files]) => ({ id, files: files.map(documentOf) })),
      })
    }
    for (const [{ id }, files] of pulled) {
      if (files.length === 0) yield* Console.log(`${id}: its weights are local files`)
      for (const file of files) yield* Console.log(lineOf(file))
    }
  }),
).pipe(Command.withDescription("Fetch the weights of models from their hub"))
