// The condition of statements that write something for an organization or a user: none of them was deleted. What was on its way
// when a deletion began, such as the answer of a request that still ran, must not be kept after it.
import type { SqlClient } from "effect/sql/SqlClient"

/** SQL that is true if no deletion names any of these ids. */
export const isKept = (sql: SqlClient, ids: ReadonlyArray<string>) =>
  sql`NOT EXISTS (SELECT 1 FROM deletions WHERE ${sql.in("deletions.id", ids)})`
