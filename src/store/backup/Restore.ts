// Restores a backup into an empty data directory, which becomes another node's. Everything is read, checked and changed in the folder
// `restore.partial` of the directory; the store gets its place last. A restore that was killed is begun again by the next one, and until
// then nothing else uses the directory (DataDir).
import { createHash } from "node:crypto"
import { once } from "node:events"
import { createReadStream, createWriteStream, existsSync } from "node:fs"
import { mkdir, readdir, rename, rm, rmdir, stat } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { pipeline } from "node:stream/promises"
import { Clock, Effect, Exit, Schema, type Scope } from "effect"
import { Parser, type ReadEntry } from "tar"
import { unfinishedRestore } from "../files/DataDir.ts"
import { syncFile } from "../files/Durable.ts"
import { tryFileLock } from "../files/FileLock.ts"
import type { StoreUnavailable } from "../files/StoreErrors.ts"
import { newestSchema } from "../migrations/index.ts"
import { placeRow } from "../sql/CopiedStore.ts"
import { nodeIdOf } from "../sql/StoreNode.ts"
import { BackupFailed, inWords, noSizeSignal, step } from "./BackupFiles.ts"
import { backupFormat, Manifest, manifestName, partNames, storeName } from "./Manifest.ts"

const lockName = "edge.lock"

/** A manifest is below 2 KB. */
const maxManifestBytes = 100_000

/** The note of a job that had not ended when the backup was made. */
const lostUpload = "The node was restored from a backup, which holds no uploads"

interface Restored {
  readonly dataDir: string
  readonly manifest: Manifest
  /** The new id of the node. */
  readonly node: string
  /** Jobs that had not ended: they have failed, because backups hold no uploads. */
  readonly failedJobs: number
}

const decodeManifest = Schema.decodeUnknownExit(Schema.fromJsonString(Manifest))

/** Throws what is wrong with the manifest. */
const manifestOf = (file: string, text: string): Manifest => {
  const refuse = (problem: string) => new BackupFailed({ place: file, problem })
  const decoded = decodeManifest(text)
  if (Exit.isFailure(decoded)) throw refuse(`is no backup of edgewise: its ${manifestName} cannot be read`)
  const manifest = decoded.value
  const { edgewise, format, parts, schema } = manifest
  if (format > backupFormat || schema > newestSchema) {
    throw refuse(
      `was made by a later version of edgewise (${edgewise}, schema ${schema}); restore it with that version`,
    )
  }
  const unknown = parts.find(({ name }) => !partNames.includes(name))
  if (unknown !== undefined) throw refuse(`has a part that is not known: ${JSON.stringify(unknown.name)}`)
  if (!parts.some(({ name }) => name === storeName)) throw refuse(`has no ${storeName}`)
  return manifest
}

/** Writes the parts of a backup into a folder, one after the other, and compares each with the manifest. */
const unpack = async (file: string, folder: string): Promise<Manifest> => {
  const damaged = (problem: string) => new BackupFailed({ place: file, problem: `is damaged: ${problem}` })
  const noBackup = (problem: string) =>
    new BackupFailed({ place: file, problem: `is no backup of edgewise: ${problem}` })
  const stopped = new AbortController()
  const seen = new Set<string>()
  let manifest: Manifest | undefined
  /** The part that is being written, or was last. Ends soon after `stopped`, and none begins then. */
  let writing: Promise<void> = Promise.resolve()

  const readManifest = async (entry: ReadEntry) => {
    if (entry.path !== manifestName || entry.size > maxManifestBytes) {
      throw noBackup(`it does not begin with ${manifestName}`)
    }
    const text = (await entry.concat()).toString("utf8")
    if (Buffer.byteLength(text) !== entry.size) throw damaged("it is cut off")
    manifest = manifestOf(file, text)
  }
  const readPart = async (entry: ReadEntry, known: Manifest) => {
    stopped.signal.throwIfAborted()
    const part = known.parts.find(({ name }) => name === entry.path)
    if (part === undefined || entry.type !== "File" || seen.has(part.name)) {
      throw damaged(`${JSON.stringify(entry.path)} does not belong to it`)
    }
    seen.add(part.name)
    const to = join(folder, part.name)
    await mkdir(dirname(to), { recursive: true, mode: 0o700 })
    const digest = createHash("sha256")
    stopped.signal.throwIfAborted()
    await pipeline(
      entry as AsyncIterable<Buffer>,
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          digest.update(chunk)
          yield chunk
        }
      },
      createWriteStream(to, { flags: "wx", mode: 0o600, flush: true }),
      { signal: stopped.signal },
    )
    if (entry.size !== part.size_bytes || digest.digest("hex") !== part.sha256) {
      throw damaged(`${part.name} is not what its ${manifestName} says`)
    }
  }

  // An entry gives nothing until it is read, and the parser goes on when it has been.
  let entries = Promise.resolve()
  const parser = new Parser({
    strict: true,
    onReadEntry: (entry) => {
      entries = entries.then(() => {
        if (manifest === undefined) return readManifest(entry)
        writing = readPart(entry, manifest)
        return writing
      })
      // Reported below; a rejection that is not handled yet must not end the process.
      entries.catch(() => stopped.abort())
    },
  })
  const format = new Promise<never>((_, reject) => {
    parser.on("error", () => reject(damaged("it is cut off, or no tar file")))
  })
  format.catch(() => stopped.abort())
  const read = async () => {
    for await (const chunk of createReadStream(file, { signal: stopped.signal })) {
      if (!parser.write(chunk as Buffer)) await once(parser, "drain", { signal: stopped.signal })
    }
    parser.end()
    await entries
  }
  try {
    await Promise.race([read(), format])
  } catch (cause) {
    stopped.abort()
    // What ended the reading, if that was only its consequence.
    const first = await Promise.race([entries, format, Promise.resolve()]).then(
      () => cause,
      (earlier: unknown) => earlier,
    )
    // Its folder and file may still be about to be made, and would be left beside what the caller removes.
    await writing.catch(() => {})
    throw first
  }
  if (manifest === undefined) throw noBackup("it is empty")
  const missing = (manifest as Manifest).parts.find(({ name }) => !seen.has(name))
  if (missing !== undefined) throw damaged(`${missing.name} is missing`)
  return manifest
}

