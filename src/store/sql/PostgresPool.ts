// The Postgres connections of one process: a bounded number, opened when needed and replaced when they break.
//
// While the database does not answer, one caller per interval tries to connect and all others are refused at once, so
// that a node does not collect requests that wait for a database.
import { Effect, type Scope, Semaphore } from "effect"
import type { Borrower } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import { openConnection, type PostgresConnection } from "./PostgresConnection.ts"
import { connectionLost } from "./PostgresError.ts"

/** Delay after a connection could not be opened before the next is tried. A guess. */
const retryMs = 500
/** Age at which a connection is replaced, which frees the server's memory of our prepared statements. A guess. */
const maxAgeMs = 30 * 60_000

interface PostgresPool {
  readonly acquirer: Effect.Effect<PostgresConnection, SqlError, Scope.Scope>
  readonly borrower: Borrower
}

/** `place` names the database in logs. */
export const makePool = Effect.fnUntraced(function* (
  url: string,
  place: string,
  size: number,
): Effect.fn.Return<PostgresPool, never, Scope.Scope> {
  const permits = yield* Semaphore.make(size)
  const all = new Set<PostgresConnection>()
  /** Used as a stack: the last used is the next to be used. */
  let idle: Array<PostgresConnection> = []
  let down: { retryAtMs: number } | undefined
  let closed = false
  /**
   * Before the first successful connection, errors are returned to the caller that opens the store and are not logged
   * here.
   */
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
      // This caller tries to connect; the others are refused until it knows.
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
      // The connection was never used, or it could not be opened.
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
