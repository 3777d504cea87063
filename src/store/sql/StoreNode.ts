// The id of this node among those that share a store, and a heartbeat that shows that it is alive. Runs only on
// Postgres. The database's clock decides when a node was last seen, so the nodes' clocks need not agree. The heartbeat also notices
// a copy of the data directory that runs as a node of the same id.
import { hash, randomBytes } from "node:crypto"
import { readFileSync, statSync } from "node:fs"
import { hostname } from "node:os"
import { join } from "node:path"
import { Context, Duration, Effect, Exit, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { base62 } from "#domain/access/ApiKey.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
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

/**
 * A node that has not been seen for this long is taken not to run. Its locks on idempotency keys no longer hold, so other nodes may serve
 * requests with these keys, and no deletion waits for it.
 */
export const silentMs = 30_000

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

/** The id of this start of the machine: the same in its containers. */
const machineNow = (): string => {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8")
  } catch {
    return hostname()
  }
}

/**
 * Tells a data directory from a copy of it: the same for all processes that use it now, whatever path they reach it by. A digest, because
 * the database shows it.
 */
export const directoryIdentity = (dataDir: string): string => {
  const { dev, ino } = statSync(dataDir)
  return hash("sha256", `${machineNow()} ${dev} ${ino}`).slice(0, 16)
}

/** Interval of the line about another directory with this node's id, at least. */
const copyLineEveryMs = 60_000

/** Milliseconds since 1970 by the database's clock. */
export const databaseNow = "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT"

/**
 * Writes the heartbeat until the scope closes, and records whether the database answers. `directory` is the identity of the data
 * directory: if another one writes the same id in between, a line in the log says so.
 */
export const heartbeat = (
  node: string,
  directory: string,
): Layer.Layer<never, StoreUnavailable, SqlClient.SqlClient> =>
  Layer.effect(
    StoreIsThere,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const now = sql.literal(databaseNow)
      // Returns which directory wrote the row before.
      const beat = sql<{ readonly before: string | null }>`
        INSERT INTO nodes (id, seen_at_ms, directory) VALUES (${node}, ${now}, ${directory})
        ON CONFLICT (id) DO UPDATE SET seen_at_ms = EXCLUDED.seen_at_ms, directory = EXCLUDED.directory
        RETURNING (SELECT earlier.directory FROM nodes AS earlier WHERE earlier.id = nodes.id) AS before`
      yield* Effect.mapError(beat, notWorking)
      yield* Effect.mapError(
        sql`DELETE FROM nodes WHERE seen_at_ms < ${now} - ${forgottenMs}::BIGINT`,
        notWorking,
      )
      let isThere = true
      let saidAtMs = Number.NEGATIVE_INFINITY
      const sayCopy = Effect.gen(function* () {
        const nowMs = yield* monotonicMs
        if (nowMs - saidAtMs < copyLineEveryMs) return
        saidAtMs = nowMs
        yield* Effect.logError(
          "another data directory runs as this node: one is a copy of the other; stop it and remove its file node-id",
        ).pipe(Effect.annotateLogs({ node }))
      })
      // A missed beat needs no handling: the next one repeats it, and the connections log an outage.
      const recordedBeat = Effect.flatMap(Effect.exit(beat), (exit) => {
        isThere = Exit.isSuccess(exit)
        const before = Exit.isSuccess(exit) ? exit.value[0]?.before : undefined
        return before === directory || before === null || before === undefined || before === ""
          ? Effect.void
          : sayCopy
      })
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(beatEvery), recordedBeat)))
      return () => isThere
    }),
  )
