// Turns the newest schema back into an earlier one, for tests of a migration: the store then runs it again.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Undoes the eighth migration and the ninth. Tables of earlier ones stay as they are. */
export const beforeDeletions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`DROP INDEX api_keys_by_user`
  yield* sql`ALTER TABLE answer_parts DROP COLUMN padding`
  yield* sql`DROP TABLE deletions`
  yield* sql`DROP TABLE usage_sums`
  yield* sql`ALTER TABLE answers DROP COLUMN user_id`
  yield* sql`ALTER TABLE nodes DROP COLUMN directory`
  yield* sql`DELETE FROM migrations WHERE migration_id >= 8`
})
