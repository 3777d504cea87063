// Transcription jobs: one row from acceptance until a day after the end. The row is also the queue entry, so no second
// record can disagree about what is left to do.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`CREATE TABLE transcription_jobs (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    model TEXT NOT NULL,
    status TEXT NOT NULL,
    options TEXT NOT NULL,
    upload_path TEXT NOT NULL,
    decoded_ms BIGINT,
    not_before_ms BIGINT NOT NULL,
    note TEXT,
    transcript TEXT,
    accepted_at_ms BIGINT NOT NULL,
    finished_at_ms BIGINT
  )`
  yield* sql`CREATE INDEX transcription_jobs_by_status ON transcription_jobs (status, org_id, accepted_at_ms)`
  yield* sql`CREATE INDEX transcription_jobs_by_end ON transcription_jobs (finished_at_ms)`
})
