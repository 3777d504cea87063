// The time that rows with a lifetime are written and removed by: jobs and kept answers. It is read once, when the store
// opens, and goes on from there without jumps. Where nodes share a database it is the database's time, so that a node whose
// clock is wrong removes nothing of the others; with SQLite it is the machine's.
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { databaseNow, StoreNode } from "./StoreNode.ts"

/** Milliseconds since 1970, whole. */
export type StoreClock = Effect.Effect<number>

export const makeStoreClock = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const isShared = (yield* StoreNode) !== ""
  const shared = Effect.map(
    sql<{ readonly now: number | string }>`SELECT ${sql.literal(databaseNow)} AS now`,
    ([row]) => Number(row?.now),
  )
  const wallMs = yield* isShared ? Effect.orDie(shared) : Clock.currentTimeMillis
  // Once: from then on a clock that is set changes nothing, neither here nor at the database.
  const aheadMs = wallMs - (yield* monotonicMs)
  const now: StoreClock = Effect.map(monotonicMs, (ms) => Math.round(ms + aheadMs))
  return now
})
