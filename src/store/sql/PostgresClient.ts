// An Effect SqlClient over Postgres, for a database that several nodes share. Code above uses the SqlClient service and
// does not depend on Postgres, except in the few statements with `onDialect`.
import { Effect, Layer } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Client from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import { DatabaseHosts, shownDatabase } from "./DatabaseUrl.ts"
import type { PostgresConnection } from "./PostgresConnection.ts"
import { postgresError } from "./PostgresError.ts"
import { makePool } from "./PostgresPool.ts"
import { DatabasePresence, StorePresence } from "./StorePresence.ts"

/** Postgres grants 100 connections by default: enough for eight nodes and some commands. A guess. */
export const nodeConnections = 10
/** A command runs its statements one after another. */
export const commandConnections = 2

/** Postgres answers COMMIT with ROLLBACK, without an error, if a statement of the transaction failed. */
const commit = (connection: Connection): Effect.Effect<void, SqlError> =>
  Effect.flatMap(connection.executeRaw("COMMIT", []), (result) =>
    (result as { readonly command?: string }).command === "ROLLBACK"
      ? Effect.fail(
          postgresError(Object.assign(new Error("the transaction was rolled back"), { code: "25P02" })),
        )
      : Effect.void,
  )

const make = Effect.fnUntraced(function* (
  url: string,
  connections: number,
  presence: DatabasePresence,
  hosts: DatabaseHosts,
) {
  const pool = yield* makePool(hosts, shownDatabase(url), connections, presence)
  return yield* Client.make({
    acquirer: pool.acquirer,
    borrower: pool.borrower,
    compiler: Statement.makeCompiler({
      dialect: "pg",
      placeholder: (index) => `$${index}`,
      onIdentifier: Statement.defaultEscape('"'),
      onRecordUpdate: () => ["", []],
      onCustom: () => ["", []],
    }),
    driver: "postgres",
    spanAttributes: [["db.system.name", "postgresql"]],
    commit,
    // A lost connection has lost its transaction.
    isTransaction: (connection) => !(connection as PostgresConnection).isBroken(),
    releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
  })
})

/** Connects with the first statement, which fails if the database is not there. */
export const postgresLayer = (
  url: string,
  connections: number,
  presence = new DatabasePresence(0),
  hosts = new DatabaseHosts(url),
): Layer.Layer<Client.SqlClient> =>
  Layer.effect(Client.SqlClient)(make(url, connections, presence, hosts)).pipe(
    Layer.provide(Reactivity.layer),
    Layer.merge(Layer.succeed(StorePresence, presence)),
  )
