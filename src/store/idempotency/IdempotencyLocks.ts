// Locks of idempotent requests between nodes: while one node answers a request with an Idempotency-Key, no other node
// answers it. Within one process the api keeps its own locks, so nothing is written here unless the store is shared.
import { Effect, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { Presence, stillDead } from "../nodes/Presence.ts"
import type { StoreClock } from "../sql/StoreClock.ts"
import { StoreNode } from "../sql/StoreNode.ts"

/** Bound of locks that could not be released because the database was down. They are released when it is back. */
const maxUnreleased = 10_000
const releaseEveryMs = 5_000

/**
 * How long a node's counter has stood still when its locks no longer hold. Longer than until it counts as dead: a node that was only cut
 * off from the database may still answer the request. A guess.
 */
const lapsedMs = 30_000

export const makeIdempotencyLocks = Effect.fnUntraced(function* (now: StoreClock) {
  const sql = yield* SqlClient.SqlClient
  const node = yield* StoreNode
  const presence = yield* Presence
  const unreleased = new Set<string>()

  const give = (id: string) => sql`DELETE FROM answer_claims WHERE id = ${id} AND node_id = ${node}`

  if (node !== "") {
    // Locks from before this node's restart.
    yield* Effect.orDie(sql`DELETE FROM answer_claims WHERE node_id = ${node}`)
    const releaseLate = Effect.forEach(
      [...unreleased],
      (id) => Effect.tap(give(id), () => Effect.sync(() => unreleased.delete(id))),
      { discard: true },
    )
    yield* Effect.suspend(() => Effect.ignore(releaseLate)).pipe(
      Effect.repeat(Schedule.spaced(releaseEveryMs)),
      Effect.forkScoped,
    )
  }

  const claim = Effect.fnUntraced(function* (id: string, digest: string) {
    if (node === "") return undefined
    unreleased.delete(id)
    const nowMs = yield* now
    const dead = (yield* presence.dead).filter(({ stillMs }) => stillMs >= lapsedMs)
    // A lock of this node itself is left over from a failed release: the process's own lock was checked before.
    const mine = yield* sql`
      INSERT INTO answer_claims (id, digest, node_id, claimed_at_ms)
      VALUES (${id}, ${digest}, ${node}, ${nowMs})
      ON CONFLICT (id) DO UPDATE
        SET digest = EXCLUDED.digest, node_id = EXCLUDED.node_id, claimed_at_ms = EXCLUDED.claimed_at_ms
        WHERE answer_claims.node_id = EXCLUDED.node_id
          OR answer_claims.node_id IN (${stillDead(sql, dead)})
          OR NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.id = answer_claims.node_id)
      RETURNING id`
    if (mine.length > 0) return undefined
    const [other] = yield* sql<{ readonly digest: string }>`SELECT digest FROM answer_claims WHERE id = ${id}`
    // The other node released its lock between the two statements. Its answer is stored by now; a retry finds it.
    return other?.digest ?? digest
  }, Effect.orDie)

  const release = (id: string): Effect.Effect<void> =>
    node === ""
      ? Effect.void
      : Effect.catch(Effect.asVoid(give(id)), () =>
          Effect.sync(() => {
            if (unreleased.size < maxUnreleased) unreleased.add(id)
          }),
        )

  return {
    claim,
    release,
    /** Removes locks of nodes that went away and that no request asked for again. */
    purge: (beforeMs: number) =>
      node === "" ? Effect.void : sql`DELETE FROM answer_claims WHERE claimed_at_ms <= ${beforeMs}`,
  }
})
