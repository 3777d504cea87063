// What nodes on a shared store record for each other: which nodes exist, which one holds a job's upload, and which one
// is answering a request with an Idempotency-Key. On SQLite there is one node without a name, and only the columns of
// jobs are used.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`CREATE TABLE nodes (
    id TEXT PRIMARY KEY,
    seen_at_ms BIGINT NOT NULL
  )`

  yield* sql`ALTER TABLE transcription_jobs ADD COLUMN node_id TEXT NOT NULL DEFAULT ''`
  // 1 while another node has ended the job and the job's own node has not noticed yet.
  yield* sql`ALTER TABLE transcription_jobs ADD COLUMN ended_elsewhere SMALLINT NOT NULL DEFAULT 0`
  yield* sql`CREATE INDEX transcription_jobs_ended_elsewhere ON transcription_jobs (node_id) WHERE ended_elsewhere = 1`

  yield* sql`CREATE TABLE answer_claims (
    id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    node_id TEXT NOT NULL,
    claimed_at_ms BIGINT NOT NULL
  )`
})
