// Shared uploads in a bucket, against a service that checks signatures: what is stored comes back or is refused, each fault of a service
// is a clear error that holds no credential, nothing half is left, and another database's bucket is not used.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { factsOf, openBucket, S3Problem, type S3Times, s3Times } from "#services/jobs/S3Bucket.ts"
import { s3Uploads } from "#services/jobs/S3Uploads.ts"
import { SharedUploads, sharedUploads, type UploadLost } from "#services/jobs/SharedUploads.ts"
import { parseS3Address, type S3Access } from "#store/files/S3Address.ts"
import { sqliteStoreLayer } from "#store/Store.ts"
import { tempDir } from "../store/TempDir.ts"
import { type S3Server, startS3 } from "../support/servers/S3Server.ts"

const store = Layer.build(Layer.fresh(sqliteStoreLayer(":memory:")))
type Store = Effect.Success<typeof store>

const times = { ...s3Times, retry: 1 }
/** Times of one client, which loses its patience where the service does not answer: everything else may take long on a busy machine. */
const ofOneClient = () => {
  const own = { ...times }
  const beImpatient = () => {
    own.idle = 200
  }
  return { times: own, beImpatient }
}

const open = Effect.fnUntraced(function* (
  server: S3Server,
  on: Store,
  options: { readonly path?: string; readonly access?: Partial<S3Access>; readonly times?: S3Times } = {},
) {
  const address = parseS3Address(`s3://${server.bucket}${options.path ?? "/jobs"}`)!
  const layer = s3Uploads({
    address,
    access: { ...server.access, ...options.access },
    times: options.times ?? times,
  })
  const context = yield* Effect.provideContext(Layer.build(Layer.fresh(layer)), on)
  return Context.get(context, SharedUploads)!
})

const service = (options: Parameters<typeof startS3>[0] = {}) =>
  Effect.acquireRelease(
    Effect.promise(() => startS3(options)),
    (server) => Effect.promise(server.stop),
  )

const world = Effect.gen(function* () {
  const dir = yield* tempDir
  const file = join(dir, "upload")
  const bytes = Buffer.alloc(1_500_001, "audio")
  writeFileSync(file, bytes)
  const server = yield* service()
  const database = yield* store
  return {
    dir,
    into: join(dir, "own"),
    file,
    bytes,
    server,
    database,
    uploads: yield* open(server, database),
  }
})

/** Keys of uploads, without the object that identifies the bucket. */
const keysOf = ({ objects }: S3Server) =>
  [...objects.keys()].filter((key) => !key.endsWith(".edgewise-uploads"))

const noCredential = (text: string, { access }: S3Server) => {
  for (const value of [access.accessKeyId, access.secretAccessKey, "AWS4-HMAC"])
    expect(text).not.toContain(value)
}

