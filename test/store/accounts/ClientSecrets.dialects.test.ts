import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Accounts } from "#store/accounts/Accounts.ts"
import { ClientSecrets, maxLiveSecrets } from "#store/accounts/ClientSecrets.ts"
import { eachDialect } from "../Dialects.ts"
import { beforeDeletions } from "../EarlierSchema.ts"

const principal = Effect.gen(function* () {
  const accounts = yield* Accounts
  const { apiKey } = yield* accounts.createKey({ org: "acme" })
  return yield* accounts.authenticate(apiKey)
})

eachDialect(({ fresh, shared }) => {
  it.effect("finds a secret by its value, of which the store has only a digest", () =>
    Effect.gen(function* () {
      const secrets = yield* ClientSecrets
      const owner = yield* principal
      const made = yield* secrets.create({ principal: owner, expiresAtMs: 60_000, terms: '{"a":1}' })
      const value = "value" in made ? made.value : ""
      expect(value).toMatch(/^ek_[0-9A-Za-z]{33}$/)
      const found = yield* secrets.find(value)
      expect(found).toEqual({
        id: expect.stringMatching(/^[0-9a-f]+$/),
        spentMicroDollars: 0,
        keyId: owner.keyId,
        expiresAtMs: 60_000,
        terms: '{"a":1}',
      })
      expect(yield* secrets.find(value.toUpperCase())).toBe(undefined)
      const sql = yield* SqlClient.SqlClient
      expect(JSON.stringify(yield* sql`SELECT * FROM client_secrets`)).not.toContain(value.slice(3))
    }).pipe(Effect.provide(fresh)),
  )

  it.effect("keeps what its sessions were charged together", () =>
    Effect.gen(function* () {
      const secrets = yield* ClientSecrets
      const made = yield* secrets.create({ principal: yield* principal, expiresAtMs: 60_000, terms: "{}" })
      const value = "value" in made ? made.value : ""
      const { id = "" } = (yield* secrets.find(value)) ?? {}
      expect(yield* secrets.spend(id, 40)).toBe(40)
      const both = yield* Effect.all([secrets.spend(id, 1), secrets.spend(id, 2)], { concurrency: 2 })
      expect(Math.max(...both)).toBe(43)
      expect(yield* secrets.find(value)).toMatchObject({ spentMicroDollars: 43 })
      expect(yield* secrets.spend("unknown", 5)).toBe(0)
    }).pipe(Effect.provide(fresh)),
  )

  it.effect("of an earlier version has been charged nothing, and is charged from then on", () =>
    Effect.gen(function* () {
      const layer = yield* (yield* shared).open
      const inStore = <A, E>(effect: Effect.Effect<A, E, Layer.Success<typeof layer>>) =>
        Effect.provide(effect, Layer.fresh(layer))
      const made = yield* inStore(
        Effect.gen(function* () {
          const secrets = yield* ClientSecrets
          const sql = yield* SqlClient.SqlClient
          const secret = yield* secrets.create({
            principal: yield* principal,
            expiresAtMs: 60_000,
            terms: "{}",
          })
          yield* beforeDeletions
          yield* sql`ALTER TABLE client_secrets DROP COLUMN spent_micro_dollars`
          yield* sql`DELETE FROM migrations WHERE migration_id >= 7`
          return secret
        }),
      )
      const value = "value" in made ? made.value : ""
      const spent = Effect.gen(function* () {
        const secrets = yield* ClientSecrets
        const found = yield* secrets.find(value)
        yield* secrets.spend(found?.id ?? "", 5)
        return found?.spentMicroDollars
      })
      expect([yield* inStore(spent), yield* inStore(spent)]).toEqual([0, 5])
    }).pipe(Effect.scoped),
  )

  it.effect("remembers an expired one for an hour, and then drops it", () =>
    Effect.gen(function* () {
      const secrets = yield* ClientSecrets
      const owner = yield* principal
      const create = (expiresAtMs: number) => secrets.create({ principal: owner, expiresAtMs, terms: "{}" })
      const made = yield* create(10_000)
      const value = "value" in made ? made.value : ""
      yield* TestClock.adjust("1 hour")
      yield* create(7_200_000)
      expect(yield* secrets.find(value)).toMatchObject({ expiresAtMs: 10_000 })
      yield* TestClock.adjust("11 seconds")
      yield* create(7_200_000)
      expect(yield* secrets.find(value)).toBe(undefined)
    }).pipe(Effect.provide(fresh)),
  )

  it.effect("of an organization are bounded, and say when there is a place again", () =>
    Effect.gen(function* () {
      const secrets = yield* ClientSecrets
      const owner = yield* principal
      const sql = yield* SqlClient.SqlClient
      for (let n = 0; n < maxLiveSecrets; n++)
        yield* sql`INSERT INTO client_secrets (digest, key_id, org_id, terms, expires_at_ms)
          VALUES (${String(n)}, ${owner.keyId}, ${owner.orgId}, '{}', ${20_000 + n})`
      const create = secrets.create({ principal: owner, expiresAtMs: 90_000, terms: "{}" })
      expect(yield* create).toEqual({ fullUntilMs: 20_000 })
      yield* TestClock.adjust(20_000)
      expect(yield* create).toHaveProperty("value")
      expect(yield* create).toEqual({ fullUntilMs: 20_001 })
    }).pipe(Effect.provide(fresh)),
  )
})
