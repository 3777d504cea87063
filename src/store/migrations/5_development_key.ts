// Marks the development key, so that it can be refused where it is not accepted, and gives its organization a visible
// credit of 100 USD instead of a payment method. An earlier version did not mark the key; it is recognised by its
// creation within 200 ms of the store's first organization, `dev`. (Two commands typed by hand are farther apart.) A
// key that took longer is marked when a node starts on the data directory that holds the key's file (DevKey).
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE api_keys ADD COLUMN development SMALLINT NOT NULL DEFAULT 0`

  yield* sql`
    UPDATE api_keys SET development = 1 WHERE id IN (
      SELECT k.id FROM api_keys k JOIN orgs o ON o.id = k.org_id JOIN users u ON u.id = k.user_id
      WHERE o.name = 'dev' AND o.payment_method = 1 AND u.name = 'default' AND k.scope = 'read-write'
        AND k.created_at_ms - o.created_at_ms BETWEEN 0 AND 200
        AND NOT EXISTS (SELECT 1 FROM orgs earlier WHERE earlier.created_at_ms < o.created_at_ms)
        AND NOT EXISTS (SELECT 1 FROM api_keys other WHERE other.org_id = o.id AND other.created_at_ms < k.created_at_ms))`

  // A debt (balance below zero) is dropped; existing credit is kept.
  yield* sql`
    UPDATE orgs SET payment_method = 0,
      credits_micro_dollars = 100000000 + CASE WHEN credits_micro_dollars > 0 THEN credits_micro_dollars ELSE 0 END
    WHERE payment_method = 1 AND id IN (SELECT org_id FROM api_keys WHERE development = 1)`
})
