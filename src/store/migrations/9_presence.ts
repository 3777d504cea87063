// Which nodes of a shared store run: each raises its `beat` at intervals, and a counter that stands still belongs to a node that is gone
// (src/store/nodes). `offer` is what the node can do for others, as JSON. A node of an earlier version leaves `beat` at 0 and
// writes `seen_at_ms` alone.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`ALTER TABLE nodes ADD COLUMN beat BIGINT NOT NULL DEFAULT 0`
  yield* sql`ALTER TABLE nodes ADD COLUMN offer TEXT NOT NULL DEFAULT ''`
})
