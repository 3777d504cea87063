// A token at an edge over its whole life, on a test clock: verified once, cached, ended by expiry or by its key.
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { type CryptoKey, generateKeyPair } from "jose"
import { SessionTokens } from "#api/access/Authentication.ts"
import { PublicKeys } from "#api/access/PublicKeys.ts"
import { claimsOf, signSession } from "#api/access/SessionToken.ts"
import { sessionVerifier } from "#api/access/SessionVerifier.ts"
import { Unauthorized } from "#domain/wire/Errors.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { sqliteStoreLayer } from "#store/Store.ts"

/** Keys by id, and the number of lookups. */
class FakeKeys {
  readonly keys = new Map<string, CryptoKey>()
  asked = 0
  readonly layer = Layer.succeed(PublicKeys, {
    find: (kid) =>
      Effect.sync(() => {
        this.asked++
        return this.keys.get(kid)
      }),
    has: (kid) => this.keys.has(kid),
  })
}

/** Start of the test clock. */
const start = 0

const stage = Effect.gen(function* () {
  const published = new FakeKeys()
  const { privateKey, publicKey } = yield* Effect.promise(() => generateKeyPair("EdDSA", { crv: "Ed25519" }))
  published.keys.set("one", publicKey)
  const accounts = yield* Accounts
  const { apiKey, keyId } = yield* accounts.createKey({ org: "acme", user: "ann" })
  const principal = yield* accounts.authenticate(apiKey)
  const context = yield* Layer.build(
    sessionVerifier.pipe(Layer.provide([published.layer, Layer.succeed(Accounts, accounts)])),
  )
  const { verify } = yield* Effect.provideContext(SessionTokens, context)
  const token = (nowMs = start, lifetimeSeconds = 3_600) =>
    signSession(claimsOf({ principal, jti: "test", nowMs, lifetimeSeconds }), { kid: "one", privateKey })
  return { accounts, keyId, principal, published, token, verify }
})
const store = sqliteStoreLayer(":memory:")
const refusedFor = (reason: Unauthorized["reason"]) => new Unauthorized({ reason })

it.effect("is its key's principal, and is checked once a minute", () =>
  Effect.gen(function* () {
    const { principal, published, token, verify } = yield* stage
    const session = yield* token()
    for (let i = 0; i < 100; i++) expect(yield* verify(session)).toMatchObject(principal)
    expect(published.asked).toBe(1)
    yield* TestClock.adjust(61_000)
    expect(yield* verify(session)).toMatchObject(principal)
    expect(published.asked).toBe(2)
  }).pipe(Effect.scoped, Effect.provide(store)),
)

it.effect("ends five seconds after its time, remembered or not", () =>
  Effect.gen(function* () {
    const { principal, token, verify } = yield* stage
    const remembered = yield* token()
    const fresh = yield* token(start, 3_599)
    yield* TestClock.adjust(3_600_000 + 3_000)
    expect(yield* verify(remembered)).toMatchObject(principal)
    yield* TestClock.adjust(1_999)
    expect(yield* verify(remembered)).toMatchObject(principal)
    yield* TestClock.adjust(1)
    expect(yield* Effect.flip(verify(remembered))).toEqual(refusedFor("expired-token"))
    expect(yield* Effect.flip(verify(fresh))).toEqual(refusedFor("expired-token"))
  }).pipe(Effect.scoped, Effect.provide(store)),
)

it.effect("may come from a clock five seconds ahead, and no further", () =>
  Effect.gen(function* () {
    const { principal, token, verify } = yield* stage
    expect(yield* verify(yield* token(start + 5_000))).toMatchObject(principal)
    expect(yield* Effect.flip(verify(yield* token(start + 7_000)))).toEqual(refusedFor("premature-token"))
  }).pipe(Effect.scoped, Effect.provide(store)),
)

it.effect("ends with its API key", () =>
  Effect.gen(function* () {
    const { accounts, keyId, token, verify } = yield* stage
    const session = yield* token()
    yield* verify(session)
    yield* accounts.revokeKey(keyId)
    expect(yield* Effect.flip(verify(session))).toEqual(refusedFor("invalid-key"))
  }).pipe(Effect.scoped, Effect.provide(store)),
)

it.effect("ends with the key that signed it, at once where that is forgotten", () =>
  Effect.gen(function* () {
    const { published, token, verify } = yield* stage
    const session = yield* token()
    yield* verify(session)
    published.keys.delete("one")
    expect(yield* Effect.flip(verify(session))).toEqual(refusedFor("invalid-token"))
  }).pipe(Effect.scoped, Effect.provide(store)),
)

it.effect("a refused token is not remembered as a good one", () =>
  Effect.gen(function* () {
    const { published, token, verify } = yield* stage
    const key = published.keys.get("one")!
    published.keys.delete("one")
    const session = yield* token()
    expect(yield* Effect.flip(verify(session))).toEqual(refusedFor("invalid-token"))
    published.keys.set("one", key)
    yield* verify(session)
    expect(yield* Effect.flip(verify(`${session.slice(0, -4)}AAAA`))).toEqual(refusedFor("invalid-token"))
  }).pipe(Effect.scoped, Effect.provide(store)),
)
