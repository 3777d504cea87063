// The signing keys of nodes that share a database: one key for all of them, rotated once however many read, and the
// same rules of age as in a data directory (SigningKeys.test).
import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { announceMs } from "#domain/access/SigningSchedule.ts"
import { postgresStoreLayer } from "#store/Store.ts"
import { rotateSharedSigningKeys, SigningKeys } from "#store/signing/SigningKeys.ts"
import { needs } from "../../support/groups/Needs.ts"
import { type PostgresServer, sharedPostgres } from "../../support/servers/PostgresServer.ts"

/** Published ten minutes before, so after five. Every read is one of a real database: no days here. */
const rotateEveryMs = 15 * 60_000

describe("signing keys in the database", needs("postgresql"), () => {
  let server: Pick<PostgresServer, "freshUrl">
  beforeAll(async () => {
    server = await sharedPostgres()
  })

  const database = Effect.map(
    Effect.promise(() => server.freshUrl()),
    (url) => Layer.fresh(postgresStoreLayer(url)),
  )
  const open = (store: Effect.Success<typeof database>, makesKeys = true) =>
    Effect.flatMap(
      Layer.build(SigningKeys.sharedLayer({ makesKeys, rotateEveryMs }).pipe(Layer.provideMerge(store))),
      (context) =>
        Effect.succeed({
          keys: context.pipe((all) => Effect.runSync(Effect.provideContext(SigningKeys, all))),
          sql: context.pipe((all) => Effect.runSync(Effect.provideContext(SqlClient.SqlClient, all))),
        }),
    )
  const publishedIds = (keys: SigningKeys["Service"]) =>
    Effect.map(keys.published, (published) => published.map(({ kid }) => kid))

  it.effect("are one, whichever starts first, and used by an edge that makes none", () =>
    Effect.gen(function* () {
      const store = yield* database
      const opened = yield* Effect.all(
        Array.from({ length: 6 }, () => open(store)),
        { concurrency: "unbounded" },
      )
      const signers = yield* Effect.forEach(opened, ({ keys }) => keys.signer)
      expect(new Set(signers.map(({ kid }) => kid)).size).toBe(1)
      const edge = yield* open(store, false)
      expect(yield* edge.keys.find(signers[0]?.kid ?? "")).toBeDefined()
      expect(JSON.stringify(yield* edge.keys.published)).not.toContain('"d"')
    }).pipe(Effect.scoped),
  )

  it.effect("are rotated once at their age, by all nodes together, and by command", () =>
    Effect.gen(function* () {
      const store = yield* database
      const { keys: one } = yield* open(store)
      const { keys: two } = yield* open(store)
      const { kid: old } = yield* one.signer
      yield* TestClock.adjust(rotateEveryMs - announceMs)
      yield* TestClock.adjust(3_000)
      // Both read at the same moment; the result is visible at the next read.
      const seen = yield* Effect.all([publishedIds(one), publishedIds(two)])
      yield* TestClock.adjust(3_000)
      const announced = yield* publishedIds(one)
      expect(announced).toHaveLength(2)
      expect(announced[0]).toBe(old)
      expect(yield* publishedIds(two)).toEqual(announced)
      expect(seen.flat().every((kid) => announced.includes(kid))).toBe(true)

      const { kid } = yield* Effect.provide(rotateSharedSigningKeys({ endAll: true }), store)
      yield* TestClock.adjust(3_000)
      expect(yield* publishedIds(one)).toEqual([kid])
      expect(yield* publishedIds(two)).toEqual([kid])
      expect((yield* two.signer).kid).toBe(kid)
    }).pipe(Effect.scoped),
  )

  it.effect("that are none stop the start, without being quoted", () =>
    Effect.gen(function* () {
      const store = yield* database
      const { sql } = yield* open(store)
      yield* sql`UPDATE meta SET value = 'a secret' WHERE name = 'signing_keys'`
      const error = yield* Effect.flip(open(store))
      expect(error).toMatchObject({ _tag: "StoreUnavailable" })
      expect(error.message).not.toContain("a secret")
    }).pipe(Effect.scoped),
  )
})
