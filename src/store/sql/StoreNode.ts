// The id of this node among those that share a store, and a heartbeat that shows that it is alive. Runs only on
// Postgres. The database's clock decides when a node was last seen, so the nodes' clocks need not agree.
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { Context, Duration, Effect, Exit, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { base62 } from "#domain/access/ApiKey.ts"
import { notWorking, StoreUnavailable } from "../files/StoreErrors.ts"
import { onceFile } from "../files/WriteOnceFile.ts"

/** The node's id. Empty if the store is not shared. */
export const StoreNode = Context.Reference<string>("edgewise/store/StoreNode", { defaultValue: () => "" })

/** False if a shared database did not answer at the last heartbeat. Always true for SQLite. */
export const StoreIsThere = Context.Reference<() => boolean>("edgewise/store/StoreIsThere", {
  defaultValue: () => () => true,
})

/** Interval of the heartbeat. A guess: one small statement. */
const beatEvery = Duration.seconds(5)

/** A node not seen for this long is taken to answer no requests: other nodes may answer those that it had locked. */
export const silentMs = 30_000

/**
 * A node not seen for this long is taken to be lost, and its transcription jobs fail, because their uploads are on its
 * disk. Long enough to repair or move a machine, short enough for a waiting client. A guess.
 */
export const lostMs = 60 * 60_000

/** Age at which rows of nodes that are gone are deleted. */
const forgottenMs = 30 * 24 * 60 * 60_000

const shape = /^node_[0-9A-Za-z]+$/

/** The id kept in a data directory, made if there is none. It stays with the directory, as the uploads do. */
export const nodeIdOf = (dataDir: string): Effect.Effect<string, StoreUnavailable> => {
  const file = join(dataDir, "node-id")
  return Effect.filterOrFail(
    onceFile(file, () => `node_${base62(randomBytes(12), 17)}`),
    (id) => shape.test(id),
    () => new StoreUnavailable({ place: file, problem: "does not hold a node's id; remove it" }),
  )
}

/** Milliseconds since 1970 by the database's clock. */
export const databaseNow = "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT"

/** Writes the heartbeat until the scope closes, and records whether the database answers. */
export const heartbeat = (node: string): Layer.Layer<never, StoreUnavailable, SqlClient.SqlClient> =>
  Layer.effect(
    StoreIsThere,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const now = sql.literal(databaseNow)
      const beat = sql`
        INSERT INTO nodes (id, seen_at_ms) VALUES (${node}, ${now})
        ON CONFLICT (id) DO UPDATE SET seen_at_ms = EXCLUDED.seen_at_ms`
      yield* Effect.mapError(beat, notWorking)
      yield* Effect.mapError(
        sql`DELETE FROM nodes WHERE seen_at_ms < ${now} - ${forgottenMs}::BIGINT`,
        notWorking,
      )
      let isThere = true
      // A missed beat needs no handling: the next one repeats it, and the connections log an outage.
      const recordedBeat = Effect.map(Effect.exit(beat), (exit) => {
        isThere = Exit.isSuccess(exit)
      })
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(beatEvery), recordedBeat)))
      return () => isThere
    }),
  )
