// The account tables in SQL: organizations, users and keys. Rows are converted to records; nothing is decided here
// beyond what a statement decides. Keys are only known by their digest.
import { randomBytes } from "node:crypto"
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { base62 } from "#domain/access/ApiKey.ts"
import { databaseNow } from "../sql/StoreNode.ts"

export type Scope = "read-write" | "superadmin"

/** The user, organization and key that a credential stands for. */
export interface Principal {
  readonly keyId: string
  readonly orgId: string
  readonly orgName: string
  readonly userId: string
  readonly userName: string
  readonly scope: Scope
  /** True for the development key, which only some addresses may use. */
  readonly development: boolean
  /** When the session token expires, milliseconds since 1970. Absent for API keys. */
  readonly expiresAtMs?: number
}

export interface Org {
  readonly id: string
  readonly name: string
  /** The remaining balance. Negative only where a request used more than its reservation. */
  readonly creditsMicroDollars: number
  readonly paymentMethod: boolean
  readonly createdAtMs: number
}

export interface KeyInfo {
  readonly keyId: string
  readonly prefix: string
  readonly user: string
  readonly scope: Scope
  readonly createdAtMs: number
  readonly revokedAtMs: number | undefined
}

interface OrgRow {
  readonly id: string
  readonly name: string
  readonly credits_micro_dollars: number
  readonly payment_method: number
  readonly created_at_ms: number
}

const orgOf = (row: OrgRow): Org => ({
  id: row.id,
  name: row.name,
  creditsMicroDollars: row.credits_micro_dollars,
  paymentMethod: row.payment_method === 1,
  createdAtMs: row.created_at_ms,
})

interface KeyRow {
  readonly key_id: string
  readonly org_id: string
  readonly org_name: string
  readonly user_id: string
  readonly user_name: string
  readonly scope: Scope
  readonly prefix: string
  readonly development: number
  readonly created_at_ms: number
  readonly revoked_at_ms: number | null
}

/** Client secrets deleted in one statement. A guess: a millisecond. */
const secretsAtOnce = 50

/** 96 random bits: unique without a query. */
const newId = (kind: "org" | "user" | "key"): string => `${kind}_${base62(randomBytes(12), 17)}`

