// Leases of prepaid balances in SQL, on PostgreSQL (see the tenth migration). Every change locks the organizations' rows first, in one
// order, and then changes them and the leases in a later statement, which sees what others have committed before the lock.
//
// At any time, for each organization: credits ≥ sum of its leases = `leased_micro_dollars`, and no lease is below zero.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { Presence } from "../nodes/Presence.ts"
import { callChannel } from "../sql/StoreCalls.ts"
import { databaseNow, StoreNode } from "../sql/StoreNode.ts"
import type { Demand, LeaseAnswer } from "./Lease.ts"

/** A node that has not been seen for so long, by the database's clock, has lost its leases. It stops spending them before. */
const deadMs = 10 * 60_000

/** A slice is what is free, divided by this and by the number of nodes: so slices shrink as the money ends. */
const slicesPerNode = 4

interface AnswerRow {
  readonly id: string
  readonly credits_micro_dollars: number
  readonly payment_method: number
  readonly leased_micro_dollars: number
  readonly lease: number
}

export interface NodeLease {
  readonly nodeId: string
  readonly microDollars: number
}

export const makeLeaseRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const node = yield* StoreNode
  const presence = yield* Presence
  const now = sql.literal(databaseNow)

  const lock = (ids: ReadonlyArray<string>) =>
    sql`SELECT id FROM orgs WHERE ${sql.in("id", ids)} ORDER BY id FOR NO KEY UPDATE`

  /** Takes charges from credits and from this node's leases, and carries out demands. Runs within a transaction. */
  const exchange = Effect.fnUntraced(function* (
    charges: ReadonlyMap<string, number>,
    demands: ReadonlyMap<string, Demand>,
  ) {
    const ids = [...new Set([...charges.keys(), ...demands.keys()])]
    yield* lock(ids)
    const list = ids.map((id) => ({ id, amount: charges.get(id) ?? 0, ...demands.get(id) }))
    // `rest`: what stays of the lease after the charges and after what is given back. `free`: credits that no lease holds then.
    const rows = yield* sql<AnswerRow>`
      WITH asked AS (
        SELECT a.id, a.want, o.payment_method, o.leased_micro_dollars AS leased,
               o.credits_micro_dollars - a.amount AS credits, COALESCE(l.micro_dollars, 0) AS had,
               LEAST(GREATEST(0, COALESCE(l.micro_dollars, 0) - a.amount), COALESCE(a.keep, l.micro_dollars, 0)) AS rest
        FROM jsonb_to_recordset(${JSON.stringify(list)}::text::jsonb)
               AS a (id TEXT, amount BIGINT, want BIGINT, keep BIGINT)
        JOIN orgs o ON o.id = a.id
        LEFT JOIN leases l ON l.org_id = a.id AND l.node_id = ${node}
      ), priced AS (
        SELECT *, GREATEST(0, credits - (leased - had + rest)) AS free FROM asked
      ), granted AS (
        SELECT *, rest + CASE
          WHEN want IS NULL OR payment_method = 1 THEN 0
          ELSE LEAST(free, GREATEST(want, free / ${slicesPerNode * presence.living()}::BIGINT))
        END AS lease FROM priced
      ), stored AS (
        INSERT INTO leases (org_id, node_id, micro_dollars)
        SELECT id, ${node}, lease FROM granted WHERE lease > 0 AND lease <> had
        ON CONFLICT (org_id, node_id) DO UPDATE SET micro_dollars = EXCLUDED.micro_dollars
      ), ended AS (
        DELETE FROM leases USING granted
        WHERE leases.org_id = granted.id AND leases.node_id = ${node} AND granted.lease = 0
      )
      UPDATE orgs SET credits_micro_dollars = granted.credits,
                      leased_micro_dollars = granted.leased - granted.had + granted.lease
      FROM granted WHERE orgs.id = granted.id
      RETURNING orgs.id, orgs.credits_micro_dollars, orgs.payment_method, orgs.leased_micro_dollars, granted.lease`
    return new Map(
      rows.map((row): [string, LeaseAnswer] => [
        row.id,
        {
          credits: row.credits_micro_dollars,
          paymentMethod: row.payment_method === 1,
          lease: row.lease,
          leasedElsewhere: row.leased_micro_dollars - row.lease,
        },
      ]),
    )
  })

  /** Ends the leases of a node. Of one that is taken for dead: only if it was not seen again since `seenAtMs`. */
  const end = (nodeId: string, seenAtMs?: number) =>
    sql.withTransaction(
      Effect.gen(function* () {
        const held = yield* sql<{ readonly org_id: string }>`
          SELECT org_id FROM leases WHERE node_id = ${nodeId}`
        if (held.length === 0) return
        yield* lock(held.map(({ org_id }) => org_id))
        const isDead =
          seenAtMs === undefined
            ? sql.literal("")
            : sql`AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = ${nodeId} AND seen_at_ms <> ${seenAtMs})`
        yield* sql`
          WITH ended AS (
            DELETE FROM leases WHERE node_id = ${nodeId} ${isDead} RETURNING org_id, micro_dollars)
          UPDATE orgs SET leased_micro_dollars = leased_micro_dollars - ended.micro_dollars
          FROM ended WHERE orgs.id = ended.org_id`
      }),
    )

  /** Nodes that look dead and hold leases, and when they were seen last (0: the database has forgotten them). */
  const dead = Effect.map(
    sql<{ readonly node_id: string; readonly seen_at_ms: number }>`
      SELECT l.node_id, COALESCE(n.seen_at_ms, 0) AS seen_at_ms
      FROM (SELECT DISTINCT node_id FROM leases) AS l LEFT JOIN nodes n ON n.id = l.node_id
      WHERE COALESCE(n.seen_at_ms, 0) < ${now} - ${deadMs}::BIGINT AND l.node_id <> ${node}`,
    (rows) => new Map(rows.map((row) => [row.node_id, row.seen_at_ms])),
  )

  return {
    exchange,
    /** Ends this node's leases: at its start those of an earlier one, at its end its own. */
    endOwn: end(node),
    /**
     * Ends the leases of nodes that looked dead at the last call as well, and returns those that look dead now. A node is judged
     * twice, because a jump of the database's clock makes all nodes look dead until their next sign of life.
     */
    endDead: (before: ReadonlyMap<string, number>): Effect.Effect<ReadonlyMap<string, number>, SqlError> =>
      Effect.tap(dead, (found) =>
        Effect.forEach(
          [...found].filter(([nodeId, seenAtMs]) => before.get(nodeId) === seenAtMs),
          ([nodeId, seenAtMs]) => end(nodeId, seenAtMs),
          { discard: true },
        ),
      ),
    /** Calls on the other nodes to give back what they can of these organizations. */
    call: (orgIds: ReadonlyArray<string>) =>
      sql`
        SELECT pg_notify(${callChannel}, ${`${node} `} || id)
        FROM jsonb_array_elements_text(${JSON.stringify(orgIds)}::text::jsonb) AS called (id)`,
    /** The organization of a call; undefined if it is this node's own or not one. */
    calledFor: (call: string): string | undefined => {
      const [from, orgId] = call.split(" ")
      return from === node ? undefined : orgId
    },
    /** An organization's leases, the largest first. */
    of: (orgId: string): Effect.Effect<ReadonlyArray<NodeLease>, SqlError> =>
      Effect.map(
        sql<{ readonly node_id: string; readonly micro_dollars: number }>`
          SELECT node_id, micro_dollars FROM leases WHERE org_id = ${orgId} ORDER BY micro_dollars DESC, node_id`,
        (rows) => rows.map((row) => ({ nodeId: row.node_id, microDollars: row.micro_dollars })),
      ),
  }
})
