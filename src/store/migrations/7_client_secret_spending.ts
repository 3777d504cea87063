// What the sessions of a client secret have been charged together, micro-dollars: its limit of cost holds over all of them, on all
// nodes of a store.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`ALTER TABLE client_secrets ADD COLUMN spent_micro_dollars BIGINT NOT NULL DEFAULT 0`
})
