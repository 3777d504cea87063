// Exports of receipts and what becomes of them afterwards: the receipts of a day (UTC) that an operator has written to a file may be
// replaced by sums of the day, others never. A day that has got further receipts since its export has to be exported again
// (see the fourteenth migration).
import { randomBytes } from "node:crypto"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { freshIds } from "#domain/access/FreshIds.ts"
import { notWorking, type StoreUnavailable } from "../files/StoreErrors.ts"
import { makeStoreClock } from "../sql/StoreClock.ts"
import { StatementDeadline } from "../sql/StorePresence.ts"
import { addedToSums, columnsOfReceipt, makeLedgerRows, type ReceiptRow } from "./LedgerRows.ts"
import { dayMs, dayOf, foldedIdMs, makeReceiptCheck, tableOfDay } from "./ReceiptDays.ts"

const newId = freshIds(randomBytes)

/** Receipts that are read at once. A guess: a few milliseconds. */
const readAtOnce = 500

/** Longest time of a statement over all receipts of a day, or of all days. A guess: seconds for millions of receipts. */
const patientMs = 10 * 60_000

export interface ExportedReceipt extends ReceiptRow {
  readonly org_id: string
  /** Null where the organization was deleted, as `user_name` where the user was. */
  readonly org: string | null
}

/** An export of a day that has begun. */
interface DayExport {
  readonly day: number
  readonly id: string
}

interface Folded {
  readonly receipts: number
  /** True if there are receipts as old that were not exported. */
  readonly areOthersWaiting: boolean
}

export class ReceiptExports extends Context.Service<
  ReceiptExports,
  {
    /**
     * Days with receipts that can be exported and are not: those that ended at least a day ago, so that what was on its way has arrived.
     * Oldest first.
     */
    readonly due: Effect.Effect<ReadonlyArray<number>, StoreUnavailable>
    readonly begin: (day: number) => Effect.Effect<DayExport, StoreUnavailable>
    /** Calls `write` with all receipts of the day, some at a time. Returns their number. */
    readonly read: <E>(
      day: number,
      write: (some: ReadonlyArray<ExportedReceipt>) => Effect.Effect<void, E>,
    ) => Effect.Effect<number, StoreUnavailable | E>
    /** The file is safe. False if the day has got another receipt or another export meanwhile. */
    readonly complete: (of: DayExport, receipts: number) => Effect.Effect<boolean, StoreUnavailable>
    /** Replaces the receipts of exported days before this time by sums. Drops ids that are not needed any more. */
    readonly fold: (keptMs: number) => Effect.Effect<Folded, StoreUnavailable>
  }
