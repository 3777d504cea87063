// Notices at a node's start that its SQLite store is a copy: the database keeps which files it was in at the last start, by their inode
// numbers, which a copy does not share. A copy of a whole file system does, and is not noticed. For Postgres: StoreNode.
import { statSync } from "node:fs"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { notWorking, type StoreUnavailable } from "../files/StoreErrors.ts"

/** Name of the row of `meta`. A restored store has none: it is another node's on purpose. */
export const placeRow = "place"

/** The data directory and the database file in it. */
const placeOf = (dataDir: string, file: string): string => `${statSync(dataDir).ino} ${statSync(file).ino}`

export const noticeCopy = (
  dataDir: string,
  file: string,
): Layer.Layer<never, StoreUnavailable, SqlClient.SqlClient> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const place = placeOf(dataDir, file)
      const [known] = yield* sql<{ readonly value: string }>`SELECT value FROM meta WHERE name = ${placeRow}`
      if (known?.value === place) return
      yield* sql`
        INSERT INTO meta (name, value) VALUES (${placeRow}, ${place})
        ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value`
      if (known === undefined) return
      yield* Effect.logWarning(
        "the data directory is a copy, or was moved to another disk; do not run the original beside it, both spend the same balances; edgewise restore makes another node",
      ).pipe(Effect.annotateLogs({ data_dir: dataDir }))
    }).pipe(Effect.mapError(notWorking)),
  )