describe("uploads in a bucket", () => {
  it.effect("come back as they were, encrypted at rest, for as long as a worker needs them", () =>
    Effect.gen(function* () {
      const { bytes, file, into, server, uploads } = yield* world
      const { name, shared } = yield* uploads.put(file)
      expect(shared.sizeBytes).toBe(bytes.length)
      expect(keysOf(server)).toEqual([`jobs/uploads/${name}`])
      const stored = server.objects.get(`jobs/uploads/${name}`)
      expect([stored?.bytes.equals(bytes), stored?.encryption]).toEqual([true, "AES256"])
      yield* Effect.scoped(
        Effect.map(uploads.fetch(name, shared, into), (path) =>
          expect(readFileSync(path).equals(bytes)).toBe(true),
        ),
      )
      expect(readdirSync(into)).toEqual([])
      yield* uploads.remove(name)
      yield* uploads.remove(name)
      expect(keysOf(server)).toEqual([])
      expect(server.requests.filter(({ status }) => status >= 400)).toEqual([
        // The object that identifies the bucket, before the first node wrote it.
        { method: "GET", path: "/edgewise-test/jobs/.edgewise-uploads", status: 404 },
      ])
    }).pipe(Effect.scoped),
  )

  it.effect("need neither a prefix nor encryption, and take a session's token", () =>
    Effect.gen(function* () {
      const { database, file, into } = yield* world
      const server = yield* service({ bucket: "with.dots", sessionToken: "token//of=session" })
      const uploads = yield* open(server, yield* store, { path: "?encryption=none" })
      const { name, shared } = yield* uploads.put(file)
      expect(server.objects.get(`uploads/${name}`)?.encryption).toBeUndefined()
      yield* Effect.scoped(uploads.fetch(name, shared, into))
      const refused = yield* Effect.flip(open(server, database, { access: { sessionToken: "another" } }))
      expect(refused.message).toMatch(
        /^s3:\/\/with\.dots\/jobs\/: the credentials .* are refused \(InvalidToken\)$/,
      )
    }).pipe(Effect.scoped),
  )

  it.effect("pass over failures of a moment: a broken connection, SlowDown, a clock that is wrong", () =>
    Effect.gen(function* () {
      const { bytes, file, into, server, uploads } = yield* world
      server.faults.push(
        { method: "PUT", times: 1, does: "break" },
        { method: "PUT", times: 1, does: { refuse: [503, "SlowDown"] } },
      )
      const { name, shared } = yield* uploads.put(file)
      expect(server.objects.get(`jobs/uploads/${name}`)?.bytes.equals(bytes)).toBe(true)
      server.faults.push({ method: "GET", times: 1, does: "break" }, { method: "GET", times: 1, does: "cut" })
      yield* Effect.scoped(
        Effect.map(uploads.fetch(name, shared, into), (path) =>
          expect(readFileSync(path).equals(bytes)).toBe(true),
        ),
      )
      for (const hours of [25, -25]) {
        server.aheadMs = hours * 3_600_000
        yield* uploads.put(file)
      }
    }).pipe(Effect.scoped),
  )

  it.effect("are refused if they were changed or cut, or are gone", () =>
    Effect.gen(function* () {
      const { bytes, file, into, server, uploads } = yield* world
      const { name, shared } = yield* uploads.put(file)
      const key = `jobs/uploads/${name}`
      const reason = Effect.map(
        Effect.flip(Effect.scoped(uploads.fetch(name, shared, into))),
        (error) => error.reason,
      )
      const of = (changed: Buffer) =>
        server.objects.set(key, { bytes: changed, modifiedMs: Date.now(), encryption: undefined })
      for (const changed of [
        bytes.subarray(0, -1),
        Buffer.alloc(bytes.length, "other"),
        Buffer.concat([bytes, bytes]),
        Buffer.alloc(0),
      ]) {
        of(changed)
        expect(yield* reason).toBe("changed")
      }
      server.objects.delete(key)
      expect(yield* reason).toBe("gone")
      // A bucket that was removed is no reason to give up a job.
      server.faults.push({ method: "GET", does: { refuse: [404, "NoSuchBucket"] } })
      expect(yield* reason).toBe("away")
      expect(readdirSync(into)).toEqual([])
    }).pipe(Effect.scoped),
  )

  it.effect("are not taken by a service that refuses, cuts, breaks or does not answer", () =>
    Effect.gen(function* () {
      const { database, file, into, server, uploads } = yield* world
      const { name, shared } = yield* uploads.put(file)
      const { beImpatient, times: short } = ofOneClient()
      const hasty = yield* open(server, database, { times: short })
      beImpatient()
      const before = keysOf(server)
      const problemWith = Effect.fnUntraced(function* (
        does: (typeof server.faults)[number]["does"],
        method = "PUT",
      ) {
        server.faults.splice(0, server.faults.length, { method, does })
        const asked = does === "hang" ? hasty : uploads
        const work: Effect.Effect<unknown, UploadLost> =
          method === "PUT" ? asked.put(file) : Effect.scoped(asked.fetch(name, shared, into))
        const error = yield* Effect.flip(work)
        expect(error.reason).toBe("away")
        noCredential(JSON.stringify(error), server)
        return error.problem
      })
      expect(yield* problemWith({ refuse: [403, "AccessDenied"] })).toBe("PUT is not allowed (AccessDenied)")
      expect(yield* problemWith({ refuse: [503, "SlowDown"] })).toBe("the service answers 503 SlowDown")
      expect(yield* problemWith({ refuse: [500, ""] })).toBe("the service answers 500")
      expect(yield* problemWith("cut")).toBe("stored 750000 of 1500001 bytes, and said that all are safe")
      expect(yield* problemWith("break")).toMatch(/^the connection failed \([A-Z]+\)$/)
      expect(yield* problemWith("hang")).toBe("the service does not answer")
      expect(yield* problemWith("break", "GET")).toMatch(/^the connection failed \([A-Z]+\)$/)
      expect(yield* problemWith("hang", "GET")).toBe("the service does not answer")
      expect(yield* problemWith({ refuse: [403, "AccessDenied"] }, "GET")).toBe(
        "GET is not allowed (AccessDenied)",
      )
      expect(keysOf(server)).toEqual(before)
      expect(readdirSync(into)).toEqual([])
    }).pipe(Effect.scoped),
  )

  it.effect(
    "that are not what was read before are not stored, and neither is a file that cannot be read",
    () =>
      Effect.gen(function* () {
        const { file, server, uploads } = yield* world
        const { signal } = new AbortController()
        const { beImpatient, times: short } = ofOneClient()
        const bucket = yield* Effect.promise(() =>
          openBucket(parseS3Address("s3://edgewise-test")!, server.access, short),
        )
        const facts = yield* Effect.promise(() => factsOf(file, signal))
        writeFileSync(file, Buffer.alloc(facts.sizeBytes, "other"))
        yield* Effect.promise(() =>
          expect(bucket.putFile("changed", file, facts, signal)).rejects.toThrow("XAmzContentSHA256Mismatch"),
        )
        // One that has become shorter: the service waits for the rest.
        writeFileSync(file, "short")
        beImpatient()
        yield* Effect.promise(() =>
          expect(bucket.putFile("cut", file, facts, signal)).rejects.toThrow(S3Problem),
        )
        expect((yield* Effect.flip(uploads.put(`${file}-gone`))).reason).toBe("away")
        expect(keysOf(server)).toEqual([])
        writeFileSync(file, "")
        expect((yield* uploads.put(file)).shared.sizeBytes).toBe(0)
      }).pipe(Effect.scoped),
  )

  it.effect(
    "are old a day after they were stored, by the service's clock, if a second call finds them too",
    () =>
      Effect.gen(function* () {
        const { file, server, uploads } = yield* world
        server.pageSize = 2
        const old: Array<string> = []
        for (let nth = 0; nth < 5; nth++) old.push((yield* uploads.put(file)).name)
        server.objects.set("jobs/uploads/notes.txt", server.objects.get(`jobs/uploads/${old[0]}`)!)
        server.aheadMs = 25 * 3_600_000
        yield* uploads.put(file)
        expect(yield* uploads.old).toEqual([])
        expect([...(yield* uploads.old)].toSorted()).toEqual(old.toSorted())
        server.faults.push({ method: "GET", does: { refuse: [403, "AccessDenied"] } })
        expect((yield* Effect.flip(uploads.old)).problem).toBe("GET is not allowed (AccessDenied)")
      }).pipe(Effect.scoped),
  )
})

