// The store as one layer: a database (in a data directory, or shared by several nodes), its migrations, and the
// services that read and write it. The server and the commands use this layer only.
import { Config, Effect, Layer } from "effect"
import type { SqlClient } from "effect/sql"
import { accountChanges } from "./accounts/AccountChanges.ts"
import { Accounts } from "./accounts/Accounts.ts"
import { ClientSecrets } from "./accounts/ClientSecrets.ts"
import { DeletionDataDir, Deletions } from "./deletion/Deletions.ts"
import { databaseFile, dataDirectory } from "./files/DataDir.ts"
import { StoreSync, syncLog } from "./files/Durable.ts"
import { StoreUnavailable } from "./files/StoreErrors.ts"
import { IdempotencyStore } from "./idempotency/IdempotencyStore.ts"
import { Jobs } from "./ledger/Jobs.ts"
import { receiptTables } from "./ledger/ReceiptDays.ts"
import { ReceiptExports } from "./ledger/ReceiptExports.ts"
import { SpoolOptions } from "./ledger/ReceiptSpool.ts"
import { UsageLedger } from "./ledger/UsageLedger.ts"
import { migrationsLayer } from "./migrations/index.ts"
import { presence } from "./nodes/Presence.ts"
import { checkpointerLayer, lastResortPages } from "./sql/Checkpointer.ts"
import { Compaction, compactionOf } from "./sql/Compaction.ts"
import { noticeCopy } from "./sql/CopiedStore.ts"
import {
  DatabaseHosts,
  databaseUrlRule,
  hidePassword,
  parseDatabaseUrl,
  shownDatabase,
} from "./sql/DatabaseUrl.ts"
import { commandConnections, nodeConnections, postgresLayer } from "./sql/PostgresClient.ts"
import { sqliteLayer } from "./sql/SqliteClient.ts"
import { storeCalls } from "./sql/StoreCalls.ts"
import { nodeIdOf, StoreNode } from "./sql/StoreNode.ts"
import { DatabasePresence } from "./sql/StorePresence.ts"

export type Store =
  | Accounts
  | ClientSecrets
  | Deletions
  | IdempotencyStore
  | Jobs
  | ReceiptExports
  | UsageLedger
  | SqlClient.SqlClient

const all = Deletions.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      Accounts.layer,
      ClientSecrets.layer,
      IdempotencyStore.layer,
      Jobs.layer,
      ReceiptExports.layer,
      UsageLedger.layer,
    ),
  ),
)

/** Everything above SqlClient. `place` names the database in errors. */
const services = (place: string) => Layer.provideMerge(all, migrationsLayer(place))

/** The store in one SQLite database file, or in memory (`:memory:`). */
export const sqliteStoreLayer = (filename: string): Layer.Layer<Store, StoreUnavailable> =>
  Layer.provideMerge(services(filename), sqliteLayer(filename))

/** The store of a command on a shared Postgres database. It has no node id and does not beat. */
export const postgresStoreLayer = (url: string): Layer.Layer<Store, StoreUnavailable> =>
  Layer.provideMerge(services(shownDatabase(url)), postgresLayer(url, commandConnections))

const postgresNodeLayer = (
  url: string,
  node: string,
  { dataDir, databaseGraceMs = 0 }: StoreOptions,
): Layer.Layer<Store, StoreUnavailable> => {
  const hosts = new DatabaseHosts(url)
  return all.pipe(
    Layer.provideMerge(accountChanges),
    Layer.provideMerge(receiptTables),
    // The node is listed in the database before it accepts jobs or claims requests.
    Layer.provideMerge(presence(node, dataDir)),
    Layer.provideMerge(migrationsLayer(shownDatabase(url))),
    Layer.provideMerge(postgresLayer(url, nodeConnections, new DatabasePresence(databaseGraceMs), hosts)),
    Layer.provide(storeCalls(hosts)),
    Layer.provide(
      Layer.mergeAll(
        Layer.succeed(StoreNode, node),
        Layer.succeed(DeletionDataDir, dataDir),
        Layer.succeed(SpoolOptions, { dataDir, isUsed: databaseGraceMs > 0 }),
      ),
    ),
  )
}

interface StoreOptions {
  readonly dataDir: string
  /**
   * Address of a Postgres database that several nodes share. Without it the store is a SQLite file in the data
   * directory.
   */
  readonly databaseUrl?: string
  /** How long a node goes on while the shared database does not answer. Default: 0. */
  readonly databaseGraceMs?: number
}

/**
 * A node's store. Creates the data directory if it is missing. With SQLite, checkpoints run on a thread of their own.
 * With a shared database, the node is identified by the id that its data directory keeps.
 */
export const storeLayer = (options: StoreOptions): Layer.Layer<Store, StoreUnavailable> => {
  const { dataDir, databaseUrl = "" } = options
  return Layer.unwrap(
    databaseUrl === ""
      ? Effect.map(databaseFile(dataDir), (file) =>
          // The checkpoint thread opens first and closes last: it finds a write-ahead log at the start and leaves none
          // at the end.
          Layer.provideMerge(noticeCopy(dataDir, file), services(file)).pipe(
            Layer.provideMerge(Layer.succeed(StoreSync, syncLog(file))),
            Layer.provide(Layer.succeed(DeletionDataDir, dataDir)),
            Layer.provideMerge(checkpointerLayer(file)),
            Layer.provideMerge(sqliteLayer(file, lastResortPages, "NORMAL")),
          ),
        )
      : Effect.map(Effect.flatMap(dataDirectory(dataDir), nodeIdOf), (node) =>
          postgresNodeLayer(databaseUrl, node, options),
        ),
  )
}

const settings = Config.all({
  dataDir: Config.NonEmptyString("EDGEWISE_DATA_DIR").pipe(Config.withDefault(".edgewise")),
  databaseUrl: Config.String("EDGEWISE_DATABASE_URL").pipe(Config.withDefault("")),
})

/** The store for commands: that of `EDGEWISE_DATABASE_URL` if set, else that of `EDGEWISE_DATA_DIR`. */
export const storeLayerFromEnvironment: Layer.Layer<Store, StoreUnavailable> = Layer.unwrap(
  Effect.gen(function* () {
    const { dataDir, databaseUrl } = yield* Effect.mapError(
      settings,
      (error) => new StoreUnavailable({ place: "environment", problem: error.message }),
    )
    const place = Layer.succeed(DeletionDataDir, dataDir)
    if (databaseUrl === "") {
      const file = yield* databaseFile(dataDir)
      const own = Layer.merge(place, Layer.succeed(Compaction, compactionOf(file)))
      return Layer.provide(sqliteStoreLayer(file), own)
    }
    if (parseDatabaseUrl(databaseUrl) === undefined) {
      return yield* new StoreUnavailable({
        place: "EDGEWISE_DATABASE_URL",
        problem: `${JSON.stringify(hidePassword(databaseUrl))} is not allowed; allowed is ${databaseUrlRule}`,
        isSetting: true,
      })
    }
    return Layer.provide(postgresStoreLayer(databaseUrl), place)
  }),
)
