// The presence of this node among those that share a Postgres store: it raises its counter at intervals and knows from the others'
// counters which of them run (Neighbours.ts). A second node of the same id, which runs on a copy of the data directory, is refused at
// its start.
import { hash } from "node:crypto"
import { readFileSync, statSync } from "node:fs"
import { hostname } from "node:os"
import { join } from "node:path"
import { Context, Effect, Exit, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { notWorking, StoreUnavailable } from "../files/StoreErrors.ts"
import { databaseNow } from "../sql/StoreNode.ts"
import { whileRequestWaits } from "../sql/StorePresence.ts"
import { isDead, type Neighbour, type NodeRow, noOffer, type Offer, observe } from "./Neighbours.ts"

/** Interval of the beats, milliseconds. A guess: one small statement. A dead node is found after 15 to 18 s. Tests shorten it. */
export const BeatEvery = Context.Reference<number>("edgewise/store/BeatEvery", { defaultValue: () => 3_000 })

/** A dead node, as a statement that takes something from it names it: if it has beaten meanwhile, nothing is taken. */
interface DeadNode {
  readonly id: string
  readonly beat: number
  readonly seenAtMs: number
  /** How long its counter has stood still, milliseconds of this node's monotonic clock. */
  readonly stillMs: number
}

export interface PresenceView {
  /** Whether there can be other nodes. */
  readonly isShared: boolean
  /** Number of nodes that run, this one included. Nodes of which nothing is known yet count as running. */
  readonly living: () => number
  /** Running nodes other than this one, with what each offered in its last beat. */
  readonly others: () => ReadonlyArray<Neighbour>
  readonly dead: Effect.Effect<ReadonlyArray<DeadNode>>
  /** Beats of this node that succeeded since its start. */
  readonly beats: () => number
  /** Sets what this node offers with each beat. */
  readonly offers: (offer: () => Offer) => void
}

/** Of a store that is not shared: one node. */
const alone: PresenceView = {
  isShared: false,
  living: () => 1,
  others: () => [],
  dead: Effect.succeed([]),
  beats: () => 0,
  offers: () => {},
}

export const Presence = Context.Reference<PresenceView>("edgewise/store/Presence", {
  defaultValue: () => alone,
})

/** Age at which rows of nodes that are gone are deleted. */
const forgottenMs = 30 * 24 * 60 * 60_000

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
const directoryIdentity = (dataDir: string): string => {
  const { dev, ino } = statSync(dataDir)
  return hash("sha256", `${machineNow()} ${dev} ${ino}`).slice(0, 16)
}

/** Interval of the line about another directory with this node's id, at least. */
const copyLineEveryMs = 60_000

/**
 * How long a start watches the row of its id if another data directory wrote it: two beats and some. The directory may be a copy of that
 * of a node that runs; it may also have moved, or the machine was started again.
 */
const watchBeats = 2.2
const watchSteps = 10

/** Beats until the scope closes. Fails if a node of this id runs on another data directory. */
export const presence = (
  node: string,
  dataDir: string,
): Layer.Layer<never, StoreUnavailable, SqlClient.SqlClient> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const everyMs = yield* BeatEvery
      const directory = directoryIdentity(dataDir)
      const now = sql.literal(databaseNow)
      let offer = () => noOffer
      let neighbours: ReadonlyMap<string, Neighbour> = new Map()
      let beats = 0

      const own = Effect.map(
        sql<NodeRow & { readonly directory: string }>`SELECT * FROM nodes WHERE id = ${node}`,
        ([row]) => row,
      )
      const refuseCopy = Effect.gen(function* () {
        const first = yield* own
        if (first === undefined || first.directory === "" || first.directory === directory) return
        yield* Effect.logInfo(
          "the data directory has moved or the machine was started again; waiting whether a node of its id runs",
        ).pipe(Effect.annotateLogs({ node }))
        for (let step = 0; step < watchSteps; step++) {
          yield* Effect.sleep((watchBeats * everyMs) / watchSteps)
          const later = yield* own
          if (later === undefined || (later.beat === first.beat && later.seen_at_ms === first.seen_at_ms))
            continue
          return yield* new StoreUnavailable({
            place: join(dataDir, "node-id"),
            problem: `${node} runs on another data directory, of which this one is a copy; remove this file, or stop that node`,
          })
        }
      })

      // The rows are those before this statement: the node's own says which directory wrote it last.
      const statement = Effect.suspend(
        () => sql<NodeRow & { readonly directory: string }>`
          WITH own AS (
            INSERT INTO nodes (id, beat, seen_at_ms, directory, offer)
            VALUES (${node}, 1, ${now}, ${directory}, ${JSON.stringify(offer())})
            ON CONFLICT (id) DO UPDATE SET beat = nodes.beat + 1, seen_at_ms = EXCLUDED.seen_at_ms,
              directory = EXCLUDED.directory, offer = EXCLUDED.offer)
          SELECT id, beat, seen_at_ms, directory, offer FROM nodes`,
      )
      const beat = Effect.gen(function* () {
        const rows = yield* whileRequestWaits(statement)
        neighbours = observe(neighbours, rows, node, yield* monotonicMs)
        beats++
        return rows.find(({ id }) => id === node)?.directory ?? ""
      })

      yield* Effect.mapError(refuseCopy, (error) => ("place" in error ? error : notWorking(error)))
      yield* Effect.mapError(beat, notWorking)
      yield* Effect.mapError(
        sql`DELETE FROM nodes WHERE seen_at_ms < ${now} - ${forgottenMs}::BIGINT`,
        notWorking,
      )

      let saidAtMs = Number.NEGATIVE_INFINITY
      // Both started at the same moment.
      const sayCopy = Effect.gen(function* () {
        const nowMs = yield* monotonicMs
        if (nowMs - saidAtMs < copyLineEveryMs) return
        saidAtMs = nowMs
        yield* Effect.logError(
          "another data directory runs as this node: one is a copy of the other; stop it and remove its file node-id",
        ).pipe(Effect.annotateLogs({ node }))
      })
      // A missed beat needs no handling: the next one repeats it, and the connections log an outage.
      const recorded = Effect.flatMap(Effect.exit(beat), (exit) => {
        const before = Exit.isSuccess(exit) ? exit.value : ""
        return before === directory || before === "" ? Effect.void : sayCopy
      })
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(everyMs), recorded)))

      const living = () => [...neighbours.values()].filter((neighbour) => !isDead(neighbour))
      return Context.make(Presence, {
        isShared: true,
        living: () => living().length + 1,
        others: living,
        dead: Effect.map(monotonicMs, (nowMs) =>
          [...neighbours.values()]
            .filter(isDead)
            .map(({ beat, id, seenAtMs, sinceMs }) => ({ id, beat, seenAtMs, stillMs: nowMs - sinceMs })),
        ),
        beats: () => beats,
        offers: (next) => {
          offer = next
        },
      })
    }),
  )

/**
 * SQL: the ids of those of `dead` that have not beaten since. Only for statements that take something from them, on Postgres. A node of an
 * earlier version has no counter and shows that it runs by its time.
 */
export const stillDead = (sql: SqlClient.SqlClient, dead: ReadonlyArray<DeadNode>) =>
  sql`SELECT nodes.id FROM nodes
      JOIN jsonb_to_recordset(${JSON.stringify(dead)}::text::jsonb)
        AS dead (id TEXT, beat BIGINT, "seenAtMs" BIGINT) ON nodes.id = dead.id AND nodes.beat = dead.beat
      WHERE nodes.beat > 0 OR nodes.seen_at_ms = dead."seenAtMs"`
