// The uploads of transcription jobs in a bucket of an S3 service (`EDGEWISE_UPLOADS=s3://…`), for nodes of one database: the other place
// beside the folder of SharedUploads.ts, with the same promises. Uploads are the objects `PREFIX/uploads/…`.
import { randomBytes, randomUUID } from "node:crypto"
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { removeSpooled } from "#audio/SpoolFile.ts"
import { problemOf } from "#store/files/DataDir.ts"
import type { S3Access, S3Address } from "#store/files/S3Address.ts"
import { notWorking, StoreUnavailable } from "#store/files/StoreErrors.ts"
import { factsOf, openBucket, type S3Bucket, S3Problem, type S3Times } from "./S3Bucket.ts"
import {
  markName,
  metaName,
  nameShape,
  oldMs,
  SharedUploads,
  type SharedUploadsView,
  UploadLost,
} from "./SharedUploads.ts"

/** Value of the row `metaName` while the object that identifies the bucket is not written yet: this and the id. */
const unwritten = "new "

/** Old names remembered, and pages listed, in one call: the rest has its turn when these have gone. */
const mostOld = 10_000
const mostPages = 100

/** Fails unless objects can be written, read, listed and removed. */
const tryOut = async (bucket: S3Bucket, folder: string, signal: AbortSignal): Promise<void> => {
  const key = `${folder}${randomUUID()}`
  const text = randomUUID()
  await bucket.put(key, text, signal)
  const stored = await bucket.get(key, signal)
  await bucket.list(folder, undefined, signal)
  await bucket.remove(key, signal)
  if (stored !== text) throw new S3Problem("an object that was stored came back as another one")
}

/** The bucket's id, which the database knows as well. Fails if they differ, because another database's nodes would remove its uploads. */
const identify = Effect.fnUntraced(function* (bucket: S3Bucket, mark: string, place: string) {
  const sql = yield* SqlClient.SqlClient
  const inDatabase = Effect.mapError(
    Effect.map(
      sql<{ readonly value: string }>`SELECT value FROM meta WHERE name = ${metaName}`,
      ([row]) => row?.value,
    ),
    notWorking,
  )
  const ask = <A>(work: (signal: AbortSignal) => Promise<A>) =>
    Effect.tryPromise({
      try: work,
      catch: (cause) => new StoreUnavailable({ place, problem: problemOf(cause) }),
    })
  const other = new StoreUnavailable({
    place,
    problem: `does not hold the uploads that the nodes of this database share, which have the object ${markName}; name the right bucket, or a prefix without that object`,
  })
  // The row is always written before the object.
  const here = yield* ask((signal) => bucket.get(mark, signal))
  if (here !== undefined && (yield* inDatabase) === undefined) return yield* other
  yield* Effect.mapError(
    sql`INSERT INTO meta (name, value) VALUES (${metaName}, ${`${unwritten}${randomBytes(12).toString("hex")}`})
        ON CONFLICT (name) DO NOTHING`,
    notWorking,
  )
  const value = (yield* inDatabase) ?? ""
  if (!value.startsWith(unwritten)) {
    if (here !== value) {
      // Another node may have written it since.
      if ((yield* ask((signal) => bucket.get(mark, signal))) !== value) return yield* other
    }
    return
  }
  const id = value.slice(unwritten.length)
  if (here !== undefined && here !== id) return yield* other
  yield* ask((signal) => bucket.put(mark, id, signal))
  yield* Effect.mapError(
    sql`UPDATE meta SET value = ${id} WHERE name = ${metaName} AND value = ${value}`,
    notWorking,
  )
})

interface S3Place {
  readonly address: S3Address
  readonly access: S3Access
  /** Absent: those of S3Bucket.ts. */
  readonly times?: S3Times
}

const make = Effect.fnUntraced(function* ({ access: credentials, address, times }: S3Place) {
  const place = `s3://${address.bucket}/${address.prefix}`
  const folder = `${address.prefix}uploads/`
  const unusable = (cause: unknown) => new StoreUnavailable({ place, problem: problemOf(cause) })
  const bucket = yield* Effect.tryPromise({
    try: () => openBucket(address, credentials, times),
    catch: unusable,
  })
  yield* Effect.tryPromise({ try: (signal) => tryOut(bucket, folder, signal), catch: unusable })
  yield* identify(bucket, `${address.prefix}${markName}`, place)
  let oldBefore: ReadonlySet<string> = new Set()

  const access = <A>(work: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, UploadLost> =>
    Effect.tryPromise({
      try: work,
      catch: (cause) =>
        cause instanceof UploadLost ? cause : new UploadLost({ reason: "away", problem: problemOf(cause) }),
    })

  const view: SharedUploadsView = {
    put: (path) =>
      access(async (signal) => {
        const shared = await factsOf(path, signal)
        const name = randomUUID()
        const key = `${folder}${name}`
        await bucket.putFile(key, path, shared, signal)
        const stored = await bucket.size(key, signal)
        if (stored === shared.sizeBytes) return { name, shared }
        await bucket.remove(key, signal).catch(() => {})
        throw new UploadLost({
          reason: "away",
          problem: `stored ${stored ?? "no"} of ${shared.sizeBytes} bytes, and said that all are safe`,
        })
      }),
    fetch: (name, facts, into) =>
      Effect.gen(function* () {
        const path = join(into, randomUUID())
        yield* Effect.addFinalizer(() => Effect.promise(() => removeSpooled(path).catch(() => {})))
        const copy = access(async (signal) => {
          await mkdir(into, { recursive: true, mode: 0o700 })
          const copied = await bucket
            .getFile(`${folder}${name}`, path, facts.sizeBytes, signal)
            .catch((cause: unknown) => {
              const isGone = cause instanceof S3Problem && cause.code === "NoSuchKey"
              throw isGone ? new UploadLost({ reason: "gone", problem: `${name} is not there` }) : cause
            })
          if (copied.sizeBytes === facts.sizeBytes && copied.sha256 === facts.sha256) return
          await removeSpooled(path)
          throw new UploadLost({ reason: "changed", problem: `${name} is not the file that was accepted` })
        })
        // A proxy that cuts an answer must not end the job.
        yield* Effect.retry(copy, { times: 1, while: ({ reason }) => reason === "changed" })
        return path
      }),
    remove: (name) =>
      access((signal) => bucket.remove(`${folder}${name}`, signal)).pipe(
        Effect.catch(({ problem }) =>
          Effect.logWarning("a shared upload could not be removed; will try again in a day").pipe(
            Effect.annotateLogs({ upload: name, problem }),
          ),
        ),
      ),
    old: access(async (signal) => {
      const found: Array<string> = []
      let after: string | undefined
      for (let page = 0; page < mostPages && found.length < mostOld; page++) {
        const { next, nowMs, objects } = await bucket.list(folder, after, signal)
        for (const { key, modifiedMs } of objects) {
          const name = key.slice(folder.length)
          if (nameShape.test(name) && nowMs - modifiedMs > oldMs) found.push(name)
        }
        if (next === undefined) break
        after = next
      }
      const both = found.filter((name) => oldBefore.has(name))
      oldBefore = new Set(found)
      return both
    }),
  }
  return view
})

/** The bucket must exist. Fails if it cannot be used, or if it is not the one of the other nodes. */
export const s3Uploads = (place: S3Place): Layer.Layer<never, StoreUnavailable, SqlClient.SqlClient> =>
  Layer.effect(SharedUploads, make(place))
