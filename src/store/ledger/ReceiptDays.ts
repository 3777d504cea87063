// Receipts by day (UTC). Where a shared store sums up old receipts, each day has a table of its own, so that all receipts of a day are
// removed by dropping it. These tables inherit from `usage_ledger`: what reads or deletes there sees them all.
//
// A receipt has one id in all of them. A node writes a receipt of this moment to the table of its day. Everything that may have been
// written before goes to `usage_ledger` itself, where a trigger compares its id with those of all tables and with those of the receipts
// that became sums (see the fourteenth migration): what was in a node's file during an outage, and receipts of jobs.
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { Retention } from "../sql/Retention.ts"
import { makeStoreClock } from "../sql/StoreClock.ts"

/** Milliseconds of a day (UTC). */
export const dayMs = 86_400_000

export const dayOf = (atMs: number): number => atMs - (atMs % dayMs)

/** `2026-01-31` */
export const dayName = (day: number): string => new Date(day).toISOString().slice(0, 10)

/**
 * How long after it was made a receipt is written by itself from the file in which an outage has left it. Beyond it the receipt is put
 * aside for the operator. A guess: a machine that is repaired is back sooner.
 */
export const spooledMs = 60 * dayMs

/**
 * How long the id of a receipt that became a part of a sum is kept after the receipt was made: longer than such a file is written, by more
 * than a node's clock may be wrong.
 */
export const foldedIdMs = spooledMs + 10 * dayMs

/** Where all receipts are that have no table of their day. */
export const ledgerTable = "usage_ledger"

export const tableOfDay = (day: number): string => `${ledgerTable}_${dayName(day).replaceAll("-", "")}`

/** Beyond so many days a query over all tables would lock too many: three locks each, of the server's 6,400 by default. */
const mostDays = 100
/** Tables that exist at most, also where nothing is exported, so that nothing can be dropped. */
const mostTables = 120

/** A receipt of this moment is not older. A guess: it is written within 20 ms. */
const freshMs = 5_000
const prepareEvery = Duration.hours(1)

interface Dated {
  readonly receiptId: string
  readonly atMs: number
}

/** Gives the name of the table to which a receipt is written now. */
export const ReceiptTables = Context.Reference<Effect.Effect<(receipt: Dated) => string>>(
  "edgewise/store/ReceiptTables",
  { defaultValue: () => Effect.succeed(() => ledgerTable) },
)

/** Gives the effect that makes the trigger of `usage_ledger`, if it is not there. On SQLite, where one process writes a receipt once, none is needed. */
export const makeReceiptCheck = Effect.map(SqlClient.SqlClient, (sql): Effect.Effect<void, SqlError> => {
  const make = sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`SELECT pg_advisory_xact_lock(hashtext('edgewise receipts'))`
      const [found] = yield* sql`
        SELECT 1 FROM pg_trigger WHERE tgname = 'check_receipt' AND tgrelid = to_regclass(${ledgerTable})`
      if (found !== undefined) return
      yield* sql`
        CREATE TRIGGER check_receipt BEFORE INSERT ON usage_ledger FOR EACH ROW EXECUTE FUNCTION check_receipt()`
    }),
  )
  return sql.onDialectOrElse({ pg: () => make, orElse: () => Effect.void })
})

/** Makes tables of days, for as long as the scope is open, where receipts are summed up. For a node on a shared store. */
export const receiptTables: Layer.Layer<never, never, SqlClient.SqlClient> = Layer.effect(
  ReceiptTables,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { receiptMs } = yield* Retention
    if (receiptMs === undefined || receiptMs > mostDays * dayMs) {
      return Effect.succeed(() => ledgerTable)
    }
    const now = yield* makeStoreClock
    const check = yield* makeReceiptCheck
    const tables = new Map<number, string>()

    const make = Effect.fnUntraced(function* (day: number) {
      const table = tableOfDay(day)
      yield* sql.unsafe(`
        CREATE TABLE IF NOT EXISTS ${table} (
          LIKE ${ledgerTable} INCLUDING ALL,
          CONSTRAINT receipts_of_day CHECK (at_ms >= ${day} AND at_ms < ${day + dayMs})
        ) INHERITS (${ledgerTable})`)
      return [day, table] as const
    })
    const prepare = Effect.gen(function* () {
      yield* check
      const today = dayOf(yield* now)
      const missing = [today, today + dayMs].filter((day) => !tables.has(day))
      const made = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`SELECT pg_advisory_xact_lock(hashtext('edgewise receipts'))`
          const [row] = yield* sql<{ readonly count: number }>`
            SELECT COUNT(*) AS count FROM pg_inherits WHERE inhparent = to_regclass(${ledgerTable})`
          return (row?.count ?? 0) < mostTables ? yield* Effect.forEach(missing, make) : []
        }),
      )
      for (const [day, table] of made) tables.set(day, table)
      for (const day of tables.keys()) if (day < today - dayMs) tables.delete(day)
    }).pipe(Effect.catch((error) => Effect.logWarning("tables of days were not made", error.message)))
    yield* prepare
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(prepareEvery), prepare)))

    return Effect.gen(function* () {
      const wallMs = yield* Clock.currentTimeMillis
      // Days that have passed may be dropped.
      const from = dayOf(yield* now) - dayMs
      return ({ atMs, receiptId }: Dated) => {
        const day = dayOf(atMs)
        const isFresh = receiptId.startsWith("rcpt_") && Math.abs(wallMs - atMs) < freshMs
        return (isFresh && day >= from ? tables.get(day) : undefined) ?? ledgerTable
      }
    })
  }),
)