/** Ends what belonged to the node that was backed up. Returns the number of jobs that had not ended. */
const makeAnother = (store: string, nowMs: number): number => {
  const db = new DatabaseSync(store)
  try {
    db.exec("PRAGMA secure_delete=ON")
    const has = (table: string) =>
      db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(table) !== undefined
    db.exec("BEGIN")
    const failed = has("transcription_jobs")
      ? db
          .prepare(
            `UPDATE transcription_jobs SET status = 'failed', note = ?, finished_at_ms = ?
             WHERE status IN ('accepted', 'processing')`,
          )
          .run(lostUpload, nowMs).changes
      : 0
    for (const table of ["nodes", "answer_claims"]) if (has(table)) db.exec(`DELETE FROM ${table}`)
    if (has("meta")) db.prepare("DELETE FROM meta WHERE name = ?").run(placeRow)
    db.exec("COMMIT")
    return Number(failed)
  } finally {
    db.close()
  }
}

const isThere = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )

/** Fails unless the directory is missing, empty, or holds what an unfinished restore has left. */
const requireEmpty = (dir: string): Effect.Effect<void, BackupFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const names = yield* step(dir, () => readdir(dir))
    const others = names.filter((name) => name !== lockName && name !== unfinishedRestore)
    if (others.length > 0 && !names.includes(lockName)) return yield* notEmpty(dir)
    const taken = yield* Effect.mapError(
      tryFileLock(join(dir, lockName)),
      (cause) => new BackupFailed({ place: dir, problem: inWords(cause) }),
    )
    if (!taken) {
      const problem = "a node or another restore uses it; name an empty data directory (EDGEWISE_DATA_DIR)"
      return yield* new BackupFailed({ place: dir, problem })
    }
    if (others.length > 0) return yield* notEmpty(dir)
  })

const notEmpty = (dir: string) =>
  new BackupFailed({
    place: dir,
    problem: "is not empty; a backup is restored into an empty data directory (EDGEWISE_DATA_DIR)",
  })

const restoreInto = Effect.fnUntraced(function* (file: string, dir: string) {
  yield* requireEmpty(dir)
  const folder = join(dir, unfinishedRestore)
  const put = Effect.gen(function* () {
    yield* step(dir, async () => {
      await rm(folder, { recursive: true, force: true })
      await mkdir(folder, { mode: 0o700 })
    })
    // Both may be at fault: a full disk is the directory's.
    const manifest = yield* Effect.mapError(
      step(file, () => unpack(file, folder)),
      (error) =>
        /^no space/.test(error.problem) ? new BackupFailed({ place: dir, problem: error.problem }) : error,
    )
    const nowMs = yield* Clock.currentTimeMillis
    const failedJobs = yield* step(dir, () => makeAnother(join(folder, storeName), nowMs))
    const node = yield* nodeIdOf(folder)
    yield* step(dir, async () => {
      const names = [...manifest.parts.map(({ name }) => name), "node-id"].filter(
        (name) => name !== storeName,
      )
      for (const name of [...names, storeName]) {
        await mkdir(dirname(join(dir, name)), { recursive: true, mode: 0o700 })
        await rename(join(folder, name), join(dir, name))
      }
      await syncFile(join(dir, storeName))
    })
    return { dataDir: dir, manifest, node, failedJobs }
  })
  const removeFolder = Effect.ignore(step(dir, () => rm(folder, { recursive: true, force: true })))
  return yield* Effect.ensuring(put, removeFolder)
})

export const restoreBackup = (options: {
  readonly dataDir: string
  readonly file: string
}): Effect.Effect<Restored, BackupFailed | StoreUnavailable> =>
  Effect.gen(function* () {
    const file = resolve(options.file)
    const dir = resolve(options.dataDir)
    yield* noSizeSignal
    if (!(yield* step(file, () => isThere(file)))) {
      return yield* new BackupFailed({ place: file, problem: "no such file" })
    }
    const madeDir = yield* step(dir, () => mkdir(dir, { recursive: true, mode: 0o700 }))
    const hadLock = existsSync(join(dir, lockName))
    // The lock's file is removed after the lock was released, and only if it was not there before.
    return yield* Effect.onError(Effect.scoped(restoreInto(file, dir)), () =>
      Effect.ignore(
        step(dir, async () => {
          if (!hadLock) await rm(join(dir, lockName), { force: true })
          if (madeDir !== undefined) await rmdir(dir)
        }),
      ),
    )
  }).pipe(Effect.scoped)
