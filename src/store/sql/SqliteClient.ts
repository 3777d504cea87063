// An Effect SqlClient over Node's SQLite: one connection, guarded by one semaphore. Code above uses the SqlClient
// service and does not depend on SQLite.
//
// node:sqlite is synchronous: a statement blocks the event loop while it runs. Therefore statements are small and
// indexed, and waiting for another process's write lock is done with timers, not inside SQLite.
import { DatabaseSync, type StatementSync } from "node:sqlite"
import { Context, Effect, Layer, Semaphore, Stream } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Client from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import { classifySqliteError, SqlError } from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import { problemOf } from "../files/DataDir.ts"
import { StoreUnavailable } from "../files/StoreErrors.ts"

/** Time that opening may wait inside SQLite: the journal mode can change only while no other connection is open. */
const openBusyTimeoutMs = 5000
/** Afterwards a statement may block the event loop this long for a lock. A guess below the gateway's 10 ms. */
const busyTimeoutMs = 5
const lockRetryMs = 10
/**
 * Time for which a statement is retried while another process holds the lock. A guess: an operator's command takes ms.
 */
const lockGiveUpMs = 5000
/** SQL texts kept prepared. The product has some dozens, and one per size of an inserted batch. */
const maxPrepared = 500

/** Node 22 has this method; its type declarations lack it. */
type Prepared = StatementSync & { setReturnArrays(enabled: boolean): void }

type Value = null | number | bigint | string | Uint8Array

const bind = (param: unknown): Value => {
  if (param === undefined || param === null) return null
  if (typeof param === "boolean") return param ? 1 : 0
  if (param instanceof Date) return param.toISOString()
  if (param instanceof Uint8Array) return param
  return typeof param === "number" || typeof param === "bigint" ? param : String(param)
}

/** SQLite distinguishes a duplicate primary key from other duplicates; Postgres and the callers do not. */
const constraintPrimaryKey = 1555
const constraintUnique = 2067

/** node:sqlite reports SQLite's code as `errcode`; the classifier reads `errno`. */
const sqlError = (cause: unknown): SqlError => {
  const code = typeof cause === "object" && cause !== null && "errcode" in cause ? cause.errcode : undefined
  const errno = code === constraintPrimaryKey ? constraintUnique : code
  const classified = errno === undefined ? cause : Object.assign(new Error(problemOf(cause)), { errno })
  return new SqlError({
    reason: classifySqliteError(classified, { message: problemOf(cause), operation: "execute" }),
  })
}

/** A real timer, not the Clock service: it waits for another process, which a test's clock does not control. */
const pause = Effect.callback<void>((resume) => {
  const timer = setTimeout(() => resume(Effect.void), lockRetryMs)
  return Effect.sync(() => clearTimeout(timer))
})

/** When a commit reaches the disk: at once (FULL), or with the next checkpoint or `StoreSync` (NORMAL). */
type Synchronous = "FULL" | "NORMAL"

/** Opens the file. Fails with one line for the operator. */
const open = (filename: string, autoCheckpointPages: number, synchronous: Synchronous) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        const db = new DatabaseSync(filename)
        db.exec(`PRAGMA busy_timeout=${openBusyTimeoutMs}`)
        db.exec(`PRAGMA journal_mode=WAL; PRAGMA synchronous=${synchronous}; PRAGMA foreign_keys=ON`)
        // An INSERT of several rows keeps the pages that it changes in a temporary file, in case it fails half way: as a file,
        // it makes a receipt cost 9.3 µs instead of 5.9 (batches of 128, measured). A batch changes some hundred KB.
        db.exec("PRAGMA temp_store=MEMORY")
        // Overwrites what is deleted, so that it is not left in free pages (see Compaction).
        db.exec("PRAGMA secure_delete=ON")
        db.exec(`PRAGMA wal_autocheckpoint=${autoCheckpointPages}; PRAGMA busy_timeout=${busyTimeoutMs}`)
        return db
      },
      catch: (cause) => new StoreUnavailable({ place: filename, problem: problemOf(cause) }),
    }),
    (db) => Effect.sync(() => db.close()),
  )

