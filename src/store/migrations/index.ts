// The numbered migrations, in order; each runs once in a database's life, all pending ones in one transaction.
// The store runs them whenever it opens.
import { Effect, Layer } from "effect"
import { Migrator, type SqlClient } from "effect/sql"
import { problemOf } from "../DataDir.ts"
import { StoreUnavailable } from "../StoreErrors.ts"
import accounts from "./1_accounts.ts"
import transcriptionJobs from "./2_transcription_jobs.ts"
import answers from "./3_answers.ts"

const run = Migrator.make({})({
  loader: Migrator.fromRecord({
    "1_accounts": accounts,
    "2_transcription_jobs": transcriptionJobs,
    "3_answers": answers,
  }),
  table: "migrations",
})

export const migrationsLayer: Layer.Layer<never, StoreUnavailable, SqlClient.SqlClient> = Layer.effectDiscard(
  Effect.mapError(run, (error) => new StoreUnavailable({ place: "store", problem: problemOf(error) })),
)
