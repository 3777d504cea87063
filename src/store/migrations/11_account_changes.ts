// What changed of keys and balances, for nodes that share a store: each asks once a second what is new, instead of reading every key
// and balance that it uses again and again. Triggers write it, so that no statement can forget to. A node sees what was committed since
// its last look, although transactions end in another order than they began: it asks for all that were not visible to that look, by
// the transaction's number. SQLite has one node, which needs none of this.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const onPostgres = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // Of a change of the organization itself, `key_id` and `digest` are empty.
  yield* sql`CREATE TABLE account_changes (
    transaction_id XID8 NOT NULL DEFAULT pg_current_xact_id(),
    at_ms BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT,
    org_id TEXT NOT NULL,
    key_id TEXT NOT NULL DEFAULT '',
    digest TEXT NOT NULL DEFAULT ''
  )`
  yield* sql`CREATE INDEX account_changes_by_transaction ON account_changes (transaction_id)`
  yield* sql`CREATE INDEX account_changes_by_age ON account_changes (at_ms)`

  yield* sql`CREATE FUNCTION note_key_change() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    BEGIN
      INSERT INTO account_changes (org_id, key_id, digest) VALUES (OLD.org_id, OLD.id, OLD.digest);
      RETURN NULL;
    END $$`
  yield* sql`CREATE TRIGGER note_change AFTER UPDATE OR DELETE ON api_keys
    FOR EACH ROW EXECUTE FUNCTION note_key_change()`

  yield* sql`CREATE FUNCTION note_org_change() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    BEGIN
      INSERT INTO account_changes (org_id) VALUES (OLD.id);
      RETURN NULL;
    END $$`
  // Not for charges, which each flush of a node makes.
  yield* sql`CREATE TRIGGER note_change AFTER UPDATE ON orgs FOR EACH ROW
    WHEN (NEW.credits_micro_dollars > OLD.credits_micro_dollars OR NEW.payment_method <> OLD.payment_method)
    EXECUTE FUNCTION note_org_change()`
})

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql.onDialectOrElse({ pg: () => onPostgres, orElse: () => Effect.void })
})