>()("edgewise/store/ReceiptExports") {
  static readonly layer: Layer.Layer<ReceiptExports, StoreUnavailable, SqlClient.SqlClient> = Layer.effect(
    ReceiptExports,
    Effect.suspend(() => make),
  )
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* makeLedgerRows
  const now = yield* makeStoreClock
  const check = yield* makeReceiptCheck
  const working = <A, E>(effect: Effect.Effect<A, E | SqlError>) =>
    Effect.mapError(effect, (error) =>
      typeof error === "object" && error !== null && "_tag" in error && error._tag === "SqlError"
        ? notWorking(error as SqlError)
        : (error as Exclude<E, SqlError>),
    )

  /** For statements that read many rows. On Postgres a node's statements are ended sooner. */
  const patiently = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | SqlError> =>
    sql.onDialectOrElse({
      pg: () =>
        sql
          .withTransaction(Effect.andThen(sql.unsafe(`SET LOCAL statement_timeout = ${patientMs}`), effect))
          .pipe(Effect.provideService(StatementDeadline, patientMs)),
      orElse: () => effect,
    })
  const dayColumn = sql.literal(`at_ms - at_ms % ${dayMs}`)

  const page = (orgId: string, day: number, after: { readonly atMs: number; readonly receiptId: string }) =>
    sql<ExportedReceipt>`
      SELECT l.org_id, o.name AS org, ${sql.literal(columnsOfReceipt)}
      FROM usage_ledger l LEFT JOIN orgs o ON o.id = l.org_id LEFT JOIN users u ON u.id = l.user_id
      WHERE l.org_id = ${orgId} AND l.at_ms >= ${after.atMs} AND l.at_ms < ${day + dayMs}
        AND (l.at_ms > ${after.atMs} OR l.receipt_id > ${after.receiptId})
      ORDER BY l.at_ms, l.receipt_id LIMIT ${readAtOnce}`

  /** Makes sums of all receipts of a day's own table and drops it, all or nothing. Undefined: another node does. Only on Postgres. */
  const foldTable = (day: number) =>
    patiently(
      Effect.gen(function* () {
        const table = tableOfDay(day)
        // Another node may do it, or have done it.
        const [mine] = yield* sql`
          SELECT 1 FROM receipt_exports WHERE day_ms = ${day} AND state = 'exported' FOR UPDATE SKIP LOCKED`
        const [there] = yield* sql`SELECT 1 WHERE to_regclass(${table}) IS NOT NULL`
        if (mine === undefined) return undefined
        if (there === undefined) return 0
        if (day > (yield* now) - foldedIdMs) {
          yield* sql.unsafe(`
            INSERT INTO folded_receipts (receipt_id, day_ms) SELECT receipt_id, ${day} FROM ${table}
            ON CONFLICT DO NOTHING`)
        }
        const [counted] = yield* sql.unsafe<{ readonly receipts: number }>(`
          WITH summed AS (
            INSERT INTO usage_sums (org_id, day_ms, model, kind, requests, input_tokens, output_tokens, audio_ms,
                                    micro_dollars)
            SELECT org_id, ${day}, model, kind, COUNT(*), SUM(input_tokens), SUM(output_tokens), SUM(audio_ms),
                   SUM(micro_dollars)
            FROM ${table} GROUP BY org_id, model, kind ${addedToSums})
          SELECT COUNT(*) AS receipts FROM ${table}`)
        yield* sql.unsafe(`DROP TABLE ${table}`)
        return counted?.receipts ?? 0
      }),
    )

  const orgIds = Effect.map(sql<{ readonly id: string }>`SELECT id FROM orgs ORDER BY id`, (found) =>
    found.map(({ id }) => id),
  )

  const othersHaveEnded: Effect.Effect<void, SqlError> = sql.onDialectOrElse({
    pg: () => Effect.asVoid(sql`LOCK TABLE ONLY usage_ledger IN SHARE ROW EXCLUSIVE MODE`),
    orElse: () => Effect.void,
  })

  return ReceiptExports.of({
    due: working(
      Effect.flatMap(now, (nowMs) =>
        Effect.map(
          patiently(sql<{ readonly day: number }>`
            SELECT DISTINCT ${dayColumn} AS day FROM usage_ledger
            WHERE at_ms < ${dayOf(nowMs) - dayMs}
              AND ${dayColumn} NOT IN (SELECT day_ms FROM receipt_exports WHERE state <> 'exporting')
            ORDER BY day`),
          (found) => found.map(({ day }) => Number(day)),
        ),
      ),
    ),

    begin: (day) =>
      working(
        Effect.gen(function* () {
          const id = newId()
          // From now on a receipt for this day is noticed.
          yield* check
          yield* sql.withTransaction(
            Effect.andThen(
              sql`
                INSERT INTO receipt_exports (day_ms, export_id, receipts, state) VALUES (${day}, ${id}, 0, 'exporting')
                ON CONFLICT (day_ms) DO UPDATE SET export_id = EXCLUDED.export_id, state = 'exporting'`,
              // Waits for the end of what is being written, which did not notice.
              othersHaveEnded,
            ),
          )
          return { day, id }
        }),
      ),

    read: (day, write) =>
      working(
        Effect.gen(function* () {
          let count = 0
          const orgs = yield* patiently(sql<{ readonly org_id: string }>`
            SELECT DISTINCT org_id FROM usage_ledger
            WHERE at_ms >= ${day} AND at_ms < ${day + dayMs} ORDER BY org_id`)
          for (const { org_id } of orgs) {
            let after = { atMs: day, receiptId: "" }
            for (;;) {
              const some = yield* page(org_id, day, after)
              const last = some.at(-1)
              if (last === undefined) break
              yield* write(some)
              count += some.length
              after = { atMs: Number(last.at_ms), receiptId: last.receipt_id }
            }
          }
          return count
        }),
      ),

    complete: ({ day, id }, receipts) =>
      working(
        Effect.map(
          sql`
            UPDATE receipt_exports SET state = 'exported', receipts = ${receipts}
            WHERE day_ms = ${day} AND export_id = ${id} RETURNING day_ms`,
          (changed) => changed.length === 1,
        ),
      ),

    fold: (keptMs) =>
      working(
        Effect.gen(function* () {
          const nowMs = yield* now
          const before = dayOf(nowMs - keptMs)
          const days = yield* sql<{ readonly day_ms: number }>`
            SELECT day_ms FROM receipt_exports WHERE state = 'exported' AND day_ms < ${before} ORDER BY day_ms`
          const orgs = yield* orgIds
          let receipts = 0
          for (const { day_ms } of days) {
            const day = Number(day_ms)
            const ofTable = yield* sql.onDialectOrElse({
              pg: () => foldTable(day),
              orElse: () => Effect.succeed(0),
            })
            if (ofTable === undefined) continue
            receipts += ofTable
            for (const orgId of orgs) receipts += yield* rows.summarize({ orgId, exportedDay: day })
            yield* sql`UPDATE receipt_exports SET state = 'summed' WHERE day_ms = ${day} AND state = 'exported'`
          }
          let areOthersWaiting = false
          for (const orgId of orgs) {
            const [oldest] = yield* sql<{ readonly at_ms: number | null }>`
              SELECT MIN(at_ms) AS at_ms FROM usage_ledger WHERE org_id = ${orgId}`
            areOthersWaiting ||= Number(oldest?.at_ms ?? before) < before
          }
          yield* sql.onDialectOrElse({
            pg: () =>
              Effect.asVoid(sql`DELETE FROM folded_receipts WHERE day_ms < ${dayOf(nowMs - foldedIdMs)}`),
            orElse: () => Effect.void,
          })
          return { receipts, areOthersWaiting }
        }),
      ),
  })
})
