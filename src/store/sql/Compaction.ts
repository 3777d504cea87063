// Who cleans the files of a SQLite store of what deleted rows have left (CleanFile.ts): a node's thread, or a command itself.
import { Context, Effect } from "effect"
import { problemOf } from "../files/DataDir.ts"
import { StoreUnavailable } from "../files/StoreErrors.ts"
import { cleanFile, type DeletedKind } from "./CleanFile.ts"

export interface Compaction {
  /** Completes when nothing of deleted rows is left in the store's files. */
  readonly clean: (deleted: DeletedKind) => Effect.Effect<void, StoreUnavailable>
  /** Asks for the write-ahead log to be emptied soon. */
  readonly emptyLogSoon: () => void
}

/** Nothing to do for a store in memory, and for Postgres, whose files belong to its own server. */
export const Compaction = Context.Reference<Compaction>("edgewise/store/Compaction", {
  defaultValue: () => ({ clean: () => Effect.void, emptyLogSoon: () => {} }),
})

/** For a command, which may wait for it. */
export const compactionOf = (filename: string): Compaction => ({
  clean: (deleted) =>
    Effect.try({
      try: () => cleanFile(filename, deleted),
      catch: (cause) => new StoreUnavailable({ place: filename, problem: problemOf(cause) }),
    }),
  emptyLogSoon: () => {},
})
