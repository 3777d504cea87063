// Answers kept for requests with an Idempotency-Key: one row per answer and its body in parts, so that no statement
// writes more than one part. An answer is valid only once its row is complete.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`CREATE TABLE answers (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    status SMALLINT NOT NULL,
    headers TEXT NOT NULL,
    receipt_id TEXT,
    parts BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    kept SMALLINT NOT NULL,
    complete SMALLINT NOT NULL,
    created_at_ms BIGINT NOT NULL
  )`
  yield* sql`CREATE INDEX answers_by_org ON answers (org_id, created_at_ms, size_bytes)`
  yield* sql`CREATE INDEX answers_by_age ON answers (created_at_ms)`

  const bytes = sql.literal(sql.onDialectOrElse({ pg: () => "BYTEA", orElse: () => "BLOB" }))
  yield* sql`CREATE TABLE answer_parts (
    answer_id TEXT NOT NULL,
    part BIGINT NOT NULL,
    bytes ${bytes} NOT NULL,
    PRIMARY KEY (answer_id, part)
  )`
})
