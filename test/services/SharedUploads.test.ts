// The folder of shared uploads: what is stored comes back or is refused, nothing half is left, and a folder that is not the one of the
// other nodes is not used.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { SharedUploads, sharedUploads } from "#services/jobs/SharedUploads.ts"
import { sqliteStoreLayer } from "#store/Store.ts"
import { tempDir } from "../store/TempDir.ts"

const store = Layer.build(Layer.fresh(sqliteStoreLayer(":memory:")))

/** What a node on that store uses. */
const open = Effect.fnUntraced(function* (folder: string, on: Effect.Success<typeof store>) {
  const context = yield* Effect.provideContext(Layer.build(Layer.fresh(sharedUploads(folder))), on)
  return Context.get(context, SharedUploads)!
})

const world = Effect.gen(function* () {
  const dir = yield* tempDir
  const folder = join(dir, "shared")
  mkdirSync(folder)
  const file = join(dir, "upload")
  const bytes = Buffer.alloc(700_001, "audio")
  writeFileSync(file, bytes)
  const database = yield* store
  return { dir, folder, file, bytes, database, uploads: yield* open(folder, database) }
})

const visible = (folder: string) => readdirSync(folder).filter((name) => !name.startsWith("."))

describe("shared uploads", () => {
  it.effect("come back as they were, for as long as a worker needs them", () =>
    Effect.gen(function* () {
      const { bytes, dir, file, folder, uploads } = yield* world
      const { name, shared } = yield* uploads.put(file)
      expect(shared.sizeBytes).toBe(bytes.length)
      expect(visible(folder)).toEqual([name])
      // The folder of the node's own uploads may be missing.
      const into = join(dir, "own")
      yield* Effect.scoped(
        Effect.map(uploads.fetch(name, shared, into), (path) => expect(readFileSync(path)).toEqual(bytes)),
      )
      expect(readdirSync(into)).toEqual([])
      yield* uploads.remove(name)
      yield* uploads.remove(name)
      expect(visible(folder)).toEqual([])
    }).pipe(Effect.scoped),
  )

  it.effect("are refused if they were changed or cut, are gone, or if the folder is away", () =>
    Effect.gen(function* () {
      const { bytes, dir, file, folder, uploads } = yield* world
      const { name, shared } = yield* uploads.put(file)
      const into = join(dir, "own")
      const reason = Effect.map(
        Effect.flip(Effect.scoped(uploads.fetch(name, shared, into))),
        (error) => error.reason,
      )
      writeFileSync(join(folder, name), bytes.subarray(0, -1))
      expect(yield* reason).toBe("changed")
      writeFileSync(join(folder, name), Buffer.alloc(bytes.length, "other"))
      expect(yield* reason).toBe("changed")
      renameSync(folder, `${folder}-away`)
      expect(yield* reason).toBe("away")
      expect((yield* Effect.flip(uploads.put(file))).reason).toBe("away")
      // A path under which nothing is mounted.
      mkdirSync(folder)
      expect(yield* reason).toBe("away")
      expect((yield* Effect.flip(uploads.put(file))).reason).toBe("away")
      expect(visible(folder)).toEqual([])
      rmSync(folder, { recursive: true })
      renameSync(`${folder}-away`, folder)
      rmSync(join(folder, name))
      expect(yield* reason).toBe("gone")
      expect(readdirSync(into)).toEqual([])
    }).pipe(Effect.scoped),
  )

  it.effect("leave nothing behind that could not be stored whole", () =>
    Effect.gen(function* () {
      const { dir, folder, uploads } = yield* world
      expect((yield* Effect.flip(uploads.put(join(dir, "nothing")))).reason).toBe("away")
      expect(visible(folder)).toEqual([])
    }).pipe(Effect.scoped),
  )

  it.effect("are old a day after they were stored, if a second call finds them too", () =>
    Effect.gen(function* () {
      const { file, folder, uploads } = yield* world
      const old = yield* uploads.put(file)
      yield* uploads.put(file)
      writeFileSync(join(folder, "notes.txt"), "of the operator")
      const then = new Date(Date.now() - 25 * 3_600_000)
      for (const name of [old.name, "notes.txt"]) utimesSync(join(folder, name), then, then)
      expect(yield* uploads.old).toEqual([])
      expect(yield* uploads.old).toEqual([old.name])
    }).pipe(Effect.scoped),
  )
})

describe("a folder", () => {
  it.effect("is the same for all nodes of a database, and another is refused", () =>
    Effect.gen(function* () {
      const { database, dir, file, folder, uploads } = yield* world
      const { name, shared } = yield* uploads.put(file)
      const same = yield* open(folder, database)
      yield* Effect.scoped(same.fetch(name, shared, join(dir, "own")))
      const other = join(dir, "other")
      mkdirSync(other)
      const refused = yield* Effect.flip(open(other, database))
      expect(refused.message).toBe(
        `${other}: is not the folder of uploads that the nodes of this database share, which has their file .edgewise-uploads; mount that one here`,
      )
      expect(readdirSync(other)).toEqual([])
      // That of another database's nodes.
      yield* open(other, yield* store)
      expect((yield* Effect.flip(open(other, database)))._tag).toBe("StoreUnavailable")
    }).pipe(Effect.scoped),
  )

  it.effect("that is missing is refused, and not made", () =>
    Effect.gen(function* () {
      const { dir } = yield* world
      const missing = join(dir, "missing")
      expect((yield* Effect.flip(open(missing, yield* store))).message).toBe(
        `${missing}: there is no such folder, which EDGEWISE_UPLOADS names`,
      )
      expect(readdirSync(dir)).not.toContain("missing")
    }).pipe(Effect.scoped),
  )
})
