// Turns the newest schema back into an earlier one, for tests of a migration: the store then runs it again.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Undoes the migrations from the eighth on. Tables of earlier ones stay as they are. */
export const beforeDeletions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql.onDialectOrElse({
    pg: () => Effect.andThen(sql`DROP FUNCTION check_receipt CASCADE`, sql`DROP TABLE folded_receipts`),
    orElse: () => sql`DROP TRIGGER late_receipt`,
  })
  yield* sql`DROP TABLE receipt_exports`
  yield* sql`DROP TABLE job_turns`
  for (const column of ["shared", "upload_bytes", "upload_sha256", "attempt", "progress", "heard_samples"]) {
    yield* sql`ALTER TABLE transcription_jobs DROP COLUMN ${sql(column)}`
  }
  for (const column of ["beat", "offer"]) yield* sql`ALTER TABLE nodes DROP COLUMN ${sql(column)}`
  yield* sql.onDialectOrElse({
    pg: () =>
      Effect.andThen(
        sql`DROP FUNCTION note_key_change, note_org_change CASCADE`,
        sql`DROP TABLE account_changes`,
      ),
    orElse: () => Effect.void,
  })
  yield* sql`DROP TABLE leases`
  yield* sql`ALTER TABLE orgs DROP COLUMN leased_micro_dollars`
  yield* sql`DROP INDEX api_keys_by_user`
  yield* sql`ALTER TABLE answer_parts DROP COLUMN padding`
  yield* sql`DROP TABLE deletions`
  yield* sql`DROP TABLE usage_sums`
  yield* sql`ALTER TABLE answers DROP COLUMN user_id`
  yield* sql`ALTER TABLE nodes DROP COLUMN directory`
  yield* sql`DELETE FROM migrations WHERE migration_id >= 8`
})
