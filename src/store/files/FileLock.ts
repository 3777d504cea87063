// A lock between processes that is released when its holder ends, however it ends: a transaction on an empty SQLite
// file. A file with a process id would be ambiguous after a crash.
import { closeSync, openSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { Effect, type Scope } from "effect"

/** SQLITE_BUSY. It is the low byte of every extended code of this error. */
const busy = 5

const isBusy = (cause: unknown): boolean =>
  typeof cause === "object" &&
  cause !== null &&
  "errcode" in cause &&
  typeof cause.errcode === "number" &&
  (cause.errcode & 0xff) === busy

/** Interval between attempts at a taken lock. */
const retryEveryMs = 250

/**
 * Tries once. Returns the function that releases the lock, or undefined if another process holds it. Throws if no lock
 * can be made.
 */
const take = (path: string): (() => void) | undefined => {
  // SQLite only says that it cannot open a file; this call says why.
  closeSync(openSync(path, "a", 0o600))
  const database = new DatabaseSync(path)
  try {
    database.exec("PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE")
    return () => database.close()
  } catch (cause) {
    database.close()
    if (isBusy(cause)) return undefined
    throw cause
  }
}

/** Holds the lock until the scope closes. False if another process has it. */
export const tryFileLock = (path: string): Effect.Effect<boolean, unknown, Scope.Scope> =>
  Effect.acquireRelease(Effect.try({ try: () => take(path), catch: (cause) => cause }), (held) =>
    Effect.sync(() => held?.()),
  ).pipe(Effect.map((release) => release !== undefined))

/** Waits for the lock and holds it until the scope closes. `onWait` is called once if another process has it. */
export const fileLock = (path: string, onWait: () => void): Effect.Effect<void, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    let hasReported = false
    for (;;) {
      const release = yield* Effect.acquireRelease(
        Effect.try({ try: () => take(path), catch: (cause) => cause }),
        (held) => Effect.sync(() => held?.()),
      )
      if (release !== undefined) return
      if (!hasReported) onWait()
      hasReported = true
      yield* Effect.sleep(retryEveryMs)
    }
  })
