// An Effect SqlClient over Postgres: what several nodes share. The store opens it where a database's address is set;
// everything above says SQL to the SqlClient service and must not know that Postgres is behind it, except in the few
// statements that say so (`onDialect`).
import { Effect, Layer } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Client from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import { shownDatabase } from "./DatabaseUrl.ts"
import type { PostgresConnection } from "./PostgresConnection.ts"
import { postgresError } from "./PostgresError.ts"
import { makePool } from "./PostgresPool.ts"

/** Postgres grants 100 connections by default: eight nodes, and some for the commands. A guess. */
export const nodeConnections = 10
/** A command does one thing after another. */
export const commandConnections = 2

/** A transaction in which a statement failed is answered ROLLBACK here, without an error. */
const commit = (connection: Connection): Effect.Effect<void, SqlError> =>
  Effect.flatMap(connection.executeRaw("COMMIT", []), (result) =>
    (result as { readonly command?: string }).command === "ROLLBACK"
      ? Effect.fail(
          postgresError(Object.assign(new Error("the transaction was rolled back"), { code: "25P02" })),
        )
      : Effect.void,
  )

const make = Effect.fnUntraced(function* (url: string, connections: number) {
  const pool = yield* makePool(url, shownDatabase(url), connections)
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
    // A connection that is gone took its transaction along.
    isTransaction: (connection) => !(connection as PostgresConnection).isBroken(),
    releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
  })
})

/** Connects with the first statement: whether the database is there is seen by whoever says the first one. */
export const postgresLayer = (url: string, connections: number): Layer.Layer<Client.SqlClient> =>
  Layer.effect(Client.SqlClient)(make(url, connections)).pipe(Layer.provide(Reactivity.layer))
