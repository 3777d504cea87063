// Client secrets of conversations: which key made each, until when it opens sessions, and how these begin (JSON). Only digests
// of the secrets are kept.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`CREATE TABLE client_secrets (
    digest TEXT PRIMARY KEY,
    key_id TEXT NOT NULL,
    org_id TEXT NOT NULL,
    terms TEXT NOT NULL,
    expires_at_ms BIGINT NOT NULL
  )`
  yield* sql`CREATE INDEX client_secrets_by_org ON client_secrets (org_id, expires_at_ms)`
  yield* sql`CREATE INDEX client_secrets_by_end ON client_secrets (expires_at_ms)`
})
