// One connection to Postgres as an Effect SqlConnection. One borrower uses it at a time, and it is never repaired. It
// wraps a client of the `postgres` package with a single connection. The wrapper is discarded as soon as that
// connection breaks, because the package would silently open another one, in the middle of a transaction.
import { Context, Effect, Stream } from "effect"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import postgres from "postgres"
import { connectionLost, endsConnection, postgresError } from "./PostgresError.ts"
import { oneSocket } from "./PostgresSocket.ts"
import { StatementDeadline } from "./StorePresence.ts"

/**
 * The server ends a statement that runs longer, e.g. one that waits for a lock. Our statements take milliseconds. A
 * guess.
 */
const statementTimeoutMs = 10_000
/** If not even the server's time-out arrives in this time, the network is down. */
const longestMs = statementTimeoutMs + 2_000
/** The server ends a transaction that is idle for this long, so that a stopped node does not keep its locks. */
const idleInTransactionMs = 15_000

/** Counts, times and money are integers below 2^53; a sum of them arrives as `numeric`. */
const integer = (text: string): number => {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError("an integer of the database is over 2^53")
  return value
}

const bigintType = 20
const numericType = 1700

/** Converts a parameter as the SQLite client does. */
const bind = (param: unknown): string | number | bigint | Uint8Array | null => {
  if (param === undefined || param === null) return null
  if (typeof param === "boolean") return param ? 1 : 0
  if (param instanceof Date) return param.toISOString()
  if (param instanceof Uint8Array) return param
  return typeof param === "number" || typeof param === "bigint" ? param : String(param)
}

const clientOf = (url: string, onClose: () => void) => {
  const { destroy, open } = oneSocket()
  const client = postgres(url, {
    max: 1,
    idle_timeout: undefined,
    max_lifetime: null,
    fetch_types: false,
    onnotice: () => {},
    onclose: onClose,
    connection: {
      application_name: "edgewise",
      statement_timeout: statementTimeoutMs,
      idle_in_transaction_session_timeout: idleInTransactionMs,
    },
    types: {
      bigint: { to: bigintType, from: [bigintType], serialize: String, parse: integer },
      numeric: { to: numericType, from: [numericType], serialize: String, parse: integer },
    },
    // An option of the package that its types leave out.
    ...{ socket: open },
  })
  return { client, destroy }
}

export interface PostgresConnection extends Connection {
  /** Once true, it stays true: every statement fails. */
  readonly isBroken: () => boolean
  /** True if it was given up because a statement had no answer in time. */
  readonly isSilent: () => boolean
  readonly madeAtMs: number
  /** Sends Terminate if the socket is writable, otherwise destroys it. */
  readonly end: Effect.Effect<void>
}

type Answer = postgres.RowList<ReadonlyArray<never>>
type Shape = "rows" | "values" | "control"

/**
 * Opens a connection. Nothing is sent before the first statement. `onEnd` is called once, when the connection has ended
 * for any reason.
 */
export const openConnection = (url: string, onEnd: () => void): PostgresConnection => {
  let broken = false
  let silent = false
  /** Statements without an answer. A lost connection fails them. */
  const unanswered = new Set<() => void>()
  const { client, destroy } = clientOf(url, () => breakUp())

  const breakUp = (): void => {
    if (broken) return
    broken = true
    for (const lost of [...unanswered]) lost()
    client.end({ timeout: 0 }).catch(() => {})
    destroy()
    onEnd()
  }

  const send = (sql: string, params: ReadonlyArray<unknown>, shape: Shape) => {
    if (shape === "control") return client.unsafe(sql)
    const query = client.unsafe(
      sql,
      params.map(bind) as Array<never>,
      { prepare: true, simple: false } as object,
    )
    return shape === "values" ? query.values() : query
  }

  /** Not interruptible: the connection must not be reused before its answer has arrived, which takes milliseconds. */
  const run = (sql: string, params: ReadonlyArray<unknown>, shape: Shape) =>
    Effect.withFiber<Answer, SqlError>((fiber) => {
      const deadlineMs = Context.get(fiber.context, StatementDeadline) ?? longestMs
      return Effect.callback<Answer, SqlError>((resume) => {
        if (broken) return resume(Effect.fail(connectionLost("the connection to the database is lost")))
        // The resumed fiber may use the connection again at once, so it must be marked as broken before.
        const settle = (outcome: Effect.Effect<Answer, SqlError>, ends: boolean) => {
          if (!unanswered.delete(lost)) return
          clearTimeout(timer)
          if (ends) breakUp()
          resume(outcome)
        }
        const lost = () =>
          settle(Effect.fail(connectionLost("the connection to the database was lost")), true)
        const giveUp = () => {
          if (!unanswered.has(lost)) return
          silent = true
          settle(Effect.fail(connectionLost(`the database did not answer within ${deadlineMs} ms`)), true)
        }
        // An event loop that is late reads first what has come.
        const timer = setTimeout(() => setImmediate(() => setImmediate(giveUp)), deadlineMs)
        unanswered.add(lost)
        send(sql, params, shape).then(
          (rows) => settle(Effect.succeed(rows as unknown as Answer), false),
          (cause: unknown) => settle(Effect.fail(postgresError(cause)), endsConnection(cause)),
        )
      })
    }).pipe(Effect.uninterruptible)

  const rows: Connection["execute"] = (sql, params, transform) =>
    Effect.map(run(sql, params, "rows"), (found) => {
      const plain: ReadonlyArray<object> = [...found]
      return transform === undefined ? plain : transform(plain)
    })
  const values: Connection["executeValues"] = (sql, params) =>
    Effect.map(run(sql, params, "values"), (found) => [...found])

  return {
    execute: rows,
    // Only the statements that begin and end transactions are not prepared; they have no parameters.
    executeUnprepared: (sql, params, transform) =>
      params.length > 0
        ? rows(sql, params, transform)
        : Effect.map(run(sql, params, "control"), (found) => [...found]),
    executeRaw: (sql, params) => run(sql, params, params.length > 0 ? "rows" : "control"),
    executeValues: values,
    executeValuesUnprepared: values,
    // Reads the whole result first, as the SQLite client does.
    executeStream: (sql, params, transform) =>
      Stream.unwrap(Effect.map(rows(sql, params, transform), (found) => Stream.fromIterable(found))),
    isBroken: () => broken,
    isSilent: () => silent,
    madeAtMs: performance.now(),
    end: Effect.promise(async () => {
      if (broken) return
      broken = true
      onEnd()
      await client.end({ timeout: 1 }).catch(() => {})
      destroy()
    }),
  }
}
