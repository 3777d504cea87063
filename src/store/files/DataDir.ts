// The data directory: its location, permissions, lock and database file.
import { closeSync, existsSync, mkdirSync, openSync, readSync, unlinkSync, writeFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { Effect, type Scope } from "effect"
import { tryFileLock } from "./FileLock.ts"
import { StoreUnavailable } from "./StoreErrors.ts"

/** Owner only: the directory holds keys, balances and uploads. */
const dirMode = 0o700
const fileMode = 0o600

export const problemOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/**
 * Creates a directory and its parents one by one. Node's recursive mkdir never returns where a directory refuses
 * children (e.g. /proc).
 */
export const makeDir = (dir: string): void => {
  if (existsSync(dir)) return
  makeDir(dirname(dir))
  try {
    mkdirSync(dir, { mode: dirMode })
  } catch (cause) {
    // Another process may have created it in the meantime.
    if (!existsSync(dir)) throw cause
  }
}

const databaseName = "store.sqlite"

/** The first bytes of every SQLite database that is not empty. */
const databaseHead = "SQLite format 3\0"

/** What is wrong with the database file of a data directory. Undefined if it is fine or missing. */
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

/** The folder of a restore that has not ended: nothing else may use the directory while it is there. */
export const unfinishedRestore = "restore.partial"

const made = (dataDir: string): string => {
  const dir = resolve(dataDir)
  makeDir(dir)
  if (existsSync(join(dir, unfinishedRestore)) && !existsSync(join(dir, databaseName))) {
    throw new Error("holds an unfinished restore; run `edgewise restore` again, or empty it")
  }
  return dir
}

/** The system's error codes in words. */
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
 * Locks the data directory for one edge process, because an edge removes uploads that it does not know. Commands and
 * other roles do not take this lock. It is released when the process ends, even by a crash.
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

/** The data directory, created if missing, of a node whose database is elsewhere. */
export const dataDirectory = (dataDir: string): Effect.Effect<string, StoreUnavailable> =>
  Effect.try({ try: () => made(dataDir), catch: unavailable(dataDir) })

/** The data directory, which must exist: for commands that only read it, or take something out of it. */
export const existingDataDirectory = (dataDir: string): Effect.Effect<string, StoreUnavailable> =>
  Effect.suspend(() => {
    const dir = resolve(dataDir)
    return existsSync(join(dir, databaseName))
      ? Effect.succeed(dir)
      : Effect.fail(new StoreUnavailable({ place: dir, problem: `holds no ${databaseName}` }))
  })

/**
 * Creates the directory if missing, writes a small file into it and removes that file. Fails where a node would fail.
 */
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
 * The database file of a data directory, both created if missing. An empty file is made first to set its mode: SQLite
 * alone would use the umask. SQLite gives `-wal` and `-shm` the mode of the database file.
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
