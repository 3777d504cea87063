// Client secrets: made for a key, found by a connection. Of a secret only a digest under the store's secret is kept. All nodes of a
// store know all secrets.
import { randomBytes } from "node:crypto"
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { digestOf, keyBytes } from "#domain/access/ApiKey.ts"
import { clientSecretFrom, isClientSecret } from "#domain/access/ClientSecret.ts"
import { notWorking, type StoreUnavailable } from "../files/StoreErrors.ts"
import { isKept } from "../sql/DeletedIds.ts"
import { makePadding } from "../sql/Padding.ts"
import { makeAccountRows, type Principal } from "./AccountRows.ts"

/** Secrets of an organization that are valid at a time. A guess: 100 a minute, the default rate, for most of an hour. */
export const maxLiveSecrets = 5_000

/** Expired secrets that the creation of another removes at most, so that its statement is short. */
const removedAtOnce = 100

/** How long an expired secret is known as one, milliseconds. A guess. */
const rememberedMs = 60 * 60_000

interface NewClientSecret {
  readonly principal: Principal
  /** Milliseconds since 1970. */
  readonly expiresAtMs: number
  /** What its sessions begin with; JSON for the api. */
  readonly terms: string
}

export interface FoundSecret {
  /** Names the secret within its store; no credential. */
  readonly id: string
  readonly keyId: string
  readonly expiresAtMs: number
  readonly terms: string
  /** What its sessions have been charged together on all nodes. */
  readonly spentMicroDollars: number
}

interface Row {
  readonly digest: string
  readonly key_id: string
  readonly terms: string
  readonly expires_at_ms: number
  readonly spent_micro_dollars: number
}

export class ClientSecrets extends Context.Service<
  ClientSecrets,
  {
    /** The secret, which is returned only once; or, at the organization's limit, when its first one expires. */
    readonly create: (
      secret: NewClientSecret,
    ) => Effect.Effect<{ readonly value: string } | { readonly fullUntilMs: number }>
    /** Undefined if it was never made, or expired more than an hour ago. If the database cannot be read, the effect dies. */
    readonly find: (value: string) => Effect.Effect<FoundSecret | undefined>
    /** Adds to what its sessions have been charged together; the sum. 0 for a secret that the store has dropped. */
    readonly spend: (id: string, microDollars: number) => Effect.Effect<number, SqlError>
  }
>()("edgewise/store/ClientSecrets") {
  static readonly layer: Layer.Layer<ClientSecrets, StoreUnavailable, SqlClient.SqlClient> = Layer.effect(
    ClientSecrets,
    Effect.suspend(() => make),
  )
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* makeAccountRows
  const secret = yield* Effect.mapError(rows.hmacSecret, notWorking)
  const padding = makePadding(sql)

  const live = (orgId: string, nowMs: number) =>
    Effect.map(
      sql<{ readonly n: number; readonly first: number | null }>`
        SELECT COUNT(*) AS n, MIN(expires_at_ms) AS first FROM client_secrets
        WHERE org_id = ${orgId} AND expires_at_ms > ${nowMs}`,
      ([row]) => ({ count: Number(row?.n ?? 0), firstEndMs: Number(row?.first ?? nowMs) }),
    )

  const create = Effect.fnUntraced(function* ({ expiresAtMs, principal, terms }: NewClientSecret) {
    const nowMs = yield* Clock.currentTimeMillis
    yield* sql`
      DELETE FROM client_secrets WHERE digest IN (
        SELECT digest FROM client_secrets WHERE expires_at_ms < ${nowMs - rememberedMs} LIMIT ${removedAtOnce})`
    const { count, firstEndMs } = yield* live(principal.orgId, nowMs)
    if (count >= maxLiveSecrets) return { fullUntilMs: firstEndMs }
    const value = clientSecretFrom(randomBytes(keyBytes))
    yield* sql`
      INSERT INTO client_secrets (digest, key_id, org_id, terms, expires_at_ms)
      SELECT ${digestOf(secret, value)}, ${principal.keyId}, ${principal.orgId},
             ${padding.json(terms)}, ${expiresAtMs}
      WHERE ${isKept(sql, [principal.orgId, principal.keyId])}`
    return { value }
  })

  const find = (value: string): Effect.Effect<FoundSecret | undefined, SqlError> =>
    isClientSecret(value)
      ? Effect.map(
          sql<Row>`
            SELECT digest, key_id, terms, expires_at_ms, spent_micro_dollars
            FROM client_secrets WHERE digest = ${digestOf(secret, value)}`,
          ([row]) =>
            row && {
              id: row.digest,
              keyId: row.key_id,
              terms: row.terms.trimStart(),
              expiresAtMs: Number(row.expires_at_ms),
              spentMicroDollars: Number(row.spent_micro_dollars),
            },
        )
      : Effect.undefined

  return ClientSecrets.of({
    create: (one) => Effect.orDie(create(one)),
    find: (value) => Effect.orDie(find(value)),
    spend: (id, microDollars) =>
      Effect.map(
        sql<{ readonly spent_micro_dollars: number }>`
          UPDATE client_secrets SET spent_micro_dollars = spent_micro_dollars + ${microDollars}
          WHERE digest = ${id} RETURNING spent_micro_dollars`,
        ([row]) => Number(row?.spent_micro_dollars ?? 0),
      ),
  })
})
