// The data directory: where it is on disk and who may read it. Called when the store opens; whatever else keeps files
// there (uploads, weights, signing keys) asks for the same directory.
import { closeSync, existsSync, mkdirSync, openSync, readSync, unlinkSync, writeFileSync } from "node:fs"
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

const databaseName = "store.sqlite"

/** How every SQLite database begins, except an empty one. */
const databaseHead = "SQLite format 3\0"

/** What is wrong with the database file of a data directory, or undefined; one that is not there yet is fine. */
export const databaseFileProblem = (dir: string): string | undefined => {
  const file = join(dir, databaseName)
  if (!existsSync(file)) return undefined
  const handle = openSync(file, "r+")
  try {
    const head = Buffer.alloc(databaseHead.length)
    const bytes = readSync(handle, head, 0, head.length, 0)
    return bytes === 0 || head.toString("latin1") === databaseHead
      ? undefined
      : `${file}: is not a SQLite database`
  } finally {
    closeSync(handle)
  }
}

const made = (dataDir: string): string => {
  const dir = resolve(dataDir)
  makeDir(dir)
  return dir
}

/** What the system's errors mean for a data directory. */
const words: Readonly<Record<string, string>> = {
  EACCES: "this user may not write here",
  EISDIR: `${databaseName} is a folder`,
  ENOENT: "this directory cannot be made",
  ENOSPC: "no space is left on the disk",
  ENOTDIR: "a part of this path is a file, not a directory",
  EPERM: "this user may not write here",
  EROFS: "the file system is read-only",
}

const unavailable = (dataDir: string) => (cause: unknown) => {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : ""
  const problem = words[code] === undefined ? problemOf(cause) : `${words[code]} (${code})`
  return new StoreUnavailable({ place: dataDir, problem })
}

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

/** Makes the directory where it is missing and writes a small file into it, which is removed: fails where a node would. */
export const tryDataDirectory = (dataDir: string): Effect.Effect<void, StoreUnavailable> =>
  Effect.try({
    try: () => {
      const file = join(made(dataDir), `.try-${process.pid}`)
      writeFileSync(file, "edgewise", { mode: fileMode })
      unlinkSync(file)
    },
    catch: unavailable(dataDir),
  })

/**
 * The database file of a data directory, both created where missing. The file is made empty first, because SQLite
 * would take the process's umask for it, and gives its `-wal` and `-shm` the file's own mode.
 */
export const databaseFile = (dataDir: string): Effect.Effect<string, StoreUnavailable> =>
  Effect.try({
    try: () => {
      const file = join(made(dataDir), databaseName)
      closeSync(openSync(file, "a", fileMode))
      return file
    },
    catch: unavailable(dataDir),
  })
