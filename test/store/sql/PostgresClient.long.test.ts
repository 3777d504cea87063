// The SqlClient over Postgres, against a real server: values, errors, transactions, and an outage of the
// server.
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { Cause, Context, Effect, Layer, Logger, References, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import postgres from "postgres"
import { shownDatabase } from "#store/sql/DatabaseUrl.ts"
import { postgresLayer } from "#store/sql/PostgresClient.ts"
import { whileRequestWaits } from "#store/sql/StorePresence.ts"
import { needs } from "../../support/groups/Needs.ts"
import { eventually } from "../../support/nodes/TestNode.ts"
import { databasePassword, type PostgresServer, startPostgres } from "../../support/servers/PostgresServer.ts"
import { startRelay } from "../../support/servers/Relay.ts"
import { bindsAndReturns, counter, keepsTransactionsWhole } from "../Counter.ts"

describe("Postgres", needs("postgresql"), () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server?.remove())

  const fresh = (connections = 10) =>
    Layer.unwrap(
      Effect.map(
        Effect.promise(() => server.freshUrl()),
        (url) => postgresLayer(url, connections),
      ),
    )

  it.live("binds and returns the values of the product", () =>
    Effect.gen(function* () {
      const table = yield* counter
      const { sql } = table
      yield* bindsAndReturns(table, Buffer.from([0, 255]))
      expect(yield* sql`SELECT SUM(n) AS n, COUNT(*) AS rows FROM counter WHERE name < 'b'`).toEqual([
        { n: 0, rows: 1 },
      ])
      // Amounts of money are below that; larger values must not come back as another amount.
      const tooMuch = yield* Effect.flip(sql`SELECT SUM(n) FROM counter`)
      expect(tooMuch.reason).toMatchObject({
        _tag: "UnknownError",
        message: expect.stringContaining("2^53"),
      })
      expect(yield* sql`SELECT 1 AS n`).toEqual([{ n: 1 }])
    }).pipe(Effect.provide(fresh())),
  )

  it.live("distinguishes kinds of errors, and shows no value", () =>
    Effect.gen(function* () {
      const { sql } = yield* counter
      const taken = yield* Effect.flip(sql`INSERT INTO counter (name, n) VALUES (${"a"}, 1)`)
      expect(taken.reason).toMatchObject({ _tag: "UniqueViolation", constraint: "counter_pkey" })
      const wrong = yield* Effect.flip(sql`SELECT * FROM nowhere`)
      expect(wrong.reason._tag).toBe("SqlSyntaxError")
      expect(wrong.message).toContain("nowhere")
      const none = yield* Effect.flip(sql`INSERT INTO counter (name, note) VALUES ('x', ${"a secret"})`)
      expect(none.reason._tag).toBe("ConstraintError")
      expect(Object.entries(none.reason.cause as object)).toEqual([["code", "23502"]])
      expect(`${Cause.pretty(Cause.fail(none))}${JSON.stringify(none)}`).not.toContain("a secret")
    }).pipe(Effect.provide(fresh())),
  )

  it.live("keeps a transaction whole: failure, defect and interruption undo it", () =>
    Effect.gen(function* () {
      const table = yield* counter
      const { sql, add, value } = table
      yield* keepsTransactionsWhole(table)

      // Postgres would report this one as committed, and drop it.
      const hidden = sql.withTransaction(Effect.andThen(add(1), Effect.ignore(sql`SELECT * FROM nowhere`)))
      expect((yield* Effect.flip(hidden)).message).toContain("rolled back")
      expect(yield* value).toBe(1)
    }).pipe(Effect.provide(fresh())),
  )

  it.live("uses the one of several hosts that takes writes, and finds the next one", () =>
    Effect.gen(function* () {
      const other = yield* Effect.acquireRelease(
        Effect.promise(() => startPostgres()),
        (one) => Effect.promise(() => one.remove()),
      )
      const [first, second] = [yield* Effect.promise(server.freshUrl), yield* Effect.promise(other.freshUrl)]
      /** Ends when new connections have it: the server reads its configuration some time after it was told to. */
      const makeReadOnly = (url: string, value: "on" | "off") =>
        Effect.promise(async () => {
          const ask = async (statement: string) => {
            const sql = postgres(url, { max: 1, onnotice: () => {} })
            const [row] = await sql.unsafe(statement)
            await sql.end()
            return row
          }
          await ask(`ALTER SYSTEM SET default_transaction_read_only = ${value}`)
          await ask("SELECT pg_reload_conf()")
          await eventually(
            async () => (await ask("SHOW transaction_read_only"))?.transaction_read_only === value,
            "the server has read its configuration",
          )
        })
      const plain = first.replace(/\?.*$/, "")
      yield* makeReadOnly(second, "on")
      // The first host is a port on which nothing listens, the second one is read-only.
      const url = plain.replace(`:${server.port}/`, `:1,127.0.0.1:${other.port},127.0.0.1:${server.port}/`)
      expect(shownDatabase(url)).toBe(
        `postgres://127.0.0.1:1,127.0.0.1:${other.port},127.0.0.1:${server.port}/postgres`,
      )
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const port = Effect.map(sql<{ readonly port: string }>`SHOW port`, ([row]) => Number(row?.port))
        expect(yield* port).toBe(server.port)
        yield* makeReadOnly(first, "on")
        yield* makeReadOnly(second, "off")
        // The server has become a standby: what it refuses to write ends the connection, the next statement goes to the other.
        const write = sql`CREATE TABLE IF NOT EXISTS written (n BIGINT)`
        yield* Effect.retry(write, Schedule.spaced("50 millis"))
        expect(yield* port).toBe(other.port)
        yield* makeReadOnly(first, "off")
      }).pipe(Effect.provide(Layer.fresh(postgresLayer(url, 2))))
    }).pipe(Effect.scoped),
  )

  it.live("lends its connections to more than it has", () =>
    Effect.gen(function* () {
      const { sql, add, value } = yield* counter
      const slow = sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`SELECT pg_sleep(0.002)`
          yield* add(1)
        }),
      )
      const quick = sql`SELECT n FROM counter`
      yield* Effect.all(
        Array.from({ length: 60 }, (_, index) => (index % 2 === 0 ? slow : quick)),
        { concurrency: "unbounded" },
      )
      expect(yield* value).toBe(30)
      const used = Effect.map(
        sql<{ n: number }>`SELECT COUNT(*) AS n FROM pg_stat_activity WHERE application_name = 'edgewise'`,
        ([row]) => row?.n ?? 0,
      )
      // Those of the tests before end some time after they were closed.
      yield* Effect.promise(() =>
        eventually(async () => (await Effect.runPromise(used)) <= 3, "no more than three are used"),
      )
    }).pipe(Effect.provide(fresh(3))),
  )

  it.live("loses no half transaction when its connection is cut, and goes on with another one", () =>
    Effect.gen(function* () {
      const { sql, add, value } = yield* counter
      const cut = Effect.gen(function* () {
        yield* add(5)
        const [own] = yield* sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`
        yield* Effect.ignore(sql`SELECT pg_terminate_backend(${own?.pid})`)
        // If it were sent, it would run outside of the transaction.
        yield* add(7)
      })
      const error = yield* Effect.flip(sql.withTransaction(cut))
      expect(error.reason._tag).toBe("ConnectionError")
      expect(yield* value).toBe(0)
    }).pipe(Effect.provide(fresh())),
  )

  it.live("reports an unreachable server, at once to later callers, and reconnects by itself", () => {
    const logged: Array<string> = []
    const logger = Logger.make(({ message }) => void logged.push(String(message)))
    return Effect.gen(function* () {
      const { sql, add, value } = yield* counter
      yield* add(3)
      yield* Effect.promise(() => server.kill())
      const errors = yield* Effect.all(
        Array.from({ length: 200 }, () => Effect.flip(value)),
        { concurrency: "unbounded" },
      )
      expect(errors.every((error) => error.reason._tag === "ConnectionError")).toBe(true)
      expect(errors.some((error) => error.message.includes("does not answer"))).toBe(true)
      expect((yield* Effect.flip(sql.withTransaction(add(1)))).reason._tag).toBe("ConnectionError")
      expect(JSON.stringify(errors)).not.toContain(databasePassword)
      yield* Effect.promise(() => server.start())
      const back: Effect.Effect<number | undefined> = Effect.catch(value, () =>
        Effect.andThen(
          Effect.sleep(20),
          Effect.suspend(() => back),
        ),
      )
      expect(yield* back).toBe(3)
      // A server that starts again may take a connection and lose it.
      expect(logged.at(-1)).toBe("the database answers again")
      expect(logged.length % 2).toBe(0)
      expect(logged.length).toBeLessThan(12)
      const pair = ["the database does not answer", "the database answers again"]
      expect(logged).toEqual(logged.map((_, at) => pair[at % 2]))
    }).pipe(
      Effect.provide(fresh()),
      Effect.provide(Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "Info"))),
    )
  })

  /** A client whose connections go through a relay, and so many that are kept open. */
  const relayed = Effect.fnUntraced(function* (connections: number) {
    const relay = yield* Effect.acquireRelease(
      Effect.promise(() => startRelay(server.port)),
      ({ stop }) => Effect.sync(stop),
    )
    const url = (yield* Effect.promise(server.freshUrl)).replace(`:${server.port}/`, `:${relay.port}/`)
    const services = yield* Layer.build(Layer.fresh(postgresLayer(url, connections)))
    const sql = Context.get(services, SqlClient.SqlClient)
    yield* Effect.all(
      Array.from({ length: connections }, () => sql`SELECT pg_sleep(0.1)`),
      { concurrency: "unbounded" },
    )
    return { relay, sql }
  })

  it.live("does not flood a proxy that accepts connections and closes them", () =>
    Effect.gen(function* () {
      const { relay, sql } = yield* relayed(1)
      relay.refuse()
      const before = relay.opened()
      const sinceMs = performance.now()
      const error = yield* Effect.flip(
        Effect.retry(sql`SELECT 1`, { while: () => relay.opened() === before }),
      )
      expect(error.reason._tag).toBe("ConnectionError")
      // One of the caller, and those of the pool, which looks every half second whether it is over.
      expect(relay.opened() - before).toBeLessThanOrEqual(2 + (performance.now() - sinceMs) / 500)
      relay.thaw()
      yield* Effect.promise(() =>
        eventually(() => Effect.runPromise(Effect.isSuccess(sql`SELECT 1`)), "it is over"),
      )
    }).pipe(Effect.scoped),
  )

  it.live("lets one statement wait for a server that has fallen silent, and refuses the others", () =>
    Effect.gen(function* () {
      const { relay, sql } = yield* relayed(5)
      relay.freeze()
      const ask = whileRequestWaits(Effect.flip(sql`SELECT 1`))
      expect((yield* ask).message).toContain("did not answer within 2000 ms")
      // Also those that would have had a connection that was open.
      for (let count = 0; count < 5; count++) expect((yield* ask).message).toContain("does not answer")
      relay.thaw()
      yield* Effect.promise(() =>
        eventually(() => Effect.runPromise(Effect.isSuccess(sql`SELECT 1`)), "it is over"),
      )
    }).pipe(Effect.scoped),
  )

  it.live("refuses a wrong password in words without it", () =>
    Effect.gen(function* () {
      const url = (yield* Effect.promise(() => server.freshUrl())).replace(databasePassword, "wr0ng-pa55")
      const error = yield* Effect.flip(
        Effect.flatMap(SqlClient.SqlClient, (sql) => sql`SELECT 1`).pipe(
          Effect.provide(postgresLayer(url, 1)),
        ),
      )
      expect(error.reason._tag).toBe("AuthenticationError")
      expect(`${error.message}${JSON.stringify(error)}${Cause.pretty(Cause.fail(error))}`).not.toContain(
        "wr0ng",
      )
    }),
  )
})
