// What other processes changed of keys and organizations on a shared store, in one statement a second (see the eleventh migration).
// As long as it succeeds, what a node has read of keys stays true without being read again.
import { Context, Duration, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { databaseNow, StoreNode } from "../sql/StoreNode.ts"
import { whileRequestWaits } from "../sql/StorePresence.ts"

const lookEvery = Duration.seconds(1)
/** What was read is trusted for so long after the last look, milliseconds. Protocol 2.6 allows 5 s until a change is noticed. */
const trustedMs = 3_500
/** Age at which rows are deleted. A node that has not looked for half of it forgets all that it knows. */
const keptMs = 60 * 60_000
const tidyEvery = Duration.minutes(10)

interface AccountChange {
  readonly orgId: string
  /** Of a key that was changed, mostly revoked; empty: the organization has more credit, or another way to pay. */
  readonly keyId: string
  readonly digest: string
}

interface LookRow {
  readonly horizon: string
  readonly changes: string
}

export interface AccountChanges {
  readonly isShared: boolean
  /** True if all changes up to some seconds before `nowMs` (`monotonicMs`) are known. Always false where no store is shared. */
  readonly isCurrent: (nowMs: number) => boolean
  /** Number of looks so far: what was read while it changed may be older than a change that is known already. */
  readonly looks: () => number
  /** `undefined`: anything may have changed. */
  readonly listen: (listener: (change: AccountChange | undefined) => void) => () => void
}

const none: AccountChanges = {
  isShared: false,
  isCurrent: () => false,
  looks: () => 0,
  listen: () => () => {},
}

export const CurrentAccountChanges = Context.Reference<AccountChanges>("edgewise/store/AccountChanges", {
  defaultValue: () => none,
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  if ((yield* StoreNode) === "") return none
  const listeners = new Set<(change: AccountChange | undefined) => void>()
  const tell = (change: AccountChange | undefined) => {
    for (const listener of listeners) listener(change)
  }
  /** The oldest transaction that the last look could not see. */
  let horizon: string | undefined
  let lookedAtMs = Number.NEGATIVE_INFINITY
  let looks = 0

  const look = (since: string): Effect.Effect<ReadonlyArray<LookRow>, SqlError> =>
    whileRequestWaits(sql<LookRow>`
      SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS horizon,
             (SELECT COALESCE(json_agg(json_build_array(org_id, key_id, digest)), '[]')::text
              FROM account_changes WHERE transaction_id >= ${since}::text::xid8) AS changes`)

  const lookOnce = Effect.gen(function* () {
    const startedMs = yield* monotonicMs
    const mayHaveMissed = horizon === undefined || startedMs - lookedAtMs > keptMs / 2
    // The first look only learns where it is.
    const [row] = yield* look(mayHaveMissed ? "18446744073709551615" : horizon!)
    if (row === undefined) return
    // A database that was restored counts from an earlier transaction.
    const isEarlier = horizon !== undefined && BigInt(row.horizon) < BigInt(horizon)
    horizon = row.horizon
    lookedAtMs = startedMs
    looks++
    if (mayHaveMissed || isEarlier) return tell(undefined)
    for (const [orgId, keyId, digest] of JSON.parse(row.changes) as ReadonlyArray<[string, string, string]>) {
      tell({ orgId, keyId, digest })
    }
  })
  const tidy = sql`DELETE FROM account_changes WHERE at_ms < ${sql.literal(databaseNow)} - ${keptMs}::BIGINT`

  yield* Effect.ignore(lookOnce)
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(lookEvery), Effect.ignore(lookOnce))))
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.ignore(tidy), Effect.sleep(tidyEvery))))
  const changes: AccountChanges = {
    isShared: true,
    isCurrent: (nowMs) => nowMs - lookedAtMs < trustedMs,
    looks: () => looks,
    listen: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  return changes
})

/** Looks for changes until the scope closes. */
export const accountChanges: Layer.Layer<never, never, SqlClient.SqlClient> = Layer.effect(
  CurrentAccountChanges,
  make,
)
