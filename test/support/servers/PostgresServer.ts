// A Postgres server for one test file, whose end removes it.
import { uses } from "../groups/Uses.ts"
import { type PostgresServer, runPostgres } from "./PostgresProcess.ts"

export { databasePassword, type PostgresServer } from "./PostgresProcess.ts"

/** `settings` replace those that every server has. */
export const startPostgres = async (settings?: ReadonlyArray<string>): Promise<PostgresServer> => {
  uses("postgres", "a PostgreSQL server")
  return runPostgres(settings)
}
