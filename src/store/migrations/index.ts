// The numbered migrations, in order; each runs once in a database's life, all pending ones in one transaction.
// The store runs them whenever it opens.
import { Effect, Layer } from "effect"
import { Migrator, type SqlClient } from "effect/sql"
import { problemOf } from "../DataDir.ts"
import { StoreUnavailable } from "../StoreErrors.ts"
import accounts from "./1_accounts.ts"
import transcriptionJobs from "./2_transcription_jobs.ts"
import answers from "./3_answers.ts"
import nodes from "./4_nodes.ts"
import developmentKey from "./5_development_key.ts"

const run = Migrator.make({})({
  loader: Migrator.fromRecord({
    "1_accounts": accounts,
    "2_transcription_jobs": transcriptionJobs,
    "3_answers": answers,
    "4_nodes": nodes,
    "5_development_key": developmentKey,
  }),
  table: "migrations",
})

/** What a failed migration says is that it failed; why, is said by its statement. */
const reasonOf = (error: Effect.Error<typeof run>): unknown =>
  "cause" in error && error.cause instanceof Error ? error.cause : error

/** `place` is what an operator is told where the database cannot be opened. */
export const migrationsLayer = (place: string): Layer.Layer<never, StoreUnavailable, SqlClient.SqlClient> =>
  Layer.effectDiscard(
    Effect.mapError(run, (error) => new StoreUnavailable({ place, problem: problemOf(reasonOf(error)) })),
  )
