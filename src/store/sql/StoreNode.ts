// Which node this is among those that share a store, and whether the others are still there. The store starts the
// heartbeat of a node on Postgres; on SQLite there is nobody to tell apart, and nothing here runs.
//
// The database's clock decides who has been seen when: the nodes' own need not agree.
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { Context, Duration, Effect, Exit, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { base62 } from "#domain/access/ApiKey.ts"
import { notWorking, StoreUnavailable } from "../files/StoreErrors.ts"
import { onceFile } from "../files/WriteOnceFile.ts"

/** The node's id; empty where the store is not shared. */
export const StoreNode = Context.Reference<string>("edgewise/store/StoreNode", { defaultValue: () => "" })

/** Whether the database was there when it was last looked at. One in the node's own directory always is. */
export const StoreIsThere = Context.Reference<() => boolean>("edgewise/store/StoreIsThere", {
  defaultValue: () => () => true,
})

/** How often a node says that it is there. A guess: one small statement. */
const beatEvery = Duration.seconds(5)

/** A node that was not seen for so long answers no requests: what it had begun to answer, others may answer. */
export const silentMs = 30_000

/**
 * A node that was not seen for so long does not come back: its transcription jobs have failed, because their uploads are
 * on its disk. Long enough for a machine to be repaired or moved, short enough for whoever waits. A guess.
 */
export const lostMs = 60 * 60_000

/** Rows of nodes that were not seen for so long say nothing any more. */
const forgottenMs = 30 * 24 * 60 * 60_000

const shape = /^node_[0-9A-Za-z]+$/

/** The id in a data directory, made where there is none. It stays with the directory, as the uploads do. */
export const nodeIdOf = (dataDir: string): Effect.Effect<string, StoreUnavailable> => {
  const file = join(dataDir, "node-id")
  return Effect.filterOrFail(
    onceFile(file, () => `node_${base62(randomBytes(12), 17)}`),
    (id) => shape.test(id),
    () => new StoreUnavailable({ place: file, problem: "does not hold a node's id; remove it" }),
  )
}

/** Milliseconds since 1970, as the database sees it. */
export const databaseNow = "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT"

/** Says that the node is there, from now to the end of the scope, and learns whether the database is. */
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
      // What the database does not hear it will hear the next time; that it is away is logged by its connections.
      const look = Effect.map(Effect.exit(beat), (exit) => {
        isThere = Exit.isSuccess(exit)
      })
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(beatEvery), look)))
      return () => isThere
    }),
  )
