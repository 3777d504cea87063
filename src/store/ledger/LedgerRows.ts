// The usage ledger in SQL: writes a batch of receipts and the balances and leases that they change in one transaction, and sums
// receipts. Receipts that are deleted leave sums by day and model, so that what was used and charged stays known.
import { Array as Arr, Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import type { ModelKind } from "#domain/models/ModelEntry.ts"
import type { ModelUsage, Usage, UsageReceipt } from "#domain/models/Usage.ts"
import type { Demand, LeaseAnswer } from "./Lease.ts"
import { makeLeaseRows } from "./LeaseRows.ts"
import { dayMs, dayOf, foldedIdMs, makeReceiptCheck, ReceiptTables } from "./ReceiptDays.ts"

export interface Receipt {
  readonly receiptId: string
  readonly atMs: number
  readonly orgId: string
  readonly userId: string
  readonly keyId: string
  readonly model: string
  readonly usage: Usage
  readonly microDollars: number
}

/** An organization's balance in the database. */
export interface OrgBalance {
  readonly orgId: string
  readonly credits: number
  readonly paymentMethod: boolean
}

interface BalanceRow {
  readonly id: string
  readonly credits_micro_dollars: number
  readonly payment_method: number
}

const balanceOf = (row: BalanceRow): OrgBalance => ({
  orgId: row.id,
  credits: row.credits_micro_dollars,
  paymentMethod: row.payment_method === 1,
})

export interface ReceiptRow {
  readonly receipt_id: string
  readonly at_ms: number
  readonly user_name: string | null
  readonly key_id: string
  readonly model: string
  readonly kind: ModelKind
  readonly input_tokens: number
  readonly output_tokens: number
  readonly audio_ms: number
  readonly micro_dollars: number
}

/** Columns of a ReceiptRow, from the ledger as `l` and its users as `u`. */
export const columnsOfReceipt =
  "l.receipt_id, l.at_ms, u.name AS user_name, l.key_id, l.model, l.kind, l.input_tokens, l.output_tokens, l.audio_ms, l.micro_dollars"

/** The end of an INSERT into `usage_sums`: sums that are there already grow. */
export const addedToSums = `
  ON CONFLICT (org_id, day_ms, model, kind) DO UPDATE SET
    requests = usage_sums.requests + EXCLUDED.requests,
    input_tokens = usage_sums.input_tokens + EXCLUDED.input_tokens,
    output_tokens = usage_sums.output_tokens + EXCLUDED.output_tokens,
    audio_ms = usage_sums.audio_ms + EXCLUDED.audio_ms,
    micro_dollars = usage_sums.micro_dollars + EXCLUDED.micro_dollars`

const receiptOf = (row: ReceiptRow): UsageReceipt => ({
  receiptId: row.receipt_id,
  atMs: row.at_ms,
  user: row.user_name ?? "",
  keyId: row.key_id,
  model: row.model,
  kind: row.kind,
  inputTokens: row.input_tokens,
  outputTokens: row.output_tokens,
  audioMs: row.audio_ms,
  microDollars: row.micro_dollars,
})

interface SumRow {
  readonly model: string
  readonly kind: ModelKind
  readonly requests: number
  readonly input_tokens: number
  readonly output_tokens: number
  readonly audio_ms: number
  readonly micro_dollars: number
}

const sumOf = (row: SumRow): ModelUsage => ({
  model: row.model,
  kind: row.kind,
  requests: row.requests,
  inputTokens: row.input_tokens,
  outputTokens: row.output_tokens,
  audioMs: row.audio_ms,
  microDollars: row.micro_dollars,
})

/** Receipts that become sums in one transaction: about 1 ms of the event loop. A guess. */
const summedAtOnce = 100

/** Which receipts of an organization become sums. */
export interface ReceiptsOf {
  readonly orgId: string
  readonly userId?: string
  /** Only those of this day, milliseconds since 1970, and only if it was exported. */
  readonly exportedDay?: number
}

/** Rows per INSERT: 11 parameters each, far below SQLite's limit of 32,766. */
const rowsPerInsert = 64

const columns =
  "receipt_id, at_ms, org_id, user_id, key_id, model, kind, input_tokens, output_tokens, audio_ms, micro_dollars"

/** In the order of `columns`. */
const valuesOf = ({ usage, ...receipt }: Receipt): ReadonlyArray<string | number> => [
  receipt.receiptId,
  receipt.atMs,
  receipt.orgId,
  receipt.userId,
  receipt.keyId,
  receipt.model,
  usage.kind,
  usage.inputTokens,
  usage.outputTokens,
  usage.audioMs,
  receipt.microDollars,
]

const columnCount = columns.split(", ").length

/** `(?, ?, …), (?, ?, …), …`: a list of parameters for each row. `mark` names a parameter, counted from 1. */
const parameterLists = (rows: number, mark: (nth: number) => string): string =>
  Array.from({ length: rows }, (_, row) => {
    const marks = Array.from({ length: columnCount }, (_, at) => mark(row * columnCount + at + 1))
    return `(${marks.join(", ")})`
  }).join(", ")

/** Micro-dollars by organization. */
export const chargesByOrg = (receipts: Iterable<Receipt>): Map<string, number> => {
  const charges = new Map<string, number>()
  for (const { orgId, microDollars } of receipts) charges.set(orgId, (charges.get(orgId) ?? 0) + microDollars)
  return charges
}

export const makeLedgerRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const leases = yield* makeLeaseRows
  const tables = yield* ReceiptTables
  const check = yield* makeReceiptCheck
  const receiptColumns = sql.literal(columnsOfReceipt)

  const mark = sql.onDialectOrElse({ pg: () => (nth: number) => `$${nth}`, orElse: () => () => "?" })
  /** The rest of INSERT statements by number of rows, at most `rowsPerInsert`: building one costs more than running it. */
  const inserts = new Map<number, string>()
  const insertOf = (table: string, rows: number): string => {
    const known = inserts.get(rows)
    const rest =
      known ??
      `(${columns}) VALUES ${parameterLists(rows, mark)} ON CONFLICT (receipt_id) DO NOTHING RETURNING receipt_id`
    if (known === undefined) inserts.set(rows, rest)
    return `INSERT INTO ${table} ${rest}`
  }

  /**
   * Inserts receipts and returns the ids of the new ones. A receipt that exists is neither written nor charged again.
   */
  const insert = (table: string, receipts: ReadonlyArray<Receipt>) =>
    Effect.map(sql.unsafe(insertOf(table, receipts.length), receipts.flatMap(valuesOf)).values, (rows) =>
      rows.map(([receiptId]) => receiptId),
    )

  /** A balance below 0 is what an invoiced organization owes. A prepaid one was refused before (see Balance). */
  const charge = (orgId: string, microDollars: number) =>
    sql<BalanceRow>`
      UPDATE orgs SET credits_micro_dollars = credits_micro_dollars - ${microDollars}
      WHERE id = ${orgId} RETURNING id, credits_micro_dollars, payment_method`

  const chargeAll = Effect.fnUntraced(function* (charges: ReadonlyMap<string, number>) {
    const rows: Array<BalanceRow> = []
    for (const [orgId, microDollars] of charges) rows.push(...(yield* charge(orgId, microDollars)))
    return rows
  })

  /** Inserts receipts and returns what the new ones cost. An organization whose receipts all existed is charged 0. */
  const insertAll = Effect.fnUntraced(function* (receipts: ReadonlyArray<Receipt>) {
    const fresh = new Set<unknown>()
    for (const [table, ofTable] of Map.groupBy(receipts, yield* tables)) {
      for (const some of Arr.chunksOf(ofTable, rowsPerInsert)) {
        for (const id of yield* insert(table, some)) fresh.add(id)
      }
    }
    // `delete` returns true once per id: a receipt that occurs twice in a batch is charged once.
    const charges = chargesByOrg(receipts.filter((receipt) => fresh.delete(receipt.receiptId)))
    for (const { orgId } of receipts) if (!charges.has(orgId)) charges.set(orgId, 0)
    return charges
  })

  const writeAll = (receipts: ReadonlyArray<Receipt>) =>
    Effect.map(Effect.flatMap(insertAll(receipts), chargeAll), (rows) => rows.map(balanceOf))

  const exchangeAll = (receipts: ReadonlyArray<Receipt>, demands: ReadonlyMap<string, Demand>) =>
    Effect.flatMap(insertAll(receipts), (charges) => leases.exchange(charges, demands))

  return {
    leases,

    /** Writes and charges a batch, all or nothing. Returns the new balances of all its organizations. */
    write: (receipts: ReadonlyArray<Receipt>): Effect.Effect<ReadonlyArray<OrgBalance>, SqlError> =>
      sql.withTransaction(writeAll(receipts)),

    /** The same on a store that nodes share: charges this node's leases too, and carries out its demands. */
    exchange: (
      receipts: ReadonlyArray<Receipt>,
      demands: ReadonlyMap<string, Demand>,
    ): Effect.Effect<ReadonlyMap<string, LeaseAnswer>, SqlError> =>
      sql.withTransaction(exchangeAll(receipts, demands)),

    /** `writeIf` on such a store. */
    exchangeIf: (receipt: Receipt, change: Effect.Effect<boolean, SqlError>) =>
      sql.withTransaction(
        Effect.flatMap(change, (changed) => (changed ? exchangeAll([receipt], new Map()) : Effect.undefined)),
      ),

    /**
     * Writes and charges one receipt together with `change`, all or nothing. If `change` gives false, nothing is written and the result
     * is undefined.
     */
    writeIf: (receipt: Receipt, change: Effect.Effect<boolean, SqlError>) =>
      sql.withTransaction(
        Effect.flatMap(change, (changed) => (changed ? writeAll([receipt]) : Effect.undefined)),
      ),

    balance: (orgId: string) =>
      Effect.map(
        sql<BalanceRow>`SELECT id, credits_micro_dollars, payment_method FROM orgs WHERE id = ${orgId}`,
        ([row]) => row && balanceOf(row),
      ),

    /** The receipt of an id, if it is the organization's. */
    receipt: (orgId: string, receiptId: string) =>
      Effect.map(
        sql<ReceiptRow>`
          SELECT ${receiptColumns} FROM usage_ledger l LEFT JOIN users u ON u.id = l.user_id
          WHERE l.receipt_id = ${receiptId} AND l.org_id = ${orgId}`,
        (rows) => rows.map(receiptOf),
      ),

    /** Single receipts, newest first. */
    receipts: (orgId: string, sinceMs: number, atMost: number) =>
      Effect.map(
        sql<ReceiptRow>`
          SELECT ${receiptColumns} FROM usage_ledger l LEFT JOIN users u ON u.id = l.user_id
          WHERE l.org_id = ${orgId} AND l.at_ms >= ${sinceMs}
          ORDER BY l.at_ms DESC, l.receipt_id LIMIT ${atMost}`,
        (rows) => rows.map(receiptOf),
      ),

    /** Sums by model, highest cost first. A day whose receipts are sums counts whole if it has the time in it. */
    usage: (orgId: string, sinceMs: number) =>
      Effect.map(
        sql<SumRow>`
          SELECT model, kind, SUM(requests) AS requests, SUM(input_tokens) AS input_tokens,
                 SUM(output_tokens) AS output_tokens, SUM(audio_ms) AS audio_ms, SUM(micro_dollars) AS micro_dollars
          FROM (
            SELECT model, kind, COUNT(*) AS requests, SUM(input_tokens) AS input_tokens,
                   SUM(output_tokens) AS output_tokens, SUM(audio_ms) AS audio_ms,
                   SUM(micro_dollars) AS micro_dollars
            FROM usage_ledger WHERE org_id = ${orgId} AND at_ms >= ${sinceMs} GROUP BY model, kind
            UNION ALL
            SELECT model, kind, requests, input_tokens, output_tokens, audio_ms, micro_dollars
            FROM usage_sums WHERE org_id = ${orgId} AND day_ms >= ${dayOf(sinceMs)}
          ) AS used
          GROUP BY model, kind ORDER BY micro_dollars DESC, model, kind`,
        (rows) => rows.map(sumOf),
      ),

    /** Sums by model of organizations that were deleted, all together. */
    deletedUsage: Effect.map(
      sql<SumRow>`
        SELECT model, kind, SUM(requests) AS requests, SUM(input_tokens) AS input_tokens,
               SUM(output_tokens) AS output_tokens, SUM(audio_ms) AS audio_ms, SUM(micro_dollars) AS micro_dollars
        FROM usage_sums WHERE org_id NOT IN (SELECT id FROM orgs)
        GROUP BY model, kind ORDER BY micro_dollars DESC, model, kind`,
      (rows) => rows.map(sumOf),
    ),

    /** Replaces receipts by sums, a few in each transaction. Returns the number of receipts. */
    summarize: Effect.fnUntraced(function* ({ exportedDay, orgId, userId }: ReceiptsOf) {
      const chosen = sql.and([
        sql`org_id = ${orgId}`,
        ...(userId === undefined ? [] : [sql`user_id = ${userId}`]),
        ...(exportedDay === undefined
          ? []
          : [
              sql`at_ms >= ${exportedDay} AND at_ms < ${exportedDay + dayMs}
                AND EXISTS (SELECT 1 FROM receipt_exports WHERE day_ms = ${exportedDay} AND state = 'exported')`,
            ]),
      ])
      // Of a day that is exported the trigger is there.
      if (exportedDay === undefined) yield* check
      const youngest = (yield* Clock.currentTimeMillis) - foldedIdMs
      /** Keeps ids of receipts that a node may still have in a file. */
      const keepIds = (taken: ReadonlyArray<ReceiptRow>) => {
        const young = taken.filter((row) => Number(row.at_ms) > youngest)
        if (young.length === 0) return Effect.void
        const rows = JSON.stringify(
          young.map((row) => ({ id: row.receipt_id, day: dayOf(Number(row.at_ms)) })),
        )
        return sql.onDialectOrElse({
          pg: () =>
            Effect.asVoid(sql`
              INSERT INTO folded_receipts (receipt_id, day_ms)
              SELECT id, day FROM jsonb_to_recordset(${rows}::text::jsonb) AS folded (id TEXT, day BIGINT)
              ON CONFLICT DO NOTHING`),
          orElse: () => Effect.void,
        })
      }
      const some = sql.withTransaction(
        Effect.gen(function* () {
          const taken = yield* sql<ReceiptRow>`
            DELETE FROM usage_ledger WHERE receipt_id IN (
              SELECT receipt_id FROM usage_ledger WHERE ${chosen} LIMIT ${summedAtOnce})
            RETURNING receipt_id, at_ms, '' AS user_name, key_id, model, kind, input_tokens, output_tokens,
                      audio_ms, micro_dollars`
          const sums = new Map<string, SumRow & { readonly day: number }>()
          for (const row of taken) {
            const day = dayOf(Number(row.at_ms))
            const id = `${day} ${row.kind} ${row.model}`
            const sum = sums.get(id)
            sums.set(id, {
              day,
              model: row.model,
              kind: row.kind,
              requests: (sum?.requests ?? 0) + 1,
              input_tokens: (sum?.input_tokens ?? 0) + Number(row.input_tokens),
              output_tokens: (sum?.output_tokens ?? 0) + Number(row.output_tokens),
              audio_ms: (sum?.audio_ms ?? 0) + Number(row.audio_ms),
              micro_dollars: (sum?.micro_dollars ?? 0) + Number(row.micro_dollars),
            })
          }
          for (const sum of sums.values()) {
            yield* sql`
              INSERT INTO usage_sums (org_id, day_ms, model, kind, requests, input_tokens, output_tokens, audio_ms,
                                      micro_dollars)
              VALUES (${orgId}, ${sum.day}, ${sum.model}, ${sum.kind}, ${sum.requests}, ${sum.input_tokens},
                      ${sum.output_tokens}, ${sum.audio_ms}, ${sum.micro_dollars})
              ${sql.literal(addedToSums)}`
          }
          yield* keepIds(taken)
          return taken.length
        }),
      )
      for (let summed = 0; ; ) {
        const count = yield* some
        summed += count
        if (count < summedAtOnce) return summed
        yield* Effect.sleep(0)
      }
    }),
  }
})

export type LedgerRows = Effect.Success<typeof makeLedgerRows>
