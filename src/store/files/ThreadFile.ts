// The file of the data directory that keeps measured CPU threads (actors/threads/KeptThreads) between starts of the
// node. Without it, models are measured again when they load.
import { readFileSync, statSync } from "node:fs"
import { rename, rm, writeFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { Effect, Layer, Schema } from "effect"
import { KeptThreads, type ThreadResults, threadResults } from "#actors/threads/KeptThreads.ts"
import { ThreadChoice } from "#domain/threads/ThreadChoice.ts"
import { problemOf } from "./DataDir.ts"

/** Path of the file in a data directory. */
export const threadFileIn = (dataDir: string): string => join(resolve(dataDir), "threads.json")

/** Bytes. 64 results take about 20 KB. */
const maxBytes = 256 * 1024

const File = Schema.Struct({
  version: Schema.Literal(1),
  results: Schema.Array(
    Schema.Tuple([Schema.String.check(Schema.isPattern(/^[0-9a-f]{32}$/)), ThreadChoice]),
  ),
})
type Results = (typeof File.Type)["results"]
const decode = Schema.decodeUnknownSync(Schema.fromJsonString(File))

/** Empty if there is no file. Throws if it is not valid. */
const read = (path: string): Results => {
  const { size } = statSync(path, { throwIfNoEntry: false }) ?? { size: undefined }
  if (size === undefined) return []
  if (size > maxBytes) throw new Error(`is larger than ${maxBytes} bytes`)
  try {
    return decode(readFileSync(path, "utf8")).results
  } catch (cause) {
    // The schema error's own message would show the file's text.
    throw new Error(
      cause instanceof Error && "code" in cause ? String(cause.code) : "is not a list of results",
    )
  }
}

/** Serializes the writes: one at a time, the newest value last, each replacing the whole file. */
const writer = (path: string, onFailure: (problem: string) => void) => {
  let next: Results | undefined
  let writing = false
  const write = async (): Promise<void> => {
    writing = true
    while (next !== undefined) {
      const results = next
      next = undefined
      const text = `${JSON.stringify({ version: 1, results } satisfies typeof File.Type)}\n`
      try {
        await writeFile(`${path}.new`, text, { mode: 0o600 })
        await rename(`${path}.new`, path)
      } catch (cause) {
        await rm(`${path}.new`, { force: true }).catch(() => undefined)
        onFailure(problemOf(cause))
      }
    }
    writing = false
  }
  return (results: Results): void => {
    next = results
    if (!writing) void write()
  }
}

const notKept = (problem: string) =>
  Effect.logWarning("measured CPU threads are not kept; models are measured at each load").pipe(
    Effect.annotateLogs({ problem }),
  )

const open = (dataDir: string): Effect.Effect<ThreadResults> =>
  Effect.gen(function* () {
    const path = threadFileIn(dataDir)
    const run = Effect.runForkWith(yield* Effect.context<never>())
    const first = yield* Effect.try({ try: () => read(path), catch: problemOf }).pipe(
      Effect.catch((problem) =>
        Effect.as(
          Effect.logWarning("threads.json of the data directory is ignored; models are measured again").pipe(
            Effect.annotateLogs({ problem }),
          ),
          [] as Results,
        ),
      ),
    )
    let hasReported = false
    const write = writer(path, (problem) => {
      if (!hasReported) run(notKept(problem))
      hasReported = true
    })
    return threadResults(first, write)
  })

/** Provides the kept results to the layers below. */
export const keptThreads = (dataDir: string): Layer.Layer<never> => Layer.effect(KeptThreads, open(dataDir))
