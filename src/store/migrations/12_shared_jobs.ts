// Transcription jobs that any node of a shared store may do, because their uploads lie where all nodes reach them (`shared` = 1). Their
// `node_id` is the node that works at them, and empty while they wait. Each take raises `attempt`, which every later change by the
// worker names. `progress` (JSON) is where the next worker goes on; `heard_samples` is how much of the audio it holds.
// `job_turns` has, by organization, when it was served last: the larger, the later.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`ALTER TABLE transcription_jobs ADD COLUMN shared SMALLINT NOT NULL DEFAULT 0`
  yield* sql`ALTER TABLE transcription_jobs ADD COLUMN upload_bytes BIGINT NOT NULL DEFAULT 0`
  yield* sql`ALTER TABLE transcription_jobs ADD COLUMN upload_sha256 TEXT NOT NULL DEFAULT ''`
  yield* sql`ALTER TABLE transcription_jobs ADD COLUMN attempt BIGINT NOT NULL DEFAULT 0`
  yield* sql`ALTER TABLE transcription_jobs ADD COLUMN progress TEXT`
  yield* sql`ALTER TABLE transcription_jobs ADD COLUMN heard_samples BIGINT NOT NULL DEFAULT 0`

  yield* sql`CREATE TABLE job_turns (
    org_id TEXT PRIMARY KEY,
    served BIGINT NOT NULL
  )`
  yield* sql`CREATE INDEX job_turns_by_served ON job_turns (served)`
})
