// Writing so that a loss of power takes nothing back: a file's bytes, its name in its folder, and what SQLite has committed.
// Called where a promise is made to a client or an operator (an accepted job, a key), never per request.
import { type FileHandle, open } from "node:fs/promises"
import { dirname } from "node:path"
import { Context, Effect } from "effect"

const sync = async (path: string): Promise<void> => {
  let handle: FileHandle | undefined
  try {
    handle = await open(path, "r")
    await handle.sync()
  } finally {
    await handle?.close()
  }
}

/** A file that was written, and the folder entry that names it. Rejects where either cannot be synced. */
export const syncFile = async (path: string): Promise<void> => {
  await sync(path)
  await sync(dirname(path))
}

/**
 * What the store has committed so far. SQLite's log is synced by itself only at checkpoints (`synchronous=NORMAL`), because a
 * sync for each batch of receipts would hold the event loop. Nothing to do for Postgres, which syncs each commit itself.
 */
export const StoreSync = Context.Reference<Effect.Effect<void>>("edgewise/store/StoreSync", {
  defaultValue: () => Effect.void,
})

/** Of a database in a file: its log holds every commit since the last checkpoint, which has synced the rest. */
export const syncLog = (databasePath: string): Effect.Effect<void> =>
  Effect.ignore(Effect.tryPromise(() => sync(`${databasePath}-wal`)))
