// A lock between processes that its holder's death gives back, whatever killed it: a transaction on an empty SQLite
// file. A file with a process id in it would have to be guessed about after a crash. Used by the downloader and by an edge for its data directory.
import { closeSync, openSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { Effect, type Scope } from "effect"

/** SQLITE_BUSY, in the low byte of every code that means it. */
const busy = 5

const isBusy = (cause: unknown): boolean =>
  typeof cause === "object" &&
  cause !== null &&
  "errcode" in cause &&
  typeof cause.errcode === "number" &&
  (cause.errcode & 0xff) === busy

/** How often a taken lock is asked for again. */
const askAgainMs = 250

/** Tries once: the way to give it back, or undefined where another holds it. Throws where no lock can be made. */
const take = (path: string): (() => void) | undefined => {
  // SQLite says only that it cannot open a file; the system says why.
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

/** Holds the lock until the scope closes; false where another process has it. */
export const tryFileLock = (path: string): Effect.Effect<boolean, unknown, Scope.Scope> =>
  Effect.acquireRelease(Effect.try({ try: () => take(path), catch: (cause) => cause }), (held) =>
    Effect.sync(() => held?.()),
  ).pipe(Effect.map((release) => release !== undefined))

/** Holds the lock until the scope closes; `onWait` is called once where another process has it first. */
export const fileLock = (path: string, onWait: () => void): Effect.Effect<void, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    let told = false
    for (;;) {
      const release = yield* Effect.acquireRelease(
        Effect.try({ try: () => take(path), catch: (cause) => cause }),
        (held) => Effect.sync(() => held?.()),
      )
      if (release !== undefined) return
      if (!told) onWait()
      told = true
      yield* Effect.sleep(askAgainMs)
    }
  })
