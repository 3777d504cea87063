// The files of the data directory that keep measurements (actors/threads/KeptResults) between starts of the node: `threads.json` the CPU
// threads of models, `costs.json` the durations of their native calls. Without them, models are measured again.
import { readFileSync, statSync } from "node:fs"
import { rename, rm, writeFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { Effect, Layer, Schema } from "effect"
import { KeptCosts, type KeptResults, KeptThreads, keptResults } from "#actors/threads/KeptResults.ts"
import { CallCosts } from "#domain/threads/CallCosts.ts"
import { ThreadChoice } from "#domain/threads/ThreadChoice.ts"
import { problemOf } from "./DataDir.ts"

/** Bytes. 64 results take about 20 KB of threads, and 60 KB of durations. */
const maxBytes = 256 * 1024

type Results<A> = ReadonlyArray<readonly [string, A]>

interface ResultFile<A> {
  readonly name: string
  /** For operators. */
  readonly what: string
  readonly result: Schema.Codec<A>
}

const threadFile: ResultFile<ThreadChoice> = {
  name: "threads.json",
  what: "measured CPU threads",
  result: ThreadChoice,
}

const costFile: ResultFile<CallCosts> = {
  name: "costs.json",
  what: "measured durations of native calls",
  result: CallCosts,
}

/** Names of the files. */
export const resultFiles: ReadonlyArray<string> = [threadFile.name, costFile.name]

const version = 1

/** Empty if there is no file. Throws if it is not valid. */
const read = <A>(path: string, { result }: ResultFile<A>): Results<A> => {
  const { size } = statSync(path, { throwIfNoEntry: false }) ?? { size: undefined }
  if (size === undefined) return []
  if (size > maxBytes) throw new Error(`is larger than ${maxBytes} bytes`)
  const File = Schema.Struct({
    version: Schema.Literal(version),
    results: Schema.Array(Schema.Tuple([Schema.String.check(Schema.isPattern(/^[0-9a-f]{32}$/)), result])),
  })
  try {
    return Schema.decodeUnknownSync(Schema.fromJsonString(File))(readFileSync(path, "utf8")).results
  } catch (cause) {
    // The schema error's own message would show the file's text.
    throw new Error(
      cause instanceof Error && "code" in cause ? String(cause.code) : "is not a list of results",
    )
  }
}

/** Serializes the writes: one at a time, the newest value last, each replacing the whole file. */
const writer = <A>(path: string, onFailure: (problem: string) => void) => {
  let next: Results<A> | undefined
  let writing = false
  const write = async (): Promise<void> => {
    writing = true
    while (next !== undefined) {
      const results = next
      next = undefined
      const text = `${JSON.stringify({ version, results })}\n`
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
  return (results: Results<A>): void => {
    next = results
    if (!writing) void write()
  }
}

const notKept = (what: string, problem: string) =>
  Effect.logWarning(`${what} are not kept; models are measured again after each load`).pipe(
    Effect.annotateLogs({ problem }),
  )

const open = <A>(dataDir: string, file: ResultFile<A>): Effect.Effect<KeptResults<A>> =>
  Effect.gen(function* () {
    const path = join(resolve(dataDir), file.name)
    const run = Effect.runForkWith(yield* Effect.context<never>())
    const first = yield* Effect.try({ try: () => read(path, file), catch: problemOf }).pipe(
      Effect.catch((problem) =>
        Effect.as(
          Effect.logWarning(`${file.name} of the data directory is ignored; models are measured again`).pipe(
            Effect.annotateLogs({ problem }),
          ),
          [] as Results<A>,
        ),
      ),
    )
    let hasReported = false
    const write = writer<A>(path, (problem) => {
      if (!hasReported) run(notKept(file.what, problem))
      hasReported = true
    })
    return keptResults(first, write)
  })

/** Provides the kept results to the layers below. */
export const keptMeasurements = (dataDir: string): Layer.Layer<never> =>
  Layer.merge(
    Layer.effect(KeptThreads, open(dataDir, threadFile)),
    Layer.effect(KeptCosts, open(dataDir, costFile)),
  )
