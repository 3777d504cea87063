// Where the uploads of transcription jobs lie if any node may do any job: a folder that all nodes of a database mount
// (`EDGEWISE_UPLOADS`), or a bucket (S3Uploads.ts). A file is complete and synced before a job names it, and a worker copies it to its own disk and compares its
// digest, so that a folder that is cut off or a file that was changed ends in an error and never in half a transcript.
//
// A file server that hangs keeps a thread of the process busy, which nothing can end. So few calls may hang, and then all are refused.
import { createHash, randomBytes, randomUUID } from "node:crypto"
import { type FileHandle, mkdir, open, readdir, rename, stat } from "node:fs/promises"
import { join, resolve } from "node:path"
import { Context, Duration, Effect, Layer, Schema, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { removeSpooled } from "#audio/SpoolFile.ts"
import { problemOf } from "#store/files/DataDir.ts"
import { syncFile } from "#store/files/Durable.ts"
import { notWorking, StoreUnavailable } from "#store/files/StoreErrors.ts"
import { onceFile, readOnceFile } from "#store/files/WriteOnceFile.ts"
import type { UploadFacts } from "#store/ledger/JobRows.ts"

/** An upload cannot be used: the place of the uploads cannot be reached now, the file is not there, or it is not the one accepted. */
export class UploadLost extends Schema.TaggedError<UploadLost>()("UploadLost", {
  reason: Schema.Literals(["away", "gone", "changed"]),
  /** For the log. */
  problem: Schema.String,
}) {}

export interface SharedUploadsView {
  /** Stores a copy of the file. Once this has succeeded, it survives a power failure. */
  readonly put: (
    path: string,
  ) => Effect.Effect<{ readonly name: string; readonly shared: UploadFacts }, UploadLost>
  /** Copies the file to `folder`; the copy is removed with the scope. Returns its path. */
  readonly fetch: (
    name: string,
    facts: UploadFacts,
    folder: string,
  ) => Effect.Effect<string, UploadLost, Scope.Scope>
  /** Removes the file. If that fails, a line says so, and `old` finds it later. */
  readonly remove: (name: string) => Effect.Effect<void>
  /** Names of files that were older than a day, by the clock of the file server, in this call and in the one before. */
  readonly old: Effect.Effect<ReadonlyArray<string>, UploadLost>
}

/** Undefined: each node keeps the uploads that it accepted. */
export const SharedUploads = Context.Reference<SharedUploadsView | undefined>(
  "edgewise/services/SharedUploads",
  {
    defaultValue: () => undefined,
  },
)

/** Bytes read, hashed and written at a time: below a millisecond of the event loop. */
const pieceBytes = 256 * 1024

/** Longest time for one file, of at most 100 MB. A guess. */
const deadline = Duration.seconds(60)

/** Calls that may hang at a time. The process has four threads for files. */
const mostLate = 2

/** A file without a job is removed at this age: an upload that is being stored takes minutes at most. */
export const oldMs = 24 * 3_600_000

/** Identifies the folder or bucket: two nodes of one database must not mean different ones. */
export const markName = ".edgewise-uploads"

/** Row of `meta` with the same text. */
export const metaName = "shared uploads"

/** Names of uploads. `.part` is one that is being written. */
export const nameShape = /^[0-9a-f-]{36}(?:\.part)?$/

const isMissing = (cause: unknown): boolean => (cause as NodeJS.ErrnoException).code === "ENOENT"

/** Copies a file, synced, and returns what was read. Leaves nothing behind if it fails or is aborted. */
const copyFile = async (from: string, to: string, signal: AbortSignal): Promise<UploadFacts> => {
  const digest = createHash("sha256")
  const piece = Buffer.allocUnsafe(pieceBytes)
  let sizeBytes = 0
  let source: FileHandle | undefined
  let target: FileHandle | undefined
  try {
    source = await open(from, "r")
    target = await open(to, "wx", 0o600)
    for (;;) {
      signal.throwIfAborted()
      const { bytesRead } = await source.read(piece, 0, piece.length)
      if (bytesRead === 0) break
      digest.update(piece.subarray(0, bytesRead))
      for (let at = 0; at < bytesRead; ) {
        at += (await target.write(piece, at, bytesRead - at)).bytesWritten
      }
      sizeBytes += bytesRead
    }
    await target.sync()
    await target.close()
    target = undefined
    return { sizeBytes, sha256: digest.digest("hex") }
  } catch (cause) {
    await target?.close().catch(() => {})
    await removeSpooled(to).catch(() => {})
    throw cause
  } finally {
    await source?.close().catch(() => {})
  }
}

/** The folder's id, which the database knows as well. Fails if they differ. */
const identify = Effect.fnUntraced(function* (folder: string) {
  const sql = yield* SqlClient.SqlClient
  const inDatabase = Effect.map(
    sql<{ readonly value: string }>`SELECT value FROM meta WHERE name = ${metaName}`,
    ([row]) => row?.value,
  )
  const mark = join(folder, markName)
  yield* Effect.tryPromise({
    try: () => stat(folder),
    catch: (cause) =>
      new StoreUnavailable({
        place: folder,
        problem: isMissing(cause)
          ? "there is no such folder, which EDGEWISE_UPLOADS names"
          : problemOf(cause),
      }),
  })
  const known = yield* Effect.mapError(inDatabase, notWorking)
  const here =
    known === undefined
      ? yield* onceFile(mark, () => randomBytes(12).toString("hex"))
      : yield* readOnceFile(mark)
  yield* Effect.mapError(
    sql`INSERT INTO meta (name, value) SELECT ${metaName}, ${here ?? ""} WHERE ${known === undefined ? 1 : 0} = 1
        ON CONFLICT (name) DO NOTHING`,
    notWorking,
  )
  if ((yield* Effect.mapError(inDatabase, notWorking)) === here) return { mark, id: here }
  return yield* new StoreUnavailable({
    place: folder,
    problem: `is not the folder of uploads that the nodes of this database share, which has their file ${markName}; mount that one here`,
  })
})

const make = Effect.fnUntraced(function* (given: string) {
  const folder = resolve(given)
  const { id, mark } = yield* identify(folder)
  let late = 0
  let oldBefore: ReadonlySet<string> = new Set()

  const away = (cause: unknown) => new UploadLost({ reason: "away", problem: problemOf(cause) })
  const hangs = new UploadLost({ reason: "away", problem: "does not answer" })

  /** Runs file operations. One that hangs cannot be ended; the caller goes on after the deadline. */
  const access = <A>(work: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, UploadLost> =>
    Effect.suspend(() => {
      if (late >= mostLate) return Effect.fail(hangs)
      let isLate = false
      const over = () => {
        if (isLate) late--
      }
      const ended = new AbortController()
      const running = work(ended.signal)
      running.then(over, over)
      return Effect.tryPromise({
        try: () => running,
        catch: (cause) => (cause instanceof UploadLost ? cause : away(cause)),
      }).pipe(
        Effect.timeoutOrElse({
          duration: deadline,
          orElse: () => {
            isLate = true
            late++
            return Effect.fail(hangs)
          },
        }),
        Effect.ensuring(Effect.sync(() => ended.abort())),
      )
    })

  /** A path under which nothing is mounted looks like an empty folder. */
  const isThere = async (): Promise<boolean> => {
    const handle = await open(mark, "r").catch(() => undefined)
    if (handle === undefined) return false
    try {
      return (await handle.readFile("utf8")).trim() === id
    } finally {
      await handle.close()
    }
  }
  const requireThere = async (): Promise<void> => {
    if (!(await isThere())) throw new UploadLost({ reason: "away", problem: `${markName} is not there` })
  }

  const view: SharedUploadsView = {
    put: (path) =>
      access(async (signal) => {
        await requireThere()
        const name = randomUUID()
        const part = join(folder, `${name}.part`)
        const shared = await copyFile(path, part, signal)
        await rename(part, join(folder, name))
        await syncFile(join(folder, name))
        return { name, shared }
      }),
    fetch: (name, facts, into) =>
      Effect.gen(function* () {
        const path = join(into, randomUUID())
        yield* Effect.addFinalizer(() => Effect.promise(() => removeSpooled(path).catch(() => {})))
        yield* access(async (signal) => {
          const file = join(folder, name)
          await mkdir(into, { recursive: true, mode: 0o700 })
          const copied = await copyFile(file, path, signal).catch(async (cause: unknown) => {
            const isGone = await stat(file).then(() => false, isMissing)
            if (!isGone || !(await isThere())) throw cause
            throw new UploadLost({ reason: "gone", problem: `${name} is not there` })
          })
          if (copied.sizeBytes === facts.sizeBytes && copied.sha256 === facts.sha256) return
          throw new UploadLost({ reason: "changed", problem: `${name} is not the file that was accepted` })
        })
        return path
      }),
    remove: (name) =>
      access(() => removeSpooled(join(folder, name))).pipe(
        Effect.catch(({ problem }) =>
          Effect.logWarning("a shared upload could not be removed; will try again in a day").pipe(
            Effect.annotateLogs({ upload: name, problem }),
          ),
        ),
      ),
    old: access(async () => {
      await requireThere()
      // The file server's own time: that of a file that is made now.
      const probe = join(folder, `${randomUUID()}.part`)
      const handle = await open(probe, "wx", 0o600)
      const { mtimeMs: nowMs } = await handle.stat()
      await handle.close()
      await removeSpooled(probe)
      const found: Array<string> = []
      for (const name of await readdir(folder)) {
        if (!nameShape.test(name)) continue
        const facts = await stat(join(folder, name)).catch(() => undefined)
        if (facts !== undefined && nowMs - facts.mtimeMs > oldMs) found.push(name)
      }
      const both = found.filter((name) => oldBefore.has(name))
      oldBefore = new Set(found)
      return both
    }),
  }
  return view
})

/** The folder must exist. Fails if it cannot be used, or if it is not the one of the other nodes. */
export const sharedUploads = (folder: string): Layer.Layer<never, StoreUnavailable, SqlClient.SqlClient> =>
  Layer.effect(SharedUploads, make(folder))
