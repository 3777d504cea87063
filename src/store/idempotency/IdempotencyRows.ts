// Answers of idempotent requests in SQL. Bodies are written and read in parts, one per statement, with a tick of the
// event loop in between.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { isKept } from "../sql/DeletedIds.ts"
import { makePadding } from "../sql/Padding.ts"

/** Bytes of a body in one statement: 0.3 ms of the event loop (median, busy test machine). */
const partBytes = 256 * 1024

export interface StoredAnswer {
  /** Digest of the request. */
  readonly digest: string
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly receiptId: string | undefined
  /** Undefined if it was too large to be kept. */
  readonly body: Uint8Array | undefined
}

export interface AnswerSize {
  readonly id: string
  readonly orgId: string
  readonly sizeBytes: number
  readonly parts: number
}

interface Row {
  readonly digest: string
  readonly status: number
  readonly headers: string
  readonly receipt_id: string | null
  readonly parts: number
  readonly kept: number
}

interface SizeRow {
  readonly id: string
  readonly org_id: string
  readonly size_bytes: number
  readonly parts: number
}

const sizeOf = (row: SizeRow): AnswerSize => ({
  id: row.id,
  orgId: row.org_id,
  sizeBytes: row.size_bytes,
  parts: row.parts,
})

/** Yields to other fibers. */
const tick = Effect.sleep(0)

export const makeAnswerRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const padding = makePadding(sql)

  const body = Effect.fnUntraced(function* (id: string, parts: number) {
    const pieces: Array<Uint8Array> = []
    for (let part = 0; part < parts; part++) {
      if (part > 0) yield* tick
      const [row] = yield* sql<{ readonly bytes: Uint8Array }>`
        SELECT bytes FROM answer_parts WHERE answer_id = ${id} AND part = ${part}`
      if (row === undefined) return undefined
      pieces.push(row.bytes)
    }
    return pieces.length === 1 ? pieces[0] : Buffer.concat(pieces)
  })

  const head = (id: string, sinceMs: number) =>
    Effect.map(
      sql<Row>`
        SELECT digest, status, headers, receipt_id, parts, kept FROM answers
        WHERE id = ${id} AND complete = 1 AND created_at_ms > ${sinceMs}`,
      ([row]) => row,
    )

  const remove = Effect.fnUntraced(function* ({ id, parts }: AnswerSize) {
    // First mark the answer as incomplete, so that no reader sees a part missing.
    yield* sql`UPDATE answers SET complete = 0 WHERE id = ${id}`
    for (let part = 0; part < parts; part++) {
      if (part > 0) yield* tick
      yield* sql`DELETE FROM answer_parts WHERE answer_id = ${id} AND part = ${part}`
    }
    yield* sql`DELETE FROM answers WHERE id = ${id}`
  })

  /**
   * Postgres: a transaction, so that other nodes never see half an answer. SQLite: none, because its only lock must not
   * be held across ticks of the event loop.
   */
  const whole = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    sql.onDialectOrElse({ pg: () => sql.withTransaction(effect), orElse: () => effect })

  return {
    has: (id: string, sinceMs: number) => Effect.map(head(id, sinceMs), (row) => row !== undefined),

    find: Effect.fnUntraced(function* (id: string, sinceMs: number) {
      const row = yield* head(id, sinceMs)
      if (row === undefined) return undefined
      const found: StoredAnswer = {
        digest: row.digest,
        status: row.status,
        headers: JSON.parse(row.headers) as Record<string, string>,
        receiptId: row.receipt_id ?? undefined,
        body: row.kept === 1 ? yield* body(id, row.parts) : undefined,
      }
      return found
    }),

    /** False if a row with this id exists, or if its organization or user was deleted. */
    insert: Effect.fnUntraced(function* (
      { id, orgId, userId }: { readonly id: string; readonly orgId: string; readonly userId: string },
      answer: StoredAnswer,
      atMs: number,
    ) {
      const bytes = answer.body ?? new Uint8Array(0)
      const parts = Math.ceil(bytes.length / partBytes)
      const inserted = yield* sql`
        INSERT INTO answers (id, org_id, user_id, digest, status, headers, receipt_id, parts, size_bytes, kept,
                             complete, created_at_ms)
        SELECT ${id}, ${orgId}, ${userId}, ${answer.digest}, ${answer.status}, ${JSON.stringify(answer.headers)},
               ${answer.receiptId ?? null}, ${parts}, ${bytes.length}, ${answer.body === undefined ? 0 : 1}, 0,
               ${atMs}
        WHERE ${isKept(sql, [orgId, userId])}
        ON CONFLICT (id) DO NOTHING RETURNING id`
      if (inserted.length === 0) return false
      for (let part = 0; part < parts; part++) {
        if (part > 0) yield* tick
        const piece = bytes.subarray(part * partBytes, (part + 1) * partBytes)
        // The answer may have been deleted since the part before.
        yield* sql`
          INSERT INTO answer_parts (answer_id, part, padding, bytes)
          SELECT answers.id, ${part}, ${padding.bytes}, ${piece} FROM answers WHERE answers.id = ${id}`
      }
      yield* sql`UPDATE answers SET complete = 1 WHERE id = ${id}`
      return true
    }, whole),

    remove: (answer: AnswerSize) => whole(remove(answer)),

    sizeOf: (id: string) =>
      Effect.map(
        sql<SizeRow>`SELECT id, org_id, size_bytes, parts FROM answers WHERE id = ${id}`,
        ([row]) => row && sizeOf(row),
      ),

    /** Oldest first, of one organization or of all. */
    oldest: (orgId: string, atMost: number) =>
      Effect.map(
        sql<SizeRow>`
          SELECT id, org_id, size_bytes, parts FROM answers WHERE org_id = ${orgId}
          ORDER BY created_at_ms LIMIT ${atMost}`,
        (rows) => rows.map(sizeOf),
      ),

    /** Answers of the organization; those of the user alone, and those of no known user, if one is given. */
    of: (orgId: string, userId: string | undefined, atMost: number) =>
      Effect.map(
        sql<SizeRow>`
          SELECT id, org_id, size_bytes, parts FROM answers
          WHERE org_id = ${orgId} AND ${userId === undefined ? sql`1 = 1` : sql`user_id IN (${userId}, '')`}
          LIMIT ${atMost}`,
        (rows) => rows.map(sizeOf),
      ),

    olderThan: (atMs: number, atMost: number) =>
      Effect.map(
        sql<SizeRow>`
          SELECT id, org_id, size_bytes, parts FROM answers WHERE created_at_ms <= ${atMs}
          ORDER BY created_at_ms LIMIT ${atMost}`,
        (rows) => rows.map(sizeOf),
      ),

    totals: sql<{ readonly org_id: string; readonly answers: number; readonly bytes: number }>`
      SELECT org_id, COUNT(*) AS answers, SUM(size_bytes) AS bytes FROM answers GROUP BY org_id`,
  }
})
