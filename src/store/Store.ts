// The store as one layer: the database of a data directory or one that several nodes share, migrated, and the services
// over it. The server and every command that touches accounts stack this and nothing else of the folder.
import { Config, Effect, Layer } from "effect"
import type { SqlClient } from "effect/sql"
import { Accounts } from "./accounts/Accounts.ts"
import { databaseFile, dataDirectory } from "./files/DataDir.ts"
import { StoreSync, syncLog } from "./files/Durable.ts"
import { StoreUnavailable } from "./files/StoreErrors.ts"
import { IdempotencyStore } from "./idempotency/IdempotencyStore.ts"
import { Jobs } from "./ledger/Jobs.ts"
import { UsageLedger } from "./ledger/UsageLedger.ts"
import { migrationsLayer } from "./migrations/index.ts"
import { checkpointerLayer, lastResortPages } from "./sql/Checkpointer.ts"
import { databaseUrlRule, hidePassword, parseDatabaseUrl, shownDatabase } from "./sql/DatabaseUrl.ts"
import { commandConnections, nodeConnections, postgresLayer } from "./sql/PostgresClient.ts"
import { sqliteLayer } from "./sql/SqliteClient.ts"
import { heartbeat, nodeIdOf, StoreNode } from "./sql/StoreNode.ts"

export type Store = Accounts | IdempotencyStore | Jobs | UsageLedger | SqlClient.SqlClient

const all = Layer.mergeAll(Accounts.layer, IdempotencyStore.layer, Jobs.layer, UsageLedger.layer)

/** Everything above SqlClient; `place` names the database for errors. */
const services = (place: string) => Layer.provideMerge(all, migrationsLayer(place))

/** The store in one database file, or in `:memory:`. */
export const sqliteStoreLayer = (filename: string): Layer.Layer<Store, StoreUnavailable> =>
  Layer.provideMerge(services(filename), sqliteLayer(filename))

/** The store of a command: one of several that work on it, and none of the nodes. */
export const postgresStoreLayer = (url: string): Layer.Layer<Store, StoreUnavailable> =>
  Layer.provideMerge(services(shownDatabase(url)), postgresLayer(url, commandConnections))

const postgresNodeLayer = (url: string, node: string): Layer.Layer<Store, StoreUnavailable> =>
  all.pipe(
    // Seen before it takes anything on.
    Layer.provideMerge(heartbeat(node)),
    Layer.provideMerge(migrationsLayer(shownDatabase(url))),
    Layer.provideMerge(postgresLayer(url, nodeConnections)),
    Layer.provide(Layer.succeed(StoreNode, node)),
  )

export interface StoreOptions {
  readonly dataDir: string
  /** Of a store that several nodes share; without it, that of the data directory. */
  readonly databaseUrl?: string
}

/**
 * A node's store. The data directory is created where missing. A database in it has a thread for its checkpoints; one that
 * is shared knows the node by the id that the directory keeps.
 */
export const storeLayer = ({
  dataDir,
  databaseUrl = "",
}: StoreOptions): Layer.Layer<Store, StoreUnavailable> =>
  Layer.unwrap(
    databaseUrl === ""
      ? Effect.map(databaseFile(dataDir), (file) =>
          // Opened first and closed last, so that the thread finds a log and leaves none open.
          services(file).pipe(
            Layer.provideMerge(Layer.succeed(StoreSync, syncLog(file))),
            Layer.provideMerge(checkpointerLayer(file)),
            Layer.provideMerge(sqliteLayer(file, lastResortPages, "NORMAL")),
          ),
        )
      : Effect.map(Effect.flatMap(dataDirectory(dataDir), nodeIdOf), (node) =>
          postgresNodeLayer(databaseUrl, node),
        ),
  )

const settings = Config.all({
  dataDir: Config.NonEmptyString("EDGEWISE_DATA_DIR").pipe(Config.withDefault(".edgewise")),
  databaseUrl: Config.String("EDGEWISE_DATABASE_URL").pipe(Config.withDefault("")),
})

/** The store of `EDGEWISE_DATABASE_URL`, else of `EDGEWISE_DATA_DIR`, for the commands. */
export const storeLayerFromEnvironment: Layer.Layer<Store, StoreUnavailable> = Layer.unwrap(
  Effect.gen(function* () {
    const { dataDir, databaseUrl } = yield* Effect.mapError(
      settings,
      (error) => new StoreUnavailable({ place: "environment", problem: error.message }),
    )
    if (databaseUrl === "") return sqliteStoreLayer(yield* databaseFile(dataDir))
    if (parseDatabaseUrl(databaseUrl) === undefined) {
      return yield* new StoreUnavailable({
        place: "EDGEWISE_DATABASE_URL",
        problem: `${JSON.stringify(hidePassword(databaseUrl))} is not allowed; allowed is ${databaseUrlRule}`,
        isSetting: true,
      })
    }
    return postgresStoreLayer(databaseUrl)
  }),
)
