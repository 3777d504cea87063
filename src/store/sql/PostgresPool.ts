// The connections of one process to Postgres: a bounded number of them, made when they are needed, replaced when they
// break. Called by PostgresClient; knows no SQL.
//
// While nobody answers at the database's address, one in a while tries, and everybody else is refused at once: a node
// must not collect requests that wait for a database.
import { Effect, type Scope, Semaphore } from "effect"
import type { Borrower } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import { openConnection, type PostgresConnection } from "./PostgresConnection.ts"
import { connectionLost } from "./PostgresError.ts"

/** How soon after a connection could not be made the next one is tried. A guess. */
const retryMs = 500
/** A connection is replaced at this age: the server frees what it remembers of our statements. A guess. */
const maxAgeMs = 30 * 60_000

export interface PostgresPool {
  readonly acquirer: Effect.Effect<PostgresConnection, SqlError, Scope.Scope>
  readonly borrower: Borrower
}

/** `place` is what logs may say of the address. */
export const makePool = Effect.fnUntraced(function* (
  url: string,
  place: string,
  size: number,
): Effect.fn.Return<PostgresPool, never, Scope.Scope> {
  const permits = yield* Semaphore.make(size)
  const all = new Set<PostgresConnection>()
  /** The last used is the next to be used. */
  let idle: Array<PostgresConnection> = []
  let down: { retryAtMs: number } | undefined
  let closed = false
  /** Whoever opens the store says himself that it cannot be opened. */
  let everWorked = false

  const open = (): PostgresConnection => {
    const connection: PostgresConnection = openConnection(url, () => {
      all.delete(connection)
      idle = idle.filter((one) => one !== connection)
    })
    all.add(connection)
    return connection
  }

  const pick: Effect.Effect<PostgresConnection, SqlError> = Effect.suspend(() => {
    if (closed) return Effect.fail(connectionLost("the store is closed"))
    const known = idle.pop()
    if (known !== undefined) return Effect.succeed(known)
    const nowMs = performance.now()
    if (down !== undefined) {
      if (nowMs < down.retryAtMs) return Effect.fail(connectionLost(`${place} does not answer`))
      // This one tries; the others wait for what it finds.
      down.retryAtMs = nowMs + retryMs
    }
    return Effect.succeed(open())
  })

  const giveBack = (connection: PostgresConnection): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (connection.hasWorked()) {
        const wasDown = down !== undefined
        everWorked = true
        down = undefined
        if (!connection.isBroken()) {
          if (closed || performance.now() - connection.madeAtMs > maxAgeMs) return connection.end
          idle.push(connection)
        }
        return wasDown
          ? Effect.logInfo("the database answers again").pipe(Effect.annotateLogs({ place }))
          : Effect.void
      }
      // Never used, which is no news; or it could not be made.
      if (!connection.isBroken()) return connection.end
      const isNews = everWorked && down === undefined
      down = { retryAtMs: performance.now() + retryMs }
      return isNews
        ? Effect.logError("the database does not answer").pipe(Effect.annotateLogs({ place }))
        : Effect.void
    })

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      closed = true
      return Effect.forEach([...all], (connection) => connection.end, {
        concurrency: "unbounded",
        discard: true,
      })
    }),
  )

  return {
    acquirer: Effect.uninterruptibleMask((restore) =>
      Effect.andThen(restore(permits.takeScoped(1)), Effect.acquireRelease(pick, giveBack)),
    ),
    borrower: (use) => permits.withPermit(Effect.acquireUseRelease(pick, use, giveBack)),
  }
})
