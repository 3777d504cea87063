// On SQLite texts stand behind padding (Padding.ts), so that the deletion of a row leaves nothing of them. What earlier versions have left
// in unused parts of the file goes when the whole file is written anew, at the first deletion (CleanFile.ts). Keys are found by their
// user, which the deletion of users needs.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`CREATE INDEX api_keys_by_user ON api_keys (user_id)`

  yield* sql.onDialectOrElse({
    pg: () => sql`ALTER TABLE answer_parts ADD COLUMN padding BYTEA NOT NULL DEFAULT ''`,
    orElse: () =>
      Effect.gen(function* () {
        // The column has to be before `bytes`.
        yield* sql`CREATE TABLE padded_parts (
          answer_id TEXT NOT NULL,
          part BIGINT NOT NULL,
          padding BLOB NOT NULL,
          bytes BLOB NOT NULL,
          PRIMARY KEY (answer_id, part)
        )`
        yield* sql`
          INSERT INTO padded_parts (answer_id, part, padding, bytes)
          SELECT answer_id, part, zeroblob(4096), bytes FROM answer_parts`
        yield* sql`DROP TABLE answer_parts`
        yield* sql`ALTER TABLE padded_parts RENAME TO answer_parts`
        // Columns with texts follow these two.
        const blanks = " ".repeat(4096)
        yield* sql`UPDATE transcription_jobs SET options = ${blanks} || options`
        yield* sql`UPDATE client_secrets SET terms = ${blanks} || terms`
        yield* sql`INSERT INTO meta (name, value) SELECT 'whole_rewrite', 'needed' WHERE EXISTS (SELECT 1 FROM orgs)`
      }),
  })
})
