// Those who must know when a key is revoked while they still work for it: streams, live sessions. Accounts owns one;
// a single fiber asks the database for all of them, because a key may be revoked by another process.
import { Deferred, Duration, Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"

/** The contract promises 5 s; half of it leaves room for a slow look. */
const pollEvery = Duration.millis(2500)
/** Ids asked for in one statement, so that no look takes long: about 0.1 ms a hundred. */
const idsPerLook = 200

interface Watched {
  readonly revoked: Deferred.Deferred<void>
  watchers: number
}

/** `revokedAmong` answers which of some key ids are revoked by now. */
export const makeRevocations = Effect.fnUntraced(function* (
  revokedAmong: (keyIds: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, SqlError>,
) {
  // One entry a key that somebody watches; it goes with its last watcher.
  const watched = new Map<string, Watched>()

  const tell = (keyId: string): void => {
    const entry = watched.get(keyId)
    if (entry !== undefined) Deferred.doneUnsafe(entry.revoked, Effect.void)
  }

  const look = Effect.gen(function* () {
    const ids = [...watched.keys()]
    for (let from = 0; from < ids.length; from += idsPerLook) {
      for (const id of yield* revokedAmong(ids.slice(from, from + idsPerLook))) tell(id)
      yield* Effect.yieldNow
    }
  }).pipe(
    Effect.catch((error) =>
      Effect.logWarning("revoked keys could not be read; will look again", error.message),
    ),
  )
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(pollEvery), look)))

  const enter = (keyId: string): Watched => {
    const entry = watched.get(keyId) ?? { revoked: Deferred.makeUnsafe<void>(), watchers: 0 }
    entry.watchers++
    watched.set(keyId, entry)
    return entry
  }
  const leave = (keyId: string, entry: Watched): void => {
    entry.watchers--
    if (entry.watchers === 0 && watched.get(keyId) === entry) watched.delete(keyId)
  }

  return {
    /** Completes when the key is revoked, and never otherwise. */
    watch: (keyId: string): Effect.Effect<void> =>
      Effect.acquireUseRelease(
        Effect.sync(() => enter(keyId)),
        (entry) => Deferred.await(entry.revoked),
        (entry) => Effect.sync(() => leave(keyId, entry)),
      ),
    /** A key revoked by this process. */
    tell: (keyId: string): Effect.Effect<void> => Effect.sync(() => tell(keyId)),
  }
})
