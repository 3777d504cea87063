// Accounts: looks up the principal of a credential on the hot path, and administers organizations, users and keys for
// the command line. Of an API key only a digest under the store's secret is kept.
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
  NotOneOrg,
  namedOrgs,
  notWorking,
  OrgExists,
  OrgNotFound,
  type StoreUnavailable,
} from "../files/StoreErrors.ts"
import { connectionLost } from "../sql/PostgresError.ts"
import { StorePresence, whileRequestWaits } from "../sql/StorePresence.ts"
import { CurrentAccountChanges } from "./AccountChanges.ts"
import { accountName } from "./AccountName.ts"
import { type KeyInfo, makeAccountRows, type Org, type Principal, type Scope } from "./AccountRows.ts"
import { makeRevocations } from "./RevocationWatch.ts"
import { RowCache } from "./RowCache.ts"

export type { Org, Principal } from "./AccountRows.ts"

interface NewKey {
  /** The key itself, returned only once. */
  readonly apiKey: string
  readonly keyId: string
  readonly org: string
  readonly user: string
  readonly scope: Scope
}

/**
 * Longest age of a cached lookup, unless changes are noticed (AccountChanges). Protocol 2.6 allows 5 s until a change is
 * noticed.
 */
const credentialLifeMs = 2000
/**
 * Cached credentials, about 0.5 KB each, and cached unknown ones, so that repeated wrong keys need no query. Guesses.
 */
const knownCapacity = 20_000
const unknownCapacity = 20_000

/** Credits of an organization that `keys create` makes: 5 USD (protocol 5.2). */
const firstCreditsMicroDollars = 5 * microDollarsPerDollar
/** Credits of the organization of the development key (protocol 5.2). */
const developmentCreditsMicroDollars = 100 * microDollarsPerDollar
const defaultUser = "default"
const developmentOrg = "dev"

type Admin<A, E = never> = Effect.Effect<A, E | StoreUnavailable>

export class Accounts extends Context.Service<
  Accounts,
  {
    /** The principal of an API key, at most 2 s out of date. If the database cannot be read, the effect dies. */
    readonly authenticate: (apiKey: string) => Effect.Effect<Principal, Unauthorized>
    /** The same for a key id, e.g. the one that a session token names. */
    readonly principalOf: (keyId: string) => Effect.Effect<Principal, Unauthorized>
    /** Completes within 5 s after the principal's key is revoked, by any process. Never completes otherwise. */
    readonly revoked: (principal: Principal) => Effect.Effect<void>
    /** The same with a callback. Returns the function that ends the watch. */
    readonly onRevoked: (principal: Principal, onRevocation: () => void) => () => void
    readonly createOrg: (org: {
      readonly name: string
      readonly creditsMicroDollars?: number
      readonly paymentMethod?: boolean
    }) => Admin<Org, OrgExists | InvalidName | InvalidCredit>
    readonly creditOrg: (name: string, microDollars: number) => Admin<Org, OrgNotFound | InvalidCredit>
    readonly showOrg: (name: string) => Admin<Org, OrgNotFound>
    /** The organization, where the store has one only. */
    readonly onlyOrg: Admin<Org, NotOneOrg>
    /** Creates a key. Also creates the organization, with 5 USD of credits, and the user if they do not exist. */
    readonly createKey: (key: {
      readonly org: string
      readonly user?: string
      readonly scope?: Scope
    }) => Admin<NewKey, InvalidName>
    /** True if the store has no organization yet. */
    readonly isEmpty: Admin<boolean>
    /**
     * If the store has no organization, registers the key as the development key of a new one with 100 USD. Returns the
     * key's organization; undefined if the key is not a live key of this store.
     */
    readonly adoptDevelopmentKey: (apiKey: string) => Admin<Org | undefined>
    /** The same without registering: only marks a key that exists. */
    readonly markDevelopmentKey: (apiKey: string) => Admin<Org | undefined>
    readonly listKeys: (org: string) => Admin<ReadonlyArray<KeyInfo>, OrgNotFound>
    /** Drops what is cached of keys that were deleted, and ends what runs with them. */
    readonly forgetKeys: (
      keys: ReadonlyArray<{ readonly id: string; readonly digest: string }>,
    ) => Effect.Effect<void>
    /** The time of revocation: now, or earlier if the key was revoked before. */
    readonly revokeKey: (keyId: string) => Admin<{ readonly revokedAtMs: number }, KeyNotFound>
  }
