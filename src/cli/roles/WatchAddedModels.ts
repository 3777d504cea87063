// A running node notices when `edgewise models add` or `remove` changes the models beside the built-in ones. Who may write into
// the data directory needs no key for that.
import { type Stats, unwatchFile, watchFile } from "node:fs"
import { Effect, Queue, type Scope } from "effect"
import { addedModels, type CatalogSettings, writtenCatalog } from "#weights/NodeCatalog.ts"

/** Between two looks at the file. Looking costs one system call. */
const everyMs = 1_000

/**
 * Runs `reload` after every change of the file, until the scope closes. A catalog of the operator's own is not watched, because an
 * editor may have saved half of an edit.
 */
export const watchAddedModels = (
  settings: CatalogSettings,
  reload: Effect.Effect<void>,
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const path = addedModels(settings.dataDir)
    if (writtenCatalog(settings) !== path) return
    // One change that is not dealt with stands for all.
    const changes = yield* Queue.sliding<void>(1)
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        // Node calls it once for a file that is not there, without a change.
        const onChange = (now: Stats, before: Stats) => {
          if (now.ino !== 0 || before.ino !== 0) Queue.offerUnsafe(changes, undefined)
        }
        watchFile(path, { interval: everyMs, persistent: false }, onChange)
        return onChange
      }),
      (onChange) => Effect.sync(() => unwatchFile(path, onChange)),
    )
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Queue.take(changes), reload)))
  })
