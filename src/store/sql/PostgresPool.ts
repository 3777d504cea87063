// The Postgres connections of one process: a bounded number, opened when needed and replaced when they break.
//
// From when the database was found not to answer, all callers are refused at once, so that a node does not collect requests that wait for a
// database; a fiber of the pool tries to connect at intervals, and callers are served again when it has had an answer.
import { Effect, Latch, type Scope, Semaphore } from "effect"
import type { Borrower } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import type { DatabaseHosts } from "./DatabaseUrl.ts"
import { openConnection, type PostgresConnection } from "./PostgresConnection.ts"
import { connectionLost } from "./PostgresError.ts"
import { type DatabasePresence, whileRequestWaits } from "./StorePresence.ts"

/** Delay after a connection could not be opened before the next is tried. A guess. */
const retryMs = 500
/** If no connection has been answered for so long when a statement is given up, the database is away. A guess. */
const silentMs = 1_500
/** Age at which a connection is replaced, which frees the server's memory of our prepared statements. A guess. */
const maxAgeMs = 30 * 60_000

interface PostgresPool {
  readonly acquirer: Effect.Effect<PostgresConnection, SqlError, Scope.Scope>
  readonly borrower: Borrower
}

/** A real timer, not the Clock service: it waits for a server, which a test's clock does not control. */
const pause = Effect.callback<void>((resume) => {
  const timer = setTimeout(() => resume(Effect.void), retryMs)
  return Effect.sync(() => clearTimeout(timer))
})

/** `place` names the database in logs. Of several hosts, one that takes writes is used. */
export const makePool = Effect.fnUntraced(function* (
  hosts: DatabaseHosts,
  place: string,
  size: number,
  presence: DatabasePresence,
): Effect.fn.Return<PostgresPool, never, Scope.Scope> {
  const permits = yield* Semaphore.make(size)
  const scope = yield* Effect.scope
  const all = new Set<PostgresConnection>()
  /** Used as a stack: the last used is the next to be used. */
  let idle: Array<PostgresConnection> = []
  let isDown = false
  /** Open while it is down. */
  const down = yield* Latch.make(false)
  let answeredAtMs = Number.NEGATIVE_INFINITY
  let closed = false
  /**
   * Before the first successful connection, errors are returned to the caller that opens the store and are not logged
   * here.
   */
  let everWorked = false

  const open = (): PostgresConnection => {
    const connection: PostgresConnection = openConnection(hosts.url, () => {
      all.delete(connection)
      idle = idle.filter((one) => one !== connection)
    })
    all.add(connection)
    return connection
  }

  /** The database was found not to answer. What was idle would make one caller each wait for a server that says nothing. */
  const isGone = Effect.suspend(() => {
    const isNews = everWorked && !isDown
    isDown = true
    presence.failed()
    down.openUnsafe()
    const left = idle
    idle = []
    return Effect.forEach(left, (connection) => Effect.forkIn(connection.end, scope), { discard: true }).pipe(
      Effect.andThen(
        isNews
          ? Effect.logError("the database does not answer").pipe(Effect.annotateLogs({ place }))
          : Effect.void,
      ),
    )
  })

  /** A connection to the first host that takes writes, of those that are left to be tried. */
  const openFirst = (left: number): Effect.Effect<PostgresConnection, SqlError> =>
    Effect.suspend(() => {
      const { url } = hosts
      const connection = open()
      return Effect.flatMap(connection.executeValues("SHOW transaction_read_only", []), ([row]) =>
        row?.[0] === "off"
          ? Effect.succeed(connection)
          : Effect.fail(connectionLost("the server takes no writes")),
      ).pipe(
        Effect.catch((error) => {
          hosts.leave(url)
          return Effect.andThen(
            Effect.forkIn(connection.end, scope),
            left > 1 ? openFirst(left - 1) : Effect.fail(error),
          )
        }),
      )
    })

  const pick: Effect.Effect<PostgresConnection, SqlError> = Effect.suspend(() => {
    if (closed) return Effect.fail(connectionLost("the store is closed"))
    if (isDown && everWorked) return Effect.fail(connectionLost(`${place} does not answer`))
    const known = idle.pop()
    if (known !== undefined) return Effect.succeed(known)
    // Once the database has worked, a caller does not wait for one host after the other.
    return Effect.tapError(openFirst(everWorked ? 1 : hosts.count), () => isGone)
  })

  const giveBack = (connection: PostgresConnection): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (connection.isSilent()) {
        // One statement was too slow, e.g. because it waited for a lock. Others are answered.
        return performance.now() - answeredAtMs < silentMs ? Effect.void : isGone
      }
      everWorked = true
      // Lost, perhaps with the whole database: the next caller finds out.
      if (connection.isBroken()) return Effect.void
      answeredAtMs = performance.now()
      const wasDown = isDown
      isDown = false
      down.closeUnsafe()
      presence.answered()
      if (closed || idle.length >= size || answeredAtMs - connection.madeAtMs > maxAgeMs)
        return connection.end
      idle.push(connection)
      return wasDown
        ? Effect.logInfo("the database answers again").pipe(Effect.annotateLogs({ place }))
        : Effect.void
    })

  yield* Effect.forkScoped(
    Effect.forever(
      Effect.andThen(
        down.await,
        whileRequestWaits(Effect.suspend(() => openFirst(hosts.count))).pipe(
          Effect.matchEffect({ onFailure: () => pause, onSuccess: giveBack }),
        ),
      ),
    ),
  )
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
