// Who may call: credentials to principals on the hot path, and the administration of organizations, users and keys
// behind the command line. Called by the api's authentication, the auth service and cli; knows no HTTP, and of an API
// key keeps only a digest under the store's secret.
import { randomBytes } from "node:crypto"
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlClient } from "effect/sql"
import { SqlError } from "effect/sql/SqlError"
import { apiKeyFrom, digestOf, isApiKey, keyBytes, prefixOf } from "#domain/access/ApiKey.ts"
import { maxMicroDollars, microDollarsPerDollar } from "#domain/models/Money.ts"
import { monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { Unauthorized } from "#domain/wire/Errors.ts"
import {
  InvalidCredit,
  type InvalidName,
  KeyNotFound,
  notWorking,
  OrgExists,
  OrgNotFound,
  type StoreUnavailable,
} from "../files/StoreErrors.ts"
import { accountName } from "./AccountName.ts"
import { type KeyInfo, makeAccountRows, type Org, type Principal, type Scope } from "./AccountRows.ts"
import { makeRevocations } from "./RevocationWatch.ts"
import { RowCache } from "./RowCache.ts"

export type { KeyInfo, Org, Principal, Scope } from "./AccountRows.ts"

export interface NewKey {
  /** The key itself; this is the only time it is seen. */
  readonly apiKey: string
  readonly keyId: string
  readonly org: string
  readonly user: string
  readonly scope: Scope
}

/** How old an answer about a credential may be. The contract allows 5 s for a change to be noticed. */
const credentialLifeMs = 2000
/** Credentials remembered, about 0.5 KB each; and unknown ones, so that guessing costs the guesser more. Guesses. */
const knownCapacity = 20_000
const unknownCapacity = 20_000

/** What an organization gets when `keys create` makes it on the way: the contract's 5 USD. */
const firstCreditsMicroDollars = 5 * microDollarsPerDollar
/** What the organization of the development key gets. */
const developmentCreditsMicroDollars = 100 * microDollarsPerDollar
const defaultUser = "default"
const developmentOrg = "dev"

type Admin<A, E = never> = Effect.Effect<A, E | StoreUnavailable>

export class Accounts extends Context.Service<
  Accounts,
  {
    /** An API key's principal, at most 2 s out of date. A database that cannot be read is a defect. */
    readonly authenticate: (apiKey: string) => Effect.Effect<Principal, Unauthorized>
    /** The same for a key id, e.g. of a session token that was issued for that key. */
    readonly principalOf: (keyId: string) => Effect.Effect<Principal, Unauthorized>
    /** Completes when the principal's key is revoked, within 5 s, by whatever process; never otherwise. */
    readonly revoked: (principal: Principal) => Effect.Effect<void>
    /** The same by a call; what it gives back must be called when nobody cares any more. */
    readonly onRevoked: (principal: Principal, told: () => void) => () => void
    readonly createOrg: (org: {
      readonly name: string
      readonly creditsMicroDollars?: number
      readonly paymentMethod?: boolean
    }) => Admin<Org, OrgExists | InvalidName | InvalidCredit>
    readonly creditOrg: (name: string, microDollars: number) => Admin<Org, OrgNotFound | InvalidCredit>
    readonly showOrg: (name: string) => Admin<Org, OrgNotFound>
    /** Creates the organization, with 5 USD of credits, and the user where they do not exist. */
    readonly createKey: (key: {
      readonly org: string
      readonly user?: string
      readonly scope?: Scope
    }) => Admin<NewKey, InvalidName>
    /** Whether the store has no organization yet. */
    readonly isEmpty: Admin<boolean>
    /**
     * Registers a key as the development key, with an organization of 100 USD, if the store has no organization yet.
     * The key's organization; undefined where the key is not a live one of this store.
     */
    readonly adoptDevelopmentKey: (apiKey: string) => Admin<Org | undefined>
    /** The same for a key that may be registered already, and is never registered by this. */
    readonly markDevelopmentKey: (apiKey: string) => Admin<Org | undefined>
    readonly listKeys: (org: string) => Admin<ReadonlyArray<KeyInfo>, OrgNotFound>
    /** When the key was revoked: now, or before. */
    readonly revokeKey: (keyId: string) => Admin<{ readonly revokedAtMs: number }, KeyNotFound>
  }
>()("edgewise/store/Accounts") {
  static readonly layer: Layer.Layer<Accounts, StoreUnavailable, SqlClient.SqlClient> = Layer.effect(
    Accounts,
    Effect.suspend(() => make),
  )
}

const orUnavailable = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.mapError(effect, (error) =>
    error instanceof SqlError ? notWorking(error) : (error as Exclude<E, SqlError>),
  )

const make = Effect.gen(function* () {
  const rows = yield* makeAccountRows
  const secretHex = yield* orUnavailable(rows.metaValue("hmac_secret", randomBytes(32).toString("hex")))
  const secret = Buffer.from(secretHex, "hex")
  const known = new RowCache<Principal>({ capacity: knownCapacity, lifeMs: credentialLifeMs })
  const unknown = new RowCache<true>({ capacity: unknownCapacity, lifeMs: credentialLifeMs })
  const revocations = yield* makeRevocations(rows.revokedAmong)
  const invalidKey = Effect.fail(new Unauthorized({ reason: "invalid-key" }))

  // Digests and key ids share the caches: a digest is 64 hex digits, an id starts with `key_`.
  const cached = (
    credential: string,
    read: (credential: string) => Effect.Effect<Principal | undefined, SqlError>,
  ): Effect.Effect<Principal, Unauthorized> =>
    Effect.withFiber((fiber) => {
      const nowMs = monotonicMsOf(fiber.getRef(Clock.Clock))
      const principal = known.get(credential, nowMs)
      if (principal !== undefined) return Effect.succeed(principal)
      if (unknown.get(credential, nowMs)) return invalidKey
      return Effect.flatMap(Effect.orDie(read(credential)), (found) => {
        if (found === undefined) {
          known.delete(credential)
          unknown.set(credential, true, nowMs)
          return invalidKey
        }
        known.set(credential, found, nowMs)
        return Effect.succeed(found)
      })
    })

  const insertKey = (
    apiKey: string,
    key: {
      readonly orgId: string
      readonly user: string
      readonly scope: Scope
      readonly development?: boolean
    },
  ) => rows.insertKey({ ...key, prefix: prefixOf(apiKey), digest: digestOf(secret, apiKey) })

  const markDevelopmentKey = (apiKey: string) =>
    rows.markDevelopment(digestOf(secret, apiKey), developmentOrg, developmentCreditsMicroDollars)

  const needOrg = Effect.fnUntraced(function* (name: string) {
    return (yield* rows.findOrg(name)) ?? (yield* new OrgNotFound({ org: name }))
  })

  return Accounts.of({
    authenticate: (apiKey) =>
      isApiKey(apiKey)
        ? Effect.suspend(() => cached(digestOf(secret, apiKey), rows.principalByDigest))
        : invalidKey,

    principalOf: (keyId) => cached(keyId, rows.principalById),

    revoked: (principal) => revocations.watch(principal.keyId),

    onRevoked: (principal, told) => revocations.listen(principal.keyId, told),

    createOrg: Effect.fn("Accounts.createOrg")(function* (org) {
      const name = yield* accountName(org.name)
      const creditsMicroDollars = org.creditsMicroDollars ?? 0
      if (creditsMicroDollars < 0 || creditsMicroDollars > maxMicroDollars) {
        return yield* new InvalidCredit({ microDollars: creditsMicroDollars })
      }
      const paymentMethod = org.paymentMethod ?? false
      const created = yield* rows.insertOrg({ name, creditsMicroDollars, paymentMethod })
      return created ?? (yield* new OrgExists({ org: name }))
    }, orUnavailable),

    creditOrg: Effect.fn("Accounts.creditOrg")(function* (name, microDollars) {
      if (microDollars <= 0) return yield* new InvalidCredit({ microDollars })
      const credited = yield* rows.addCredits(name, microDollars, maxMicroDollars)
      if (credited !== undefined) return credited
      yield* needOrg(name)
      return yield* new InvalidCredit({ microDollars })
    }, orUnavailable),

    showOrg: Effect.fn("Accounts.showOrg")(function* (name) {
      return yield* needOrg(name)
    }, orUnavailable),

    createKey: Effect.fn("Accounts.createKey")(function* (key) {
      const org = yield* accountName(key.org)
      const user = yield* accountName(key.user ?? defaultUser)
      const scope = key.scope ?? "read-write"
      const apiKey = apiKeyFrom(randomBytes(keyBytes))
      const keyId = yield* rows.inTransaction(
        Effect.gen(function* () {
          const fresh = { name: org, creditsMicroDollars: firstCreditsMicroDollars, paymentMethod: false }
          const { id } = (yield* rows.insertOrg(fresh)) ?? (yield* Effect.orDie(needOrg(org)))
          return yield* insertKey(apiKey, { orgId: id, user, scope })
        }),
      )
      return { apiKey, keyId, org, user, scope }
    }, orUnavailable),

    isEmpty: orUnavailable(Effect.map(rows.orgCount, (count) => count === 0)),

    adoptDevelopmentKey: Effect.fn("Accounts.adoptDevelopmentKey")(function* (apiKey) {
      return yield* rows.inTransaction(
        Effect.gen(function* () {
          if ((yield* rows.orgCount) === 0) {
            const created = yield* rows.insertOrg({
              name: developmentOrg,
              creditsMicroDollars: developmentCreditsMicroDollars,
              paymentMethod: false,
            })
            const key = { user: defaultUser, scope: "read-write", development: true } as const
            if (created !== undefined) yield* insertKey(apiKey, { ...key, orgId: created.id })
          }
          return yield* markDevelopmentKey(apiKey)
        }),
      )
    }, orUnavailable),

    markDevelopmentKey: (apiKey) => orUnavailable(rows.inTransaction(markDevelopmentKey(apiKey))),

    listKeys: Effect.fn("Accounts.listKeys")(function* (org) {
      return yield* rows.keysOf((yield* needOrg(org)).id)
    }, orUnavailable),

    revokeKey: Effect.fn("Accounts.revokeKey")(function* (keyId) {
      const revoked = (yield* rows.revoke(keyId)) ?? (yield* new KeyNotFound({ keyId }))
      known.delete(revoked.digest)
      known.delete(keyId)
      yield* revocations.tell(keyId)
      return { revokedAtMs: revoked.revokedAtMs }
    }, orUnavailable),
  })
})
