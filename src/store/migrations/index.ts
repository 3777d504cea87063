// The numbered migrations, in order; each runs once in a database's life, all pending ones in one transaction.
// The store runs them whenever it opens.
import { Effect, Layer } from "effect"
import { Migrator, SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { problemOf } from "../files/DataDir.ts"
import { StoreUnavailable } from "../files/StoreErrors.ts"
import accounts from "./1_accounts.ts"
import transcriptionJobs from "./2_transcription_jobs.ts"
import answers from "./3_answers.ts"
import nodes from "./4_nodes.ts"
import developmentKey from "./5_development_key.ts"

const migrations = {
  "1_accounts": accounts,
  "2_transcription_jobs": transcriptionJobs,
  "3_answers": answers,
  "4_nodes": nodes,
  "5_development_key": developmentKey,
}

const run = Migrator.make({})({
  loader: Migrator.fromRecord(migrations),
  table: "migrations",
})

/** What a failed migration says is that it failed; why, is said by its statement. */
const reasonOf = (error: Effect.Error<typeof run> | SqlError): unknown =>
  "cause" in error && error.cause instanceof Error ? error.cause : error

const newest = Math.max(...Object.keys(migrations).map((name) => Number.parseInt(name, 10)))

/** A database that a later version has changed: this one would misread it. */
const checkVersion = (place: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{
      readonly version: number
    }>`SELECT MAX(migration_id) AS version FROM migrations`
    const version = Number(row?.version ?? 0)
    if (version <= newest) return
    const problem = `was changed by a later version of edgewise (schema ${version}); start that one, or use another database`
    return yield* new StoreUnavailable({ place, problem })
  })

/** `place` is what an operator is told where the database cannot be opened. */
export const migrationsLayer = (place: string): Layer.Layer<never, StoreUnavailable, SqlClient.SqlClient> =>
  Layer.effectDiscard(
    Effect.andThen(run, checkVersion(place)).pipe(
      Effect.mapError((error) =>
        error._tag === "StoreUnavailable"
          ? error
          : new StoreUnavailable({ place, problem: problemOf(reasonOf(error)) }),
      ),
    ),
  )
