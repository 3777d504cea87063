// The store as one layer: the database of a data directory, migrated, and the services over it. The server and every
// command that touches accounts stack this and nothing else of the folder; Postgres will be another SqlClient here.
import { Config, Effect, Layer, Option } from "effect"
import type { SqlClient } from "effect/sql"
import { Accounts } from "./Accounts.ts"
import { Answers } from "./Answers.ts"
import { checkpointerLayer, lastResortPages } from "./Checkpointer.ts"
import { databaseFile } from "./DataDir.ts"
import { Jobs } from "./Jobs.ts"
import { migrationsLayer } from "./migrations/index.ts"
import { sqliteLayer } from "./SqliteClient.ts"
import { StoreUnavailable } from "./StoreErrors.ts"
import { UsageLedger } from "./UsageLedger.ts"

export type Store = Accounts | Answers | Jobs | UsageLedger | SqlClient.SqlClient

/** Everything above SqlClient. */
const services = Layer.mergeAll(Accounts.layer, Answers.layer, Jobs.layer, UsageLedger.layer).pipe(
  Layer.provideMerge(migrationsLayer),
)

/** The store in one database file, or in `:memory:`. */
export const sqliteStoreLayer = (filename: string): Layer.Layer<Store, StoreUnavailable> =>
  Layer.provideMerge(services, sqliteLayer(filename))

/** A node's store: that of a data directory, which is created where missing, with a thread for its checkpoints. */
export const storeLayer = (options: { readonly dataDir: string }): Layer.Layer<Store, StoreUnavailable> =>
  Layer.unwrap(
    Effect.map(databaseFile(options.dataDir), (file) =>
      // Opened first and closed last, so that the thread finds a log and leaves none open.
      services.pipe(
        Layer.provideMerge(checkpointerLayer(file)),
        Layer.provideMerge(sqliteLayer(file, lastResortPages)),
      ),
    ),
  )

const settings = Config.all({
  dataDir: Config.NonEmptyString("EDGEWISE_DATA_DIR").pipe(Config.withDefault(".edgewise")),
  databaseUrl: Config.option(Config.NonEmptyString("EDGEWISE_DATABASE_URL")),
})

/** The store of `EDGEWISE_DATA_DIR`, for the commands. */
export const storeLayerFromEnvironment: Layer.Layer<Store, StoreUnavailable> = Layer.unwrap(
  Effect.gen(function* () {
    const { dataDir, databaseUrl } = yield* Effect.mapError(
      settings,
      (error) => new StoreUnavailable({ place: "environment", problem: error.message }),
    )
    if (Option.isSome(databaseUrl)) {
      return yield* new StoreUnavailable({
        place: "EDGEWISE_DATABASE_URL",
        problem: "Postgres is not supported by this version",
      })
    }
    return sqliteStoreLayer(yield* databaseFile(dataDir))
  }),
)
