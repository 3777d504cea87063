// The first tables: accounts, balances and the usage ledger. A migration never changes; a later change is a new file.
// The SQL works on SQLite and Postgres (except a column of bytes): BIGINT for counts, money (micro-dollars) and times
// (ms since 1970), SMALLINT for flags, TEXT for ids.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
  )`

  yield* sql`CREATE TABLE orgs (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    credits_micro_dollars BIGINT NOT NULL,
    payment_method SMALLINT NOT NULL,
    created_at_ms BIGINT NOT NULL
  )`

  yield* sql`CREATE TABLE users (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    name TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    UNIQUE (org_id, name)
  )`

  yield* sql`CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    user_id TEXT NOT NULL REFERENCES users (id),
    scope TEXT NOT NULL,
    prefix TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    created_at_ms BIGINT NOT NULL,
    revoked_at_ms BIGINT
  )`
  yield* sql`CREATE INDEX api_keys_by_org ON api_keys (org_id)`

  // No foreign keys: the ledger is history, and one inconsistent row must not keep a whole batch from being written.
  yield* sql`CREATE TABLE usage_ledger (
    receipt_id TEXT PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    org_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    model TEXT NOT NULL,
    kind TEXT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    audio_ms BIGINT NOT NULL,
    micro_dollars BIGINT NOT NULL
  )`
  yield* sql`CREATE INDEX usage_ledger_by_org ON usage_ledger (org_id, at_ms)`
})
