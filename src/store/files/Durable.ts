// Writes that survive a loss of power: a file's bytes, its name in its folder, and SQLite's commits. For promises to a
// client or an operator (an accepted job, a key), not for every request.
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

/** Syncs a file that was written and the folder entry that names it. Rejects if either cannot be synced. */
export const syncFile = async (path: string): Promise<void> => {
  await sync(path)
  await sync(dirname(path))
}

/**
 * Syncs what the store has committed so far. SQLite syncs its log only at checkpoints (`synchronous=NORMAL`), because a
 * sync for each batch of receipts would block the event loop. A no-op for Postgres, which syncs each commit itself.
 */
export const StoreSync = Context.Reference<Effect.Effect<void>>("edgewise/store/StoreSync", {
  defaultValue: () => Effect.void,
})

/**
 * Syncs the write-ahead log of a SQLite database. It holds every commit since the last checkpoint, which has synced the
 * rest.
 */
export const syncLog = (databasePath: string): Effect.Effect<void> =>
  Effect.ignore(Effect.tryPromise(() => sync(`${databasePath}-wal`)))
