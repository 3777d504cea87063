// A table with one number, and the behaviour that every SqlClient must have with it, for each database.
import { Deferred, Effect, Exit, Fiber, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { expect } from "vitest"

export const counter = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const bytes = sql.literal(sql.onDialectOrElse({ pg: () => "BYTEA", orElse: () => "BLOB" }))
  yield* sql`CREATE TABLE counter (name TEXT PRIMARY KEY, n BIGINT NOT NULL, note TEXT, data ${bytes})`
  yield* sql`INSERT INTO counter (name, n) VALUES ('a', 0)`
  return {
    sql,
    add: (by: number) => sql`UPDATE counter SET n = n + ${by} WHERE name = 'a'`,
    value: Effect.map(sql<{ n: number }>`SELECT n FROM counter WHERE name = 'a'`, (rows) => rows[0]?.n),
  }
})

type Counter = Effect.Success<typeof counter>

/** `data`: two bytes, as the client gives them back. */
export const bindsAndReturns = Effect.fnUntraced(function* ({ sql }: Counter, data: Uint8Array) {
  const at = new Date(0)
  const row = { name: "b", n: Number.MAX_SAFE_INTEGER, note: "ünï'; --", data }
  yield* sql`INSERT INTO counter ${sql.insert(row)}`
  yield* sql`INSERT INTO counter ${sql.insert({ name: "c", n: true, note: at, data: undefined })}`
  expect(yield* sql`SELECT * FROM counter WHERE name > 'a' ORDER BY name`).toEqual([
    row,
    { name: "c", n: 1, note: at.toISOString(), data: null },
  ])
  expect(yield* sql`SELECT name, n FROM counter WHERE name = 'c'`.values).toEqual([["c", 1]])
  const streamed = yield* Stream.runCollect(
    sql<{ name: string }>`SELECT name FROM counter ORDER BY name`.stream,
  )
  expect(streamed.map((found) => found.name)).toEqual(["a", "b", "c"])
})

/** Failure, defect and interruption undo a transaction; a savepoint that fails leaves it standing. The value is 1 then. */
export const keepsTransactionsWhole = Effect.fnUntraced(function* ({ add, sql, value }: Counter) {
  const attempt = (end: Effect.Effect<unknown, string>) =>
    Effect.exit(sql.withTransaction(Effect.andThen(add(5), end)))
  expect(Exit.isFailure(yield* attempt(Effect.fail("no")))).toBe(true)
  expect(Exit.isFailure(yield* attempt(Effect.die("no")))).toBe(true)
  expect(yield* value).toBe(0)

  const inside = yield* Deferred.make<void>()
  const stuck = yield* Effect.forkChild(
    sql.withTransaction(
      Effect.andThen(add(5), Effect.andThen(Deferred.succeed(inside, undefined), Effect.never)),
    ),
  )
  yield* Deferred.await(inside)
  yield* Fiber.interrupt(stuck)
  expect(yield* value).toBe(0)

  yield* sql.withTransaction(
    Effect.andThen(add(1), Effect.ignore(sql.withTransaction(Effect.andThen(add(10), Effect.fail("inner"))))),
  )
  expect(yield* value).toBe(1)
})
