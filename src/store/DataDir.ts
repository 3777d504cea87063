// The data directory: where it is on disk and who may read it. Called when the store opens; whatever else keeps files
// there (uploads, weights, signing keys) asks for the same directory.
import { closeSync, existsSync, mkdirSync, openSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { Effect, type Scope } from "effect"
import { tryFileLock } from "./FileLock.ts"
import { StoreUnavailable } from "./StoreErrors.ts"

/** Keys, balances and uploads: for the owner alone. */
const dirMode = 0o700
const fileMode = 0o600

export const problemOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** Step by step, because Node's own recursive mkdir never returns where a directory refuses children (as /proc does). */
export const makeDir = (dir: string): void => {
  if (existsSync(dir)) return
  makeDir(dirname(dir))
  try {
    mkdirSync(dir, { mode: dirMode })
  } catch (cause) {
    // Another process may have made it just now.
    if (!existsSync(dir)) throw cause
  }
}

const made = (dataDir: string): string => {
  const dir = resolve(dataDir)
  makeDir(dir)
  return dir
}

const unavailable = (dataDir: string) => (cause: unknown) =>
  new StoreUnavailable({ place: dataDir, problem: problemOf(cause) })

/**
 * Makes this process the only edge on its data directory: it removes uploads that it does not know, and would remove those
 * of another. Commands and other roles are not affected. The lock goes with the process, however it ends.
 */
export const edgeLock = (dataDir: string): Effect.Effect<void, StoreUnavailable, Scope.Scope> =>
  Effect.gen(function* () {
    const dir = yield* dataDirectory(dataDir)
    const taken = yield* Effect.mapError(tryFileLock(join(dir, "edge.lock")), unavailable(dataDir))
    if (taken) return
    return yield* new StoreUnavailable({
      place: dataDir,
      problem:
        "is used by another edge process; give this one a data directory of its own (EDGEWISE_DATA_DIR)",
    })
  })

/** The data directory, created where missing: of a node whose database is elsewhere. */
export const dataDirectory = (dataDir: string): Effect.Effect<string, StoreUnavailable> =>
  Effect.try({ try: () => made(dataDir), catch: unavailable(dataDir) })

/**
 * The database file of a data directory, both created where missing. The file is made empty first, because SQLite
 * would take the process's umask for it, and gives its `-wal` and `-shm` the file's own mode.
 */
export const databaseFile = (dataDir: string): Effect.Effect<string, StoreUnavailable> =>
  Effect.try({
    try: () => {
      const file = join(made(dataDir), "store.sqlite")
      closeSync(openSync(file, "a", fileMode))
      return file
    },
    catch: unavailable(dataDir),
  })
