// Leases of prepaid money: what each node of a shared store may spend of an organization's balance without asking. A lease is
// still part of `credits_micro_dollars`; `leased_micro_dollars` is the sum of the organization's leases, so that one row says how
// much is free. A statement that changes a lease follows one that has locked the organization's row. SQLite has one node and uses neither.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`ALTER TABLE orgs ADD COLUMN leased_micro_dollars BIGINT NOT NULL DEFAULT 0`

  yield* sql`CREATE TABLE leases (
    org_id TEXT NOT NULL,
    node_id TEXT NOT NULL,
    micro_dollars BIGINT NOT NULL,
    PRIMARY KEY (org_id, node_id)
  )`
  yield* sql`CREATE INDEX leases_by_node ON leases (node_id)`
})
