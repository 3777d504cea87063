// A shared database that a later version has changed: a node of this one is refused with one line.
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { afterAll, describe, expect, it } from "vitest"
import { newestSchema } from "#store/migrations/index.ts"
import { postgresStoreLayer, type Store, storeLayer } from "#store/Store.ts"
import { needs } from "../../support/groups/Needs.ts"
import { temporaryDir } from "../../support/nodes/TestNode.ts"
import { databasePassword, sharedPostgres } from "../../support/servers/PostgresServer.ts"

describe("a shared database of a later schema", needs("postgresql"), () => {
  const dir = temporaryDir()
  afterAll(() => dir.remove())

  it("is refused with one line without a password", async () => {
    const databaseUrl = await (await sharedPostgres()).freshUrl()
    const started = <A, E>(effect: Effect.Effect<A, E, Store>) =>
      Effect.runPromise(
        Effect.provide(effect, Layer.fresh(storeLayer({ dataDir: dir.path, databaseUrl }))) as Effect.Effect<
          A,
          E
        >,
      )
    await started(
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`INSERT INTO migrations (migration_id, name) VALUES (${newestSchema + 1}, 'later')`,
      ),
    )
    const refusal = await Effect.runPromise(
      Effect.flip(Effect.provide(Effect.void, Layer.fresh(storeLayer({ dataDir: dir.path, databaseUrl })))),
    )
    expect(refusal.message).toMatch(
      /^postgres:\/\/127\.0\.0\.1:\d+\/\w+: was changed by a later version of edgewise \(schema \d+\); start that one, or use another database$/,
    )
    expect(refusal.message).toContain(`schema ${newestSchema + 1}`)
    expect(refusal.message).not.toContain(databasePassword)
    // A command is refused as well.
    const command = Effect.provide(Effect.void, Layer.fresh(postgresStoreLayer(databaseUrl)))
    expect((await Effect.runPromise(Effect.flip(command))).message).toBe(refusal.message)
  })
})
