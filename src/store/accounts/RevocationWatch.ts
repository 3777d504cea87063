// Watches for revoked keys on behalf of open streams, sockets and live sessions. Another process may revoke a key, so
// one fiber polls the database for all watched keys; on a shared store, for those of them that were changed (AccountChanges).
import { Duration, Effect, Latch } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { LRUCache } from "lru-cache"
import { UnorderedSet } from "#domain/queues/UnorderedSet.ts"
import type { AccountChanges } from "./AccountChanges.ts"

/** Interval of the poll. Half of the 5 s of protocol 2.6, which leaves time for a slow query. */
const pollEvery = Duration.millis(2500)
/** Ids in one statement, to keep each statement short: about 0.1 ms per hundred. */
const idsPerQuery = 200
/** A guess: far more than are revoked while a request begins. */
const rememberedKeys = 10_000

interface Watcher {
  readonly onRevocation: () => void
  listedAt: number
}

/** `revokedAmong` returns those of the given key ids that are revoked. */
export const makeRevocations = Effect.fnUntraced(function* (
  revokedAmong: (keyIds: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, SqlError>,
  changes: AccountChanges,
) {
  // Watchers by key id. An entry is removed with its last watcher, or when its watchers have been notified.
  const watched = new Map<string, UnorderedSet<Watcher>>()

  const notify = (keyId: string): void => {
    const listeners = watched.get(keyId)
    watched.delete(keyId)
    for (const { onRevocation } of listeners?.values() ?? []) onRevocation()
  }

  /** Watched keys that were changed, on a shared store. */
  const changed = new Set<string>()
  /** Keys that were changed before, for work that begins when its key is revoked already. */
  const changedBefore = new LRUCache<string, true>({ max: rememberedKeys })
  const hasChanged = yield* Latch.make(false)
  const stopListening = changes.listen((change) => {
    if (change === undefined) for (const id of watched.keys()) changed.add(id)
    else if (change.keyId !== "") {
      changedBefore.set(change.keyId, true)
      if (watched.has(change.keyId)) changed.add(change.keyId)
    }
    if (changed.size > 0) hasChanged.openUnsafe()
  })
  yield* Effect.addFinalizer(() => Effect.sync(stopListening))

  const poll = Effect.gen(function* () {
    const ids = [...(changes.isShared ? changed : watched.keys())]
    for (let from = 0; from < ids.length; from += idsPerQuery) {
      const some = ids.slice(from, from + idsPerQuery)
      for (const id of yield* revokedAmong(some)) notify(id)
      for (const id of some) changed.delete(id)
      yield* Effect.yieldNow
    }
  }).pipe(
    Effect.catch((error) =>
      Effect.logWarning("revoked keys could not be read; will try again", error.message),
    ),
  )
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(pollEvery), poll)))
  // At once; the loop above repeats what failed.
  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(Effect.andThen(hasChanged.await, hasChanged.close), poll)),
  )

  const listen = (keyId: string, onRevocation: () => void): (() => void) => {
    const listeners = watched.get(keyId) ?? new UnorderedSet<Watcher>()
    watched.set(keyId, listeners)
    const watcher: Watcher = { onRevocation, listedAt: -1 }
    listeners.add(watcher)
    if (changedBefore.has(keyId)) {
      changed.add(keyId)
      hasChanged.openUnsafe()
    }
    return () => {
      listeners.delete(watcher)
      if (listeners.size === 0 && watched.get(keyId) === listeners) watched.delete(keyId)
    }
  }

  return {
    /** Completes when the key is revoked; never completes otherwise. */
    watch: (keyId: string): Effect.Effect<void> =>
      Effect.callback((resume) => Effect.sync(listen(keyId, () => resume(Effect.void)))),
    /**
     * The same with a callback instead of a fiber, for thousands of watchers. Returns the function that ends the watch.
     */
    listen,
    /** Notifies the watchers of a key that this process has revoked. */
    notify: (keyId: string): Effect.Effect<void> => Effect.sync(() => notify(keyId)),
  }
})
