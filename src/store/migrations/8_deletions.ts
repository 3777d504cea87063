// What a deletion needs. `deletions` names organizations and users that are gone or on their way out, by their random ids, so that
// nothing is written for them any more and an interrupted deletion is finished. `usage_sums` keeps, for accounting, what deleted
// receipts add up to, by day (UTC) and model. Kept answers know their user. A node's row knows its data directory.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`CREATE TABLE deletions (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    complete SMALLINT NOT NULL
  )`

  yield* sql`CREATE TABLE usage_sums (
    org_id TEXT NOT NULL,
    day_ms BIGINT NOT NULL,
    model TEXT NOT NULL,
    kind TEXT NOT NULL,
    requests BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    audio_ms BIGINT NOT NULL,
    micro_dollars BIGINT NOT NULL,
    PRIMARY KEY (org_id, day_ms, model, kind)
  )`

  // Empty in rows of earlier versions, which expire.
  yield* sql`ALTER TABLE answers ADD COLUMN user_id TEXT NOT NULL DEFAULT ''`

  // `ended_elsewhere` may be 2: the job's node removes the row as well.
  yield* sql`DROP INDEX transcription_jobs_ended_elsewhere`
  yield* sql`CREATE INDEX transcription_jobs_ended_elsewhere ON transcription_jobs (node_id) WHERE ended_elsewhere > 0`

  yield* sql`ALTER TABLE nodes ADD COLUMN directory TEXT NOT NULL DEFAULT ''`
})
