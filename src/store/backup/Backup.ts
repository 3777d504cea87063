// Makes a backup of a data directory, also while a node runs on it: one tar file with a manifest first.
//
// The store is copied with `VACUUM INTO`, in one read transaction: a state of one moment, without what was deleted before it. In
// write-ahead mode a reader stops no writer, and it runs in the command's process, not in the node's. The file gets its name when it is
// complete and on the disk; until then everything is in `FILE.partial`.
import { closeSync, openSync } from "node:fs"
import { chmod, copyFile, link, mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises"
import { basename, dirname, join, resolve } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Clock, DateTime, Effect, type Scope } from "effect"
import { create } from "tar"
import { existingDataDirectory } from "../files/DataDir.ts"
import { syncFile } from "../files/Durable.ts"
import { tryFileLock } from "../files/FileLock.ts"
import type { StoreUnavailable } from "../files/StoreErrors.ts"
import { newestSchema } from "../migrations/index.ts"
import { nodeIdOf } from "../sql/StoreNode.ts"
import { BackupFailed, noSizeSignal, sha256Of, step } from "./BackupFiles.ts"
import { backupFormat, catalogName, keptFiles, type Manifest, manifestName, storeName } from "./Manifest.ts"

/** How long to wait for another process that holds the whole database. A guess: none does for long. */
const busyTimeoutMs = 10_000

interface BackupOptions {
  readonly dataDir: string
  /** The backup; must not exist. */
  readonly file: string
  /** The operator's own catalog; absent for the built-in one. */
  readonly catalog?: string
  /** Version of edgewise. */
  readonly version: string
}

interface BackupMade {
  readonly file: string
  readonly sizeBytes: number
  readonly manifest: Manifest
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    (cause: NodeJS.ErrnoException) => {
      if (cause.code === "ENOENT") return false
      throw cause
    },
  )

/** The folder beside the file in which it is made. What a backup that was killed has left is removed. */
const workFolder = (file: string): Effect.Effect<string, BackupFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const folder = `${file}.partial`
    yield* step(dirname(file), () => mkdir(folder, { mode: 0o700 }).catch(unlessThere))
    yield* Effect.addFinalizer(() => Effect.ignore(step(folder, () => rm(folder, { recursive: true }))))
    const taken = yield* Effect.mapError(
      tryFileLock(join(folder, "lock")),
      (cause) => new BackupFailed({ place: folder, problem: String(cause) }),
    )
    if (!taken) {
      return yield* new BackupFailed({ place: file, problem: "another backup to this file is being made" })
    }
    yield* step(folder, async () => {
      for (const name of await readdir(folder)) {
        if (name !== "lock") await rm(join(folder, name), { recursive: true })
      }
    })
    return folder
  })

const unlessThere = (cause: NodeJS.ErrnoException): void => {
  if (cause.code !== "EEXIST") throw cause
}

/** Copies the store. Returns its schema. */
const copyStore = (from: string, to: string): number => {
  const db = new DatabaseSync(from)
  try {
    db.exec(`PRAGMA busy_timeout=${busyTimeoutMs}`)
    const row = db.prepare("SELECT MAX(migration_id) AS schema FROM migrations").get() as {
      readonly schema: number | null
    }
    const schema = row.schema ?? 0
    if (schema > newestSchema) {
      const problem = `was changed by a later version of edgewise (schema ${schema}); back it up with that one`
      throw new BackupFailed({ place: from, problem })
    }
    // An empty file first: SQLite alone would use the umask.
    closeSync(openSync(to, "wx", 0o600))
    db.prepare("VACUUM INTO ?").run(to)
    return schema
  } finally {
    db.close()
  }
}

/** Gives the finished file its name, unless another file has it by now. */
const nameIt = async (made: string, file: string): Promise<void> => {
  try {
    await link(made, file)
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code === "EEXIST") throw new BackupFailed({ place: file, problem: there })
    // A file system without links.
    await rename(made, file)
  }
  await syncFile(file)
}

const there = "exists already; name another file, or remove it"

export const makeBackup = Effect.fn("Backup.make")(function* (
  options: BackupOptions,
): Effect.fn.Return<BackupMade, BackupFailed | StoreUnavailable, Scope.Scope> {
  const file = resolve(options.file)
  const dir = yield* existingDataDirectory(options.dataDir)
  if (yield* step(file, () => exists(file))) return yield* new BackupFailed({ place: file, problem: there })
  yield* noSizeSignal
  const folder = yield* workFolder(file)
  const node = yield* nodeIdOf(dir)
  const madeAtMs = yield* Clock.currentTimeMillis
  const schema = yield* step(file, () => copyStore(join(dir, storeName), join(folder, storeName)))

  const names: Array<string> = [storeName]
  const keep = Effect.fnUntraced(function* (from: string, name: string) {
    if (!(yield* step(from, () => exists(from)))) return
    const to = join(folder, name)
    yield* step(file, async () => {
      await mkdir(dirname(to), { recursive: true, mode: 0o700 })
      await copyFile(from, to)
      await chmod(to, 0o600)
    })
    names.push(name)
  })
  for (const name of keptFiles) if (name !== storeName) yield* keep(join(dir, name), name)
  if (options.catalog !== undefined) yield* keep(options.catalog, catalogName)

  const manifest = yield* step(file, async (): Promise<Manifest> => {
    const parts = []
    for (const name of names) {
      const path = join(folder, name)
      parts.push({ name, size_bytes: (await stat(path)).size, sha256: await sha256Of(path) })
    }
    const made_at = DateTime.formatIso(DateTime.makeUnsafe(madeAtMs))
    const made: Manifest = { format: backupFormat, edgewise: options.version, schema, made_at, node, parts }
    await writeFile(join(folder, manifestName), `${JSON.stringify(made, undefined, 2)}\n`, { mode: 0o600 })
    return made
  })

  const made = join(folder, `${basename(file)}.tar`)
  const sizeBytes = yield* step(file, async () => {
    await create({ file: made, cwd: folder, mode: 0o600, portable: true, strict: true }, [
      manifestName,
      ...names,
    ])
    await chmod(made, 0o600)
    await syncFile(made)
    await nameIt(made, file)
    return (await stat(file)).size
  })
  return { file, sizeBytes, manifest }
})
