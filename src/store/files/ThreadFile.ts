// The file of the data directory that keeps measured CPU threads (actors/threads/KeptThreads) from one start of the node to
// the next. Nothing in it is missed: without it models are measured again when they load.
import { readFileSync, statSync } from "node:fs"
import { rename, rm, writeFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { Effect, Layer, Schema } from "effect"
import { KeptThreads, type ThreadResults, threadResults } from "#actors/threads/KeptThreads.ts"
import { ThreadChoice } from "#domain/threads/ThreadChoice.ts"
import { problemOf } from "./DataDir.ts"

/** Where the results of a data directory are. */
export const threadFileIn = (dataDir: string): string => join(resolve(dataDir), "threads.json")

/** 64 results take about 20 KB. Bytes. */
const maxBytes = 256 * 1024

const File = Schema.Struct({
  version: Schema.Literal(1),
  results: Schema.Array(
    Schema.Tuple([Schema.String.check(Schema.isPattern(/^[0-9a-f]{32}$/)), ThreadChoice]),
  ),
})
type Results = (typeof File.Type)["results"]
const decode = Schema.decodeUnknownSync(Schema.fromJsonString(File))

/** Empty where there is no file; throws where it is not one of ours. */
const read = (path: string): Results => {
  const { size } = statSync(path, { throwIfNoEntry: false }) ?? { size: undefined }
  if (size === undefined) return []
  if (size > maxBytes) throw new Error(`is larger than ${maxBytes} bytes`)
  try {
    return decode(readFileSync(path, "utf8")).results
  } catch (cause) {
    // A schema error shows the text.
    throw new Error(
      cause instanceof Error && "code" in cause ? String(cause.code) : "is not a list of results",
    )
  }
}

/** One write at a time, the newest last; each replaces the file as a whole. */
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
    let told = false
    const write = writer(path, (problem) => {
      if (!told) run(notKept(problem))
      told = true
    })
    return threadResults(first, write)
  })

/** Gives the kept results to everything below it. */
export const keptThreads = (dataDir: string): Layer.Layer<never> => Layer.effect(KeptThreads, open(dataDir))
