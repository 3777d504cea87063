// Postgres servers for tests: one that all files of a worker share, and servers of their own for files that kill theirs.
import { uses } from "../groups/Uses.ts"
import { type PostgresServer, runPostgres } from "./PostgresProcess.ts"

export { databasePassword, type PostgresServer } from "./PostgresProcess.ts"

/** A server of the caller, which removes it at its end. `settings` replace those that every server has. */
export const startPostgres = async (settings?: ReadonlyArray<string>): Promise<PostgresServer> => {
  uses("postgres", "a PostgreSQL server")
  return runPostgres(settings)
}

let shared: Promise<PostgresServer> | undefined

/** The server of all files of this worker, each of which has schemas of its own in it: a start takes two seconds. It ends with the worker. */
export const sharedPostgres = (): Promise<Pick<PostgresServer, "freshUrl" | "port">> => {
  uses("postgres", "a PostgreSQL server")
  shared ??= runPostgres()
  return shared
}