const connectionOver = (db: DatabaseSync): Connection => {
  const prepared = new Map<string, Prepared>()
  const prepare = (sql: string): Prepared => {
    const known = prepared.get(sql)
    if (known !== undefined) return known
    const statement = db.prepare(sql) as Prepared
    if (prepared.size >= maxPrepared) prepared.clear()
    prepared.set(sql, statement)
    return statement
  }

  const once = (sql: string, params: ReadonlyArray<unknown>, shape: "rows" | "arrays" | "raw") =>
    Effect.withFiber<unknown, SqlError>((fiber) =>
      Effect.try({
        try: () => {
          const statement = prepare(sql)
          statement.setReadBigInts(Context.get(fiber.context, Client.SafeIntegers))
          statement.setReturnArrays(shape === "arrays")
          const values = params.map(bind)
          if (statement.columns().length > 0) return statement.all(...values)
          const changes = statement.run(...values)
          return shape === "raw" ? changes : []
        },
        catch: sqlError,
      }),
    )

  const run = (
    sql: string,
    params: ReadonlyArray<unknown>,
    shape: "rows" | "arrays" | "raw",
    waitedMs = 0,
  ): Effect.Effect<unknown, SqlError> =>
    Effect.catch(once(sql, params, shape), (error) =>
      // Transactions begin IMMEDIATE, so inside one the lock is already held and a retry would not help.
      error.reason._tag === "LockTimeoutError" && !db.isTransaction && waitedMs < lockGiveUpMs
        ? Effect.andThen(
            pause,
            Effect.suspend(() => run(sql, params, shape, waitedMs + lockRetryMs)),
          )
        : Effect.fail(error),
    )

  const rows: Connection["execute"] = (sql, params, transform) =>
    Effect.map(run(sql, params, "rows"), (result) => {
      const found = result as ReadonlyArray<object>
      return transform === undefined ? found : transform(found)
    })
  const arrays: Connection["executeValues"] = (sql, params) =>
    Effect.map(run(sql, params, "arrays"), (result) => result as ReadonlyArray<ReadonlyArray<unknown>>)

  return {
    execute: rows,
    executeUnprepared: rows,
    executeRaw: (sql, params) => run(sql, params, "raw"),
    executeValues: arrays,
    executeValuesUnprepared: arrays,
    // Reads the whole result first: an open cursor would hold the connection and a snapshot of the WAL.
    executeStream: (sql, params, transform) =>
      Stream.unwrap(Effect.map(rows(sql, params, transform), (found) => Stream.fromIterable(found))),
  }
}

const make = Effect.fnUntraced(function* (
  filename: string,
  autoCheckpointPages: number,
  synchronous: Synchronous,
) {
  const db = yield* open(filename, autoCheckpointPages, synchronous)
  const semaphore = yield* Semaphore.make(1)
  const acquirers = Client.makeSqliteAcquirers({
    connection: Effect.succeed(connectionOver(db)),
    semaphore,
    isTransaction: () => db.isTransaction,
  })
  return yield* Client.make({
    ...acquirers,
    compiler: Statement.makeCompilerSqlite(),
    driver: "node:sqlite",
    spanAttributes: [["db.system.name", "sqlite"]],
    // A transaction that reads first and then writes would fail at once if another process wrote in between.
    beginTransaction: "BEGIN IMMEDIATE",
    prepareTransactionControls: true,
  })
})

/**
 * Opens the file. Fails with one line for the operator.
 * @param filename a path, or `:memory:`
 * @param autoCheckpointPages pages at which SQLite itself makes a checkpoint; its default is 1000
 * @param synchronous FULL for commands, which commit seldom; NORMAL for a node, because a sync would block the event
 * loop
 */
export const sqliteLayer = (
  filename: string,
  autoCheckpointPages = 1000,
  synchronous: Synchronous = "FULL",
): Layer.Layer<Client.SqlClient, StoreUnavailable> =>
  Layer.effect(Client.SqlClient)(make(filename, autoCheckpointPages, synchronous)).pipe(
    Layer.provide(Reactivity.layer),
  )
