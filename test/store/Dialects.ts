// The stores that tests named `X.dialects.test.ts` run over, one in each of two groups: SQLite in memory or in a data
// directory of its own, and PostgreSQL in an empty schema.
import { Effect, Layer, type Scope } from "effect"
import { beforeAll, describe, inject } from "vitest"
import type { StoreUnavailable } from "#store/files/StoreErrors.ts"
import { type Store, sqliteStoreLayer, storeLayer } from "#store/Store.ts"
import { needs } from "../support/groups/Needs.ts"
import { sharedPostgres } from "../support/servers/PostgresServer.ts"
import { tempDir } from "./TempDir.ts"

type StoreLayer = Layer.Layer<Store, StoreUnavailable>

export interface Dialect {
  readonly name: "SQLite" | "Postgres"
  /** An empty store. */
  readonly fresh: StoreLayer
  /** An empty store that several processes may open: each with a `Layer.fresh` of what `open` gives it. */
  readonly shared: Effect.Effect<
    { readonly open: Effect.Effect<StoreLayer, never, Scope.Scope> },
    never,
    Scope.Scope
  >
}

const sqlite: Dialect = {
  name: "SQLite",
  fresh: sqliteStoreLayer(":memory:"),
  // Its processes share the data directory.
  shared: Effect.map(tempDir, (dataDir) => ({ open: Effect.succeed(Layer.fresh(storeLayer({ dataDir }))) })),
}

const postgres = (): Dialect => {
  const freshUrl = Effect.promise(async () => (await sharedPostgres()).freshUrl())
  // Its nodes have a data directory each.
  const shared: Dialect["shared"] = Effect.map(freshUrl, (databaseUrl) => ({
    open: Effect.map(tempDir, (dataDir) => Layer.fresh(storeLayer({ dataDir, databaseUrl }))),
  }))
  return { name: "Postgres", fresh: Layer.unwrap(Effect.flatMap(shared, ({ open }) => open)), shared }
}

/** Defines the tests over the store of the running group: SQLite in `fast`, PostgreSQL in `postgres`, both where groups run together. */
export const eachDialect = (tests: (dialect: Dialect) => void): void => {
  const group = inject("group")
  if (group === undefined || group === "fast") describe("SQLite", () => tests(sqlite))
  if (group === "fast") return
  describe("Postgres", needs("postgresql"), () => {
    // A start can take longer than a test may.
    beforeAll(sharedPostgres)
    tests(postgres())
  })
}
