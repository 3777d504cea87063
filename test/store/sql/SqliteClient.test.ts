import { existsSync, statSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { databaseFile } from "#store/files/DataDir.ts"
import { storeLayer } from "#store/Store.ts"
import { sqliteLayer } from "#store/sql/SqliteClient.ts"
import { bindsAndReturns, counter, keepsTransactionsWhole } from "../Counter.ts"
import { tempDir } from "../TempDir.ts"

const memory = sqliteLayer(":memory:")

it.effect("binds and returns the values of the product", () =>
  Effect.flatMap(counter, (table) => bindsAndReturns(table, new Uint8Array([0, 255]))).pipe(
    Effect.provide(memory),
  ),
)

it.effect("distinguishes a unique violation from a mistake", () =>
  Effect.gen(function* () {
    const { sql } = yield* counter
    const taken = yield* Effect.flip(sql`INSERT INTO counter (name, n) VALUES ('a', 1)`)
    expect(taken.reason._tag).toBe("UniqueViolation")
    const wrong = yield* Effect.flip(sql`SELECT * FROM nowhere`)
    expect(wrong.reason._tag).toBe("UnknownError")
    expect(wrong.message).toContain("nowhere")
  }).pipe(Effect.provide(memory)),
)

it.effect("keeps a transaction whole: failure, defect and interruption undo it", () =>
  Effect.flatMap(counter, keepsTransactionsWhole).pipe(Effect.provide(memory)),
)

it.effect("runs the transactions of many fibers one after another", () =>
  Effect.gen(function* () {
    const { sql, add, value } = yield* counter
    const readThenWrite = sql.withTransaction(
      Effect.gen(function* () {
        const before = yield* value
        yield* Effect.yieldNow
        yield* add(1)
        return before
      }),
    )
    const seen = yield* Effect.all(
      Array.from({ length: 50 }, () => readThenWrite),
      { concurrency: "unbounded" },
    )
    expect(new Set(seen).size).toBe(50)
    expect(yield* value).toBe(50)
  }).pipe(Effect.provide(memory)),
)

it.live("waits for another process's lock without holding up the event loop", () =>
  Effect.gen(function* () {
    const file = yield* databaseFile(yield* tempDir)
    yield* Effect.gen(function* () {
      const { sql, add, value } = yield* counter
      const other = new DatabaseSync(file)
      other.exec("BEGIN IMMEDIATE; UPDATE counter SET n = 41")

      let turns = 0
      const ticking = setInterval(() => turns++, 1)
      const write = yield* Effect.forkChild(sql.withTransaction(add(1)))
      const ticksAtLeast = (n: number): Effect.Effect<void> =>
        Effect.suspend(() => (turns >= n ? Effect.void : Effect.andThen(Effect.sleep(1), ticksAtLeast(n))))
      yield* ticksAtLeast(20)
      expect(write.pollUnsafe()).toBeUndefined()
      other.exec("COMMIT")
      other.close()
      yield* Fiber.join(write)
      clearInterval(ticking)
      expect(yield* value).toBe(42)
    }).pipe(Effect.provide(sqliteLayer(file)))
  }).pipe(Effect.scoped),
)

it.effect("keeps everything from other users of the machine", () =>
  Effect.gen(function* () {
    const dataDir = join(yield* tempDir, "deep", "data")
    yield* Effect.gen(function* () {
      const modes = ["", "store.sqlite", "store.sqlite-wal", "store.sqlite-shm"].map((name) =>
        (statSync(join(dataDir, name)).mode & 0o777).toString(8),
      )
      expect(modes).toEqual(["700", "600", "600", "600"])
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`PRAGMA journal_mode`).toEqual([{ journal_mode: "wal" }])
      expect(yield* sql`PRAGMA foreign_keys`).toEqual([{ foreign_keys: 1 }])
      expect(yield* sql`PRAGMA synchronous`).toEqual([{ synchronous: 1 }])
    }).pipe(Effect.provide(storeLayer({ dataDir })))
    // The last scope to close closes the database: none of its files stays open.
    expect(existsSync(join(dataDir, "store.sqlite-wal"))).toBe(false)
  }).pipe(Effect.scoped),
)

it.live("moves a node's log into the database on a thread, and lets it go", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const file = join(dataDir, "store.sqlite")
    yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`PRAGMA wal_autocheckpoint`).toEqual([{ wal_autocheckpoint: 16_000 }])
      const before = statSync(file).size
      yield* sql`CREATE TABLE big (data BLOB)`
      yield* sql`INSERT INTO big VALUES (zeroblob(1000000))`
      // Without a checkpoint the file itself does not grow.
      const grown: Effect.Effect<void> = Effect.suspend(() =>
        statSync(file).size > before + 1_000_000 ? Effect.void : Effect.andThen(Effect.sleep(20), grown),
      )
      yield* grown
    }).pipe(Effect.provide(storeLayer({ dataDir })))
    expect(existsSync(`${file}-wal`)).toBe(false)
  }).pipe(Effect.scoped),
)

it.effect("migrates once, however often and by however many it is opened", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const opened = Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      return yield* sql<{ migration_id: number; name: string }>`
        SELECT migration_id, name FROM migrations ORDER BY migration_id`
    }).pipe(Effect.provide(Layer.fresh(storeLayer({ dataDir }))))
    const all = yield* Effect.all([opened, opened, opened], { concurrency: "unbounded" })
    expect(all[0]?.[0]).toEqual({ migration_id: 1, name: "accounts" })
    expect(all[0]?.map((row) => row.migration_id)).toEqual(all[0]?.map((_, index) => index + 1))
    expect(all).toEqual([all[0], all[0], all[0]])
    expect(yield* opened).toEqual(all[0])
  }).pipe(Effect.scoped),
)

it.effect("says in one line what cannot be opened", () =>
  Effect.gen(function* () {
    const dir = yield* tempDir
    const file = yield* databaseFile(dir)
    const exit = yield* Effect.exit(Layer.build(storeLayer({ dataDir: file })))
    const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
    expect(error).toMatchObject({ _tag: "StoreUnavailable", place: file })
    expect(error instanceof Error ? error.message : "").toMatch(/^[^\n]+$/)
  }).pipe(Effect.scoped),
)
