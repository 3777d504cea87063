// The development key of stores that an earlier version made: it is found and marked, and its organization's payment
// method becomes a credit of 100 USD, once. Over each dialect.
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { apiKeyFrom } from "#domain/access/ApiKey.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { developmentKey, hasDevelopmentKey } from "#store/accounts/DevKey.ts"
import type { StoreUnavailable } from "#store/files/StoreErrors.ts"
import type { Store } from "#store/Store.ts"
import { eachDialect } from "../Dialects.ts"
import { beforeDeletions } from "../EarlierSchema.ts"
import { tempDir } from "../TempDir.ts"

const apiKey = apiKeyFrom(Buffer.alloc(24, 7))

/** The store as it was before the migration: a development key with a payment method, and another key beside it. */
const asEarlierVersion = ({ credits, registeredMs }: { credits: number; registeredMs: number }) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const sql = yield* SqlClient.SqlClient
    yield* accounts.adoptDevelopmentKey(apiKey)
    const other = yield* accounts.createKey({ org: "dev", user: "laptop" })
    yield* accounts.createOrg({ name: "invoiced", paymentMethod: true })
    yield* sql`UPDATE orgs SET payment_method = 1, credits_micro_dollars = ${credits} WHERE name = 'dev'`
    yield* sql`
      UPDATE api_keys SET created_at_ms = (SELECT created_at_ms FROM orgs WHERE name = 'dev')
        + CASE WHEN id = ${other.keyId} THEN 60000 ELSE CAST(${registeredMs} AS BIGINT) END`
    yield* beforeDeletions
    yield* sql`ALTER TABLE api_keys DROP COLUMN development`
    yield* sql`DROP TABLE client_secrets`
    yield* sql`DELETE FROM migrations WHERE migration_id >= 5`
    return other.apiKey
  })

const state = (other: string) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const { creditsMicroDollars, paymentMethod } = yield* accounts.showOrg("dev")
    return {
      creditsMicroDollars,
      paymentMethod,
      marked: (yield* accounts.authenticate(apiKey)).development,
      otherMarked: (yield* accounts.authenticate(other)).development,
      invoiced: (yield* accounts.showOrg("invoiced")).paymentMethod,
    }
  })

const migrated = {
  creditsMicroDollars: 100_000_000,
  paymentMethod: false,
  marked: true,
  otherMarked: false,
  invoiced: true,
}

eachDialect(({ shared }) => {
  const inStore = <A, E>(
    layer: Layer.Layer<Store, StoreUnavailable>,
    effect: Effect.Effect<A, E, Store>,
  ): Effect.Effect<A, E | StoreUnavailable> => Effect.provide(effect, Layer.fresh(layer))

  it.effect(
    "is marked by the migration, once; what it owed is dropped and what it was credited is kept",
    () =>
      Effect.gen(function* () {
        for (const [credits, expected] of [
          [-250_000_000, 100_000_000],
          [0, 100_000_000],
          [7_000_000, 107_000_000],
        ] as const) {
          const layer = yield* (yield* shared).open
          const other = yield* inStore(layer, asEarlierVersion({ credits, registeredMs: 3 }))
          for (let start = 0; start < 2; start++) {
            expect(yield* inStore(layer, state(other))).toEqual({
              ...migrated,
              creditsMicroDollars: expected,
            })
          }
        }
      }).pipe(Effect.scoped),
  )

  it.effect("is marked at a start by its file where the migration could not be sure", () =>
    Effect.gen(function* () {
      const layer = yield* (yield* shared).open
      const dataDir = yield* tempDir
      writeFileSync(join(dataDir, "dev-key"), `${apiKey}\n`, { mode: 0o600 })
      const other = yield* inStore(layer, asEarlierVersion({ credits: -1, registeredMs: 5_000 }))
      expect(yield* inStore(layer, state(other))).toMatchObject({ marked: false, paymentMethod: true })
      // A start that refuses the key marks it as well.
      expect(yield* inStore(layer, hasDevelopmentKey(dataDir))).toBe(true)
      for (let start = 0; start < 2; start++) {
        expect(yield* inStore(layer, state(other))).toEqual(migrated)
        expect((yield* inStore(layer, developmentKey(dataDir)))?.org.creditsMicroDollars).toBe(100_000_000)
      }
    }).pipe(Effect.scoped),
  )
})

it.effect("an empty or foreign directory holds none, and looking makes none", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const look = hasDevelopmentKey(dataDir)
    const accounts = Accounts.of({ markDevelopmentKey: () => Effect.succeed(undefined) } as never)
    expect(yield* Effect.provideService(look, Accounts, accounts)).toBe(false)
    writeFileSync(join(dataDir, "dev-key"), `${apiKey}\n`, { mode: 0o600 })
    expect(yield* Effect.provideService(look, Accounts, accounts)).toBe(false)
  }).pipe(Effect.scoped),
)
