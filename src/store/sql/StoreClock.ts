// The clock by which rows with a lifetime (jobs, kept answers) are written and removed. It is read once, when the store
// opens, and then advances monotonically. With a shared database it is the database's time, so that a node whose clock
// is wrong removes nothing of the others; with SQLite it is the machine's time.
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
  // Read once: later changes of either clock have no effect.
  const aheadMs = wallMs - (yield* monotonicMs)
  const now: StoreClock = Effect.map(monotonicMs, (ms) => Math.round(ms + aheadMs))
  return now
})
