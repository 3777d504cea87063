// The key set that an edge fetches: how often, for how long it is used, and what an invalid answer causes.
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { exportJWK, generateKeyPair } from "jose"
import { PublicKeys } from "#api/access/PublicKeys.ts"
import { AuthUnavailable } from "#domain/wire/Errors.ts"

const minute = 60_000

const jwk = (kid: string) =>
  Effect.promise(async () => {
    const { publicKey } = await generateKeyPair("EdDSA", { crv: "Ed25519", extractable: true })
    return { ...(await exportJWK(publicKey)), kid, use: "sig" }
  })

/** An auth service: what it publishes now, and how many requests it received. */
class FakeService {
  asked = 0
  answer: () => Promise<Response> = async () => new Response("down", { status: 503 })

  publish(keys: ReadonlyArray<unknown>): void {
    this.answer = async () => Response.json({ keys })
  }
  readonly fetch: typeof fetch = () => {
    this.asked++
    return this.answer()
  }
}

const open = (service: FakeService) =>
  Effect.flatMap(
    Layer.build(PublicKeys.remote({ url: "http://auth.test/jwks.json", fetch: service.fetch })),
    (context) => Effect.provideContext(PublicKeys, context),
  )

it.effect("is fetched at the first token, and then once in five minutes", () =>
  Effect.gen(function* () {
    const service = new FakeService()
    service.publish([yield* jwk("a")])
    const keys = yield* open(service)
    expect([service.asked, keys.has("a")]).toEqual([0, false])
    for (let i = 0; i < 50; i++) expect(yield* keys.find("a")).toBeDefined()
    expect([service.asked, keys.has("a")]).toEqual([1, true])
    yield* TestClock.adjust(5 * minute)
    // The old set stays in use while the new one is fetched.
    expect(yield* keys.find("a")).toBeDefined()
    while (service.asked < 2) yield* Effect.promise(() => new Promise(setImmediate))
    for (let i = 0; i < 50; i++) yield* keys.find("a")
    expect(service.asked).toBe(2)
  }).pipe(Effect.scoped),
)

it.effect("is fetched for an unknown key id, but not for each of many invented ones", () =>
  Effect.gen(function* () {
    const service = new FakeService()
    const [a, b] = [yield* jwk("a"), yield* jwk("b")]
    service.publish([a])
    const keys = yield* open(service)
    yield* keys.find("a")
    service.publish([a, b])
    yield* TestClock.adjust(11_000)
    expect(yield* keys.find("b")).toBeDefined()
    expect(service.asked).toBe(2)
    const made = yield* Effect.forEach(
      Array.from({ length: 200 }, (_, i) => `made up ${i}`),
      keys.find,
      { concurrency: "unbounded" },
    )
    expect(made.every((key) => key === undefined)).toBe(true)
    expect(service.asked).toBe(2)
    yield* TestClock.adjust(11_000)
    yield* Effect.forEach(["x", "y", "z"], keys.find, { concurrency: "unbounded" })
    expect(service.asked).toBe(3)
  }).pipe(Effect.scoped),
)

it.effect("serves for an hour while the service is down, then says so, and recovers", () =>
  Effect.gen(function* () {
    const service = new FakeService()
    const a = yield* jwk("a")
    service.publish([a])
    const keys = yield* open(service)
    yield* keys.find("a")
    service.answer = async () => new Response("down", { status: 503 })
    yield* TestClock.adjust(59 * minute)
    expect(yield* keys.find("a")).toBeDefined()
    yield* TestClock.adjust(2 * minute)
    expect(yield* Effect.flip(keys.find("a"))).toEqual(new AuthUnavailable({ retryAfterMs: 10_000 }))
    service.publish([a])
    yield* TestClock.adjust(11_000)
    expect(yield* keys.find("a")).toBeDefined()
  }).pipe(Effect.scoped),
)

it.effect("drops keys that are no longer published", () =>
  Effect.gen(function* () {
    const service = new FakeService()
    const [a, b] = [yield* jwk("a"), yield* jwk("b")]
    service.publish([a])
    const keys = yield* open(service)
    yield* keys.find("a")
    service.publish([b])
    yield* TestClock.adjust(11_000)
    expect(yield* keys.find("b")).toBeDefined()
    expect([keys.has("a"), keys.has("b")]).toEqual([false, true])
  }).pipe(Effect.scoped),
)

it.effect("takes Ed25519 keys only, and no answer that is none", () =>
  Effect.gen(function* () {
    const a = yield* jwk("a")
    const service = new FakeService()
    service.publish([
      { kty: "oct", kid: "secret", k: "AAAA" },
      { kty: "RSA", kid: "rsa", n: "AQAB", e: "AQAB" },
      { kty: "OKP", crv: "X25519", kid: "x", x: "AAAA" },
      { kty: "OKP", crv: "Ed25519", x: "AAAA" },
      a,
    ])
    const keys = yield* open(service)
    expect(yield* keys.find("a")).toBeDefined()
    for (const kid of ["secret", "rsa", "x"]) expect(keys.has(kid)).toBe(false)
    const strange: ReadonlyArray<() => Promise<Response>> = [
      async () => new Response("<html>"),
      async () => Response.json([]),
      async () => Response.json({ keys: [{ kty: "OKP", crv: "Ed25519", kid: "b", x: "!" }] }),
      async () => new Response(" ".repeat(100_000)),
      async () => Promise.reject(new Error("ECONNREFUSED")),
    ]
    for (const answer of strange) {
      const fresh = new FakeService()
      fresh.answer = answer
      expect(yield* Effect.flip((yield* open(fresh)).find("a"))).toBeInstanceOf(AuthUnavailable)
      expect(fresh.asked).toBe(1)
    }
  }).pipe(Effect.scoped),
)