>()("edgewise/store/Accounts") {
  static readonly layer: Layer.Layer<Accounts, StoreUnavailable, SqlClient.SqlClient> = Layer.effect(
    Accounts,
    Effect.suspend(() => make),
  )
}

/** `isExact`: no change was noticed while it was read, so that it stays true until one is. */
interface Known {
  readonly principal: Principal
  readonly isExact: boolean
}

const orUnavailable = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.mapError(effect, (error) =>
    error instanceof SqlError ? notWorking(error) : (error as Exclude<E, SqlError>),
  )

/** Made once: without a statement and without a wait, because all requests are refused with it until the database answers. */
const storeIsAway = connectionLost("the database does not answer")

const make = Effect.gen(function* () {
  const rows = yield* makeAccountRows
  const secret = yield* orUnavailable(rows.hmacSecret)
  const known = new RowCache<Known>({ capacity: knownCapacity, lifeMs: credentialLifeMs })
  const unknown = new RowCache<true>({ capacity: unknownCapacity, lifeMs: credentialLifeMs })
  const presence = yield* StorePresence
  const changes = yield* CurrentAccountChanges
  const revocations = yield* makeRevocations(rows.revokedAmong, changes)
  const stopListening = changes.listen((change) => {
    if (change === undefined) return known.clear()
    known.delete(change.keyId)
    known.delete(change.digest)
  })
  yield* Effect.addFinalizer(() => Effect.sync(stopListening))
  const invalidKey = Effect.fail(new Unauthorized({ reason: "invalid-key" }))

  // Digests and key ids share the caches. They cannot collide: a digest is 64 hex digits, an id starts with `key_`.
  const cached = (
    credential: string,
    read: (credential: string) => Effect.Effect<Principal | undefined, SqlError>,
  ): Effect.Effect<Principal, Unauthorized> =>
    Effect.withFiber((fiber) => {
      const nowMs = monotonicMsOf(fiber.getRef(Clock.Clock))
      const found = known.get(credential, nowMs)
      if (found !== undefined) return Effect.succeed(found.principal)
      const old = known.evenOld(credential)
      // What operators do needs the database: their keys have no grace, and are exact only while it answers.
      const isOperators = old?.principal.scope === "superadmin"
      const isExact = () => changes.isCurrent(nowMs) && !(isOperators && presence.isAway())
      if (old?.isExact === true && isExact()) return Effect.succeed(old.principal)
      if (unknown.get(credential, nowMs)) return invalidKey
      const inGrace = () =>
        old !== undefined && !isOperators && presence.isInGrace() ? old.principal : undefined
      const withoutReading = inGrace()
      if (withoutReading !== undefined) return Effect.succeed(withoutReading)
      if (presence.isAway()) return Effect.die(storeIsAway)
      const looks = changes.looks()
      return read(credential).pipe(
        whileRequestWaits,
        Effect.flatMap((principal) => {
          if (principal === undefined) {
            known.delete(credential)
            unknown.set(credential, true, nowMs)
            return invalidKey
          }
          known.set(credential, { principal, isExact: looks === changes.looks() }, nowMs)
          return Effect.succeed(principal)
        }),
        Effect.catchTag("SqlError", (error) => {
          const principal = inGrace()
          return principal === undefined ? Effect.die(error) : Effect.succeed(principal)
        }),
      )
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

    onRevoked: (principal, onRevocation) => revocations.listen(principal.keyId, onRevocation),

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

    onlyOrg: orUnavailable(
      Effect.flatMap(rows.firstOrgs(namedOrgs + 1), ([first, ...others]) =>
        first !== undefined && others.length === 0
          ? Effect.succeed(first)
          : Effect.fail(new NotOneOrg({ orgs: [first, ...others].flatMap((org) => org?.name ?? []) })),
      ),
    ),

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

    forgetKeys: Effect.fnUntraced(function* (keys) {
      for (const { digest, id } of keys) {
        known.delete(digest)
        known.delete(id)
        yield* revocations.notify(id)
      }
    }),

    revokeKey: Effect.fn("Accounts.revokeKey")(function* (keyId) {
      const revoked = (yield* rows.revoke(keyId)) ?? (yield* new KeyNotFound({ keyId }))
      known.delete(revoked.digest)
      known.delete(keyId)
      yield* revocations.notify(keyId)
      return { revokedAtMs: revoked.revokedAtMs }
    }, orUnavailable),
  })
})
