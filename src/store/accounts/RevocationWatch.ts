// Those who must know when a key is revoked while they still work for it: streams, live sessions. Accounts owns one;
// a single fiber asks the database for all of them, because a key may be revoked by another process.
import { Duration, Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { ShortLivedList } from "#domain/queues/UnorderedSet.ts"

/** The contract promises 5 s; half of it leaves room for a slow look. */
const pollEvery = Duration.millis(2500)
/** Ids asked for in one statement, so that no look takes long: about 0.1 ms a hundred. */
const idsPerLook = 200

interface Watcher {
  readonly told: () => void
  listedAt: number
}

/** `revokedAmong` answers which of some key ids are revoked by now. */
export const makeRevocations = Effect.fnUntraced(function* (
  revokedAmong: (keyIds: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, SqlError>,
) {
  // Who must be told, by key; an entry goes with its last watcher, or when all have been told.
  const watched = new Map<string, ShortLivedList<Watcher>>()

  const tell = (keyId: string): void => {
    const listeners = watched.get(keyId)
    watched.delete(keyId)
    for (const { told } of listeners?.values() ?? []) told()
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

  const listen = (keyId: string, told: () => void): (() => void) => {
    const listeners = watched.get(keyId) ?? new ShortLivedList<Watcher>()
    watched.set(keyId, listeners)
    const watcher: Watcher = { told, listedAt: -1 }
    listeners.add(watcher)
    return () => {
      listeners.delete(watcher)
      if (listeners.size === 0 && watched.get(keyId) === listeners) watched.delete(keyId)
    }
  }

  return {
    /** Completes when the key is revoked, and never otherwise. */
    watch: (keyId: string): Effect.Effect<void> =>
      Effect.callback((resume) => Effect.sync(listen(keyId, () => resume(Effect.void)))),
    /** The same without a fiber, for those who wait by the thousand; what it gives back ends the watch. */
    listen,
    /** A key revoked by this process. */
    tell: (keyId: string): Effect.Effect<void> => Effect.sync(() => tell(keyId)),
  }
})
