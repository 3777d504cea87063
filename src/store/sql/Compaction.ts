// Removes what deleted rows leave behind in the files of a SQLite store: free pages, gaps inside of pages, older pages in the
// write-ahead log. SQLite overwrites deleted content (`secure_delete`), but a page that was split or merged may keep a copy of it in
// its unused part; only rewriting the file removes those.
import { DatabaseSync } from "node:sqlite"
import { Context, Effect } from "effect"
import { problemOf } from "../files/DataDir.ts"
import { StoreUnavailable } from "../files/StoreErrors.ts"

/** How long to wait for other processes' locks. A guess: a command holds one for milliseconds. */
const busyTimeoutMs = 10_000

/**
 * Copies the log into the database file and empties it. False if another process makes a checkpoint, which SQLite does not wait for, or
 * reads an older state.
 */
export const emptyLog = (db: DatabaseSync): boolean => {
  const row = db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() as { readonly busy: number }
  return row.busy === 0
}

/** How long `rewriteFile` tries to empty the log: a backup of a large store reads one state for minutes. A guess. */
const emptyLogMs = 120_000
const emptyLogEveryMs = 50

/**
 * Writes the database file anew, from its rows alone, and empties its log. Needs free disk space of twice the file's size. Other
 * processes can read meanwhile, and write before and after. Blocks: call it in a command or on a thread.
 */
export const rewriteFile = (filename: string): void => {
  const db = new DatabaseSync(filename)
  try {
    db.exec(`PRAGMA busy_timeout=${busyTimeoutMs}; PRAGMA secure_delete=ON; PRAGMA temp_store=FILE; VACUUM`)
    const pause = new Int32Array(new SharedArrayBuffer(4))
    for (const beganMs = performance.now(); !emptyLog(db); Atomics.wait(pause, 0, 0, emptyLogEveryMs)) {
      if (performance.now() - beganMs > emptyLogMs) {
        throw new Error("its write-ahead log is in use and could not be emptied; is a backup being made?")
      }
    }
  } finally {
    db.close()
  }
}

export interface Compaction {
  /** Rewrites the store's file. Completes when nothing of deleted rows is left in it. */
  readonly rewrite: Effect.Effect<void, StoreUnavailable>
  /** Asks for the write-ahead log to be emptied soon. */
  readonly emptyLogSoon: () => void
}

/** Nothing to do for a store in memory, and for Postgres, whose files belong to its own server. */
export const Compaction = Context.Reference<Compaction>("edgewise/store/Compaction", {
  defaultValue: () => ({ rewrite: Effect.void, emptyLogSoon: () => {} }),
})

/** For a command, which may wait for it. */
export const compactionOf = (filename: string): Compaction => ({
  rewrite: Effect.try({
    try: () => rewriteFile(filename),
    catch: (cause) => new StoreUnavailable({ place: filename, problem: problemOf(cause) }),
  }),
  emptyLogSoon: () => {},
})