describe("a bucket", () => {
  it.effect(
    "is the same for all nodes of a database, and another one, or another database's, is refused",
    () =>
      Effect.gen(function* () {
        const { database, dir, file, into, server, uploads } = yield* world
        const { name, shared } = yield* uploads.put(file)
        const same = yield* open(server, database)
        yield* Effect.scoped(same.fetch(name, shared, into))
        const message = (path: string) =>
          `s3://edgewise-test/${path}: does not hold the uploads that the nodes of this database share, which have the object .edgewise-uploads; name the right bucket, or a prefix without that object`
        const elsewhere = yield* Effect.flip(open(server, database, { path: "/other" }))
        expect(elsewhere.message).toBe(message("other/"))
        const foreign = yield* store
        expect((yield* Effect.flip(open(server, foreign))).message).toBe(message("jobs/"))
        // That database is not bound to anything by the mistake.
        yield* open(server, foreign, { path: "/foreign" })
        const folder = join(dir, "folder")
        mkdirSync(folder)
        const mixed = Effect.provideContext(Layer.build(Layer.fresh(sharedUploads(folder))), database)
        expect((yield* Effect.flip(mixed)).message).toContain("is not the folder of uploads")
        expect(existsSync(join(folder, ".edgewise-uploads"))).toBe(false)
      }).pipe(Effect.scoped),
  )

  it.effect("is opened by many nodes at once, also where the first one was killed in between", () =>
    Effect.gen(function* () {
      const server = yield* service()
      const database = yield* store
      server.faults.push({
        method: "PUT",
        key: ".edgewise-uploads",
        times: 1,
        does: { refuse: [403, "AccessDenied"] },
      })
      yield* Effect.flip(open(server, database))
      yield* Effect.all(
        Array.from({ length: 8 }, () => open(server, database)),
        { concurrency: "unbounded" },
      )
      expect(server.objects.size).toBe(1)
    }).pipe(Effect.scoped),
  )

  it.effect(
    "that is missing, refuses or is out of reach stops the start with one line without a credential",
    () =>
      Effect.gen(function* () {
        const server = yield* service()
        const database = yield* store
        const refused = Effect.fnUntraced(function* (access: Partial<S3Access>, bucket = server.bucket) {
          const { message } = yield* Effect.flip(open({ ...server, bucket }, database, { access }))
          noCredential(message, server)
          expect(message).not.toContain("wrong")
          return message
        })
        const credentials = "the credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are refused"
        expect(yield* refused({ secretAccessKey: "wrong" })).toBe(
          `s3://edgewise-test/jobs/: ${credentials} (SignatureDoesNotMatch)`,
        )
        expect(yield* refused({ accessKeyId: "wrong" })).toBe(
          `s3://edgewise-test/jobs/: ${credentials} (InvalidAccessKeyId)`,
        )
        expect(yield* refused({}, "no-such-bucket")).toBe(
          "s3://no-such-bucket/jobs/: there is no such bucket",
        )
        expect(yield* refused({ region: "eu-test-2" })).toBe(
          "s3://edgewise-test/jobs/: the service answers 400 AuthorizationHeaderMalformed",
        )
        // Rights that are missing are found at the start, not by the first upload.
        for (const method of ["PUT", "GET", "DELETE"]) {
          server.faults.splice(0, server.faults.length, { method, does: { refuse: [403, "AccessDenied"] } })
          expect(yield* refused({})).toBe(`s3://edgewise-test/jobs/: ${method} is not allowed (AccessDenied)`)
        }
        server.faults.length = 0
        expect([...server.objects.keys()].filter((key) => key.includes(".edgewise"))).toEqual([])
        yield* Effect.promise(server.stop)
        expect(yield* refused({})).toBe("s3://edgewise-test/jobs/: the connection failed (ECONNREFUSED)")
      }).pipe(Effect.scoped),
  )
})