export const makeAccountRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const keys = sql.literal(
    `SELECT k.id AS key_id, k.scope, k.prefix, k.development, k.created_at_ms, k.revoked_at_ms, o.id AS org_id,
            o.name AS org_name, u.id AS user_id, u.name AS user_name
       FROM api_keys k JOIN orgs o ON o.id = k.org_id JOIN users u ON u.id = k.user_id`,
  )
  const livePrincipal = (rows: ReadonlyArray<KeyRow>): Principal | undefined => {
    const row = rows[0]
    if (row === undefined || row.revoked_at_ms !== null) return undefined
    return {
      keyId: row.key_id,
      orgId: row.org_id,
      orgName: row.org_name,
      userId: row.user_id,
      userName: row.user_name,
      scope: row.scope,
      development: row.development === 1,
    }
  }

  /** The key of the HMACs under which credentials are stored. Made at the first start, and kept. */
  const hmacSecret = Effect.gen(function* () {
    const fresh = randomBytes(32).toString("hex")
    yield* sql`INSERT INTO meta (name, value) VALUES ('hmac_secret', ${fresh}) ON CONFLICT (name) DO NOTHING`
    const rows = yield* sql<{ readonly value: string }>`SELECT value FROM meta WHERE name = 'hmac_secret'`
    return Buffer.from(rows[0]?.value ?? fresh, "hex")
  })

  const orgCount = Effect.map(
    sql<{ readonly n: number }>`SELECT COUNT(*) AS n FROM orgs`,
    (rows) => rows[0]?.n ?? 0,
  )

  const findOrg = (name: string) =>
    Effect.map(sql<OrgRow>`SELECT * FROM orgs WHERE name = ${name}`, ([row]) => row && orgOf(row))

  /** The oldest ones. */
  const firstOrgs = (most: number) =>
    Effect.map(sql<OrgRow>`SELECT * FROM orgs ORDER BY created_at_ms, id LIMIT ${most}`, (rows) =>
      rows.map(orgOf),
    )

  /** Creates the organization. Undefined if the name is taken. */
  const insertOrg = Effect.fnUntraced(function* (org: {
    readonly name: string
    readonly creditsMicroDollars: number
    readonly paymentMethod: boolean
  }) {
    const createdAtMs = yield* Clock.currentTimeMillis
    const [row] = yield* sql<OrgRow>`
      INSERT INTO orgs (id, name, credits_micro_dollars, payment_method, created_at_ms)
      VALUES (${newId("org")}, ${org.name}, ${org.creditsMicroDollars}, ${org.paymentMethod ? 1 : 0}, ${createdAtMs})
      ON CONFLICT (name) DO NOTHING RETURNING *`
    return row && orgOf(row)
  })

  /**
   * Adds a credit and returns the organization. Undefined if there is none of this name, or if its balance would exceed
   * `limit`.
   */
  const addCredits = (name: string, microDollars: number, limit: number) =>
    Effect.map(
      sql<OrgRow>`
        UPDATE orgs SET credits_micro_dollars = credits_micro_dollars + ${microDollars}
        WHERE name = ${name} AND credits_micro_dollars + ${microDollars} <= ${limit} RETURNING *`,
      ([row]) => row && orgOf(row),
    )

  const insertKey = Effect.fnUntraced(function* (key: {
    readonly orgId: string
    readonly user: string
    readonly scope: Scope
    readonly prefix: string
    readonly digest: string
    readonly development?: boolean
  }) {
    const nowMs = yield* Clock.currentTimeMillis
    yield* sql`
      INSERT INTO users (id, org_id, name, created_at_ms)
      VALUES (${newId("user")}, ${key.orgId}, ${key.user}, ${nowMs}) ON CONFLICT (org_id, name) DO NOTHING`
    const keyId = newId("key")
    yield* sql`
      INSERT INTO api_keys (id, org_id, user_id, scope, prefix, digest, development, created_at_ms)
      SELECT ${keyId}, ${key.orgId}, id, ${key.scope}, ${key.prefix}, ${key.digest}, ${key.development ? 1 : 0}, ${nowMs}
      FROM users WHERE org_id = ${key.orgId} AND name = ${key.user}`
    return keyId
  })

  /**
   * Marks the live key with this digest as the development key and returns its organization. A key that was not marked
   * yet was made by an earlier version: its organization then loses its payment method and gets `credits`, as in the
   * fifth migration.
   */
  const markDevelopment = Effect.fnUntraced(function* (digest: string, devOrg: string, credits: number) {
    const unmarked = yield* sql<{ readonly org_id: string }>`
      UPDATE api_keys SET development = 1
      WHERE digest = ${digest} AND development = 0 AND revoked_at_ms IS NULL RETURNING org_id`
    if (unmarked[0] !== undefined) {
      yield* sql`
        UPDATE orgs SET payment_method = 0, credits_micro_dollars =
          CASE WHEN credits_micro_dollars > 0 THEN credits_micro_dollars ELSE 0 END + ${credits}
        WHERE id = ${unmarked[0].org_id} AND name = ${devOrg} AND payment_method = 1`
    }
    const [row] = yield* sql<OrgRow>`
      SELECT o.* FROM orgs o JOIN api_keys k ON k.org_id = o.id WHERE k.digest = ${digest} AND k.revoked_at_ms IS NULL`
    return row && orgOf(row)
  })

  const principalByDigest = (digest: string) =>
    Effect.map(sql<KeyRow>`${keys} WHERE k.digest = ${digest}`, livePrincipal)
  const principalById = (keyId: string) =>
    Effect.map(sql<KeyRow>`${keys} WHERE k.id = ${keyId}`, livePrincipal)

  const keysOf = (orgId: string) =>
    Effect.map(sql<KeyRow>`${keys} WHERE k.org_id = ${orgId} ORDER BY k.created_at_ms, k.id`, (rows) =>
      rows.map(
        (row): KeyInfo => ({
          keyId: row.key_id,
          prefix: row.prefix,
          user: row.user_name,
          scope: row.scope,
          createdAtMs: row.created_at_ms,
          revokedAtMs: row.revoked_at_ms ?? undefined,
        }),
      ),
    )

  /**
   * The key's digest and time of revocation (the first time, if it was revoked before). Undefined if there is no such
   * key.
   */
  const revoke = Effect.fnUntraced(function* (keyId: string) {
    const nowMs = yield* Clock.currentTimeMillis
    const [row] = yield* sql<{ readonly digest: string; readonly revoked_at_ms: number }>`
      UPDATE api_keys SET revoked_at_ms = COALESCE(revoked_at_ms, ${nowMs})
      WHERE id = ${keyId} RETURNING digest, revoked_at_ms`
    return row && { digest: row.digest, revokedAtMs: row.revoked_at_ms }
  })

  /** Those of the keys that are revoked or deleted. */
  const revokedAmong = (keyIds: ReadonlyArray<string>) =>
    Effect.map(
      sql<{ readonly id: string }>`
        SELECT id FROM api_keys WHERE revoked_at_ms IS NULL AND ${sql.in("id", keyIds)}`,
      (rows) => {
        const live = new Set(rows.map((row) => row.id))
        return keyIds.filter((id) => !live.has(id))
      },
    )

  /** The user of that name. */
  const findUser = (orgId: string, name: string) =>
    Effect.map(
      sql<{ readonly id: string }>`SELECT id FROM users WHERE org_id = ${orgId} AND name = ${name}`,
      ([row]) => row?.id,
    )

  /**
   * Begins the deletion of an organization, or of one user of it: its keys are revoked, its name and the names of its users are
   * replaced by their ids, and nothing is written for it any more. Returns its keys.
   */
  const beginDeletion = Effect.fnUntraced(function* (orgId: string, userId?: string) {
    const nowMs = yield* Clock.currentTimeMillis
    const ofUsers = userId === undefined ? sql`org_id = ${orgId}` : sql`id = ${userId}`
    const ofKeys = userId === undefined ? sql`org_id = ${orgId}` : sql`user_id = ${userId}`
    yield* sql`
      INSERT INTO deletions (id, org_id, at_ms, complete) VALUES (${userId ?? orgId}, ${orgId}, ${nowMs}, 0)
      ON CONFLICT (id) DO NOTHING`
    if (userId === undefined) yield* sql`UPDATE orgs SET name = id WHERE id = ${orgId}`
    yield* sql`UPDATE users SET name = id WHERE ${ofUsers}`
    yield* sql`
      INSERT INTO deletions (id, org_id, at_ms, complete)
      SELECT id, org_id, ${nowMs}, 1 FROM api_keys WHERE ${ofKeys} ON CONFLICT (id) DO NOTHING`
    return yield* sql<{ readonly id: string; readonly digest: string; readonly development: number }>`
      UPDATE api_keys SET revoked_at_ms = COALESCE(revoked_at_ms, ${nowMs}), prefix = ''
      WHERE ${ofKeys} RETURNING id, digest, development`
  })

  /** Ends it: its keys, its users and itself. Returns how many of each there were. */
  const endDeletion = Effect.fnUntraced(function* (orgId: string, userId?: string) {
    const ofUsers = userId === undefined ? sql`org_id = ${orgId}` : sql`id = ${userId}`
    const ofKeys = userId === undefined ? sql`org_id = ${orgId}` : sql`user_id = ${userId}`
    const keys = yield* sql`DELETE FROM api_keys WHERE ${ofKeys} RETURNING id`
    const users = yield* sql`DELETE FROM users WHERE ${ofUsers} RETURNING id`
    if (userId === undefined) {
      yield* sql`DELETE FROM orgs WHERE id = ${orgId}`
      yield* sql`DELETE FROM leases WHERE org_id = ${orgId}`
    }
    return { keys: keys.length, users: users.length }
  })

  const completeDeletion = (id: string) => sql`UPDATE deletions SET complete = 1 WHERE id = ${id}`

  /** Deletions of organizations and users since then, milliseconds since 1970; all that are not complete, whenever they began. */
  const deletionsSince = (sinceMs: number) =>
    Effect.map(
      sql<{
        readonly id: string
        readonly org_id: string
        readonly at_ms: number
        readonly complete: number
      }>`
        SELECT id, org_id, at_ms, complete FROM deletions
        WHERE (complete = 0 OR at_ms >= ${sinceMs}) AND id NOT LIKE 'key%'`,
      (rows) =>
        rows.map((row) => ({
          orgId: row.org_id,
          userId: row.id === row.org_id ? undefined : row.id,
          atMs: Number(row.at_ms),
          complete: row.complete === 1,
        })),
    )

  /** Drops the records of complete deletions before then. */
  const forgetDeletions = (beforeMs: number) =>
    sql`DELETE FROM deletions WHERE complete = 1 AND at_ms < ${beforeMs}`

  const orgIds = Effect.map(sql<{ readonly id: string }>`SELECT id FROM orgs`, (rows) =>
    rows.map(({ id }) => id),
  )

  /** Nodes on a shared store that have been seen in the last `withinMs`. */
  const liveNodes = (withinMs: number) =>
    sql.onDialectOrElse({
      pg: () =>
        Effect.map(
          sql<{ readonly id: string }>`
            SELECT id FROM nodes WHERE seen_at_ms > ${sql.literal(databaseNow)} - ${withinMs}::BIGINT`,
          (rows) => rows.map(({ id }) => id),
        ),
      // The one node, which has no name.
      orElse: () => Effect.succeed([""]),
    })

  /** Client secrets of these keys, a few in each statement. Returns their number. */
  const deleteSecrets = Effect.fnUntraced(function* (keyIds: ReadonlyArray<string>) {
    for (let deleted = 0; ; ) {
      const some = yield* sql`
        DELETE FROM client_secrets WHERE digest IN (
          SELECT digest FROM client_secrets WHERE ${sql.in("key_id", keyIds)} LIMIT ${secretsAtOnce})
        RETURNING digest`
      deleted += some.length
      if (some.length < secretsAtOnce) return deleted
      yield* Effect.sleep(0)
    }
  })

  return {
    inTransaction: sql.withTransaction,
    hmacSecret,
    orgCount,
    firstOrgs,
    findOrg,
    insertOrg,
    addCredits,
    insertKey,
    markDevelopment,
    principalByDigest,
    principalById,
    keysOf,
    revoke,
    revokedAmong,
    findUser,
    beginDeletion,
    endDeletion,
    deleteSecrets,
    completeDeletion,
    deletionsSince,
    forgetDeletions,
    orgIds,
    liveNodes,
  }
})
