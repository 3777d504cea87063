// The numbered migrations, in order. Each runs once per database, all pending ones in one transaction, whenever the
// store opens.
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
import clientSecrets from "./6_client_secrets.ts"
import clientSecretSpending from "./7_client_secret_spending.ts"
import deletions from "./8_deletions.ts"
import presence from "./9_presence.ts"
import leases from "./10_leases.ts"
import accountChanges from "./11_account_changes.ts"
import sharedJobs from "./12_shared_jobs.ts"
import padding from "./13_padding.ts"
import receiptDays from "./14_receipt_days.ts"

const migrations = {
  "1_accounts": accounts,
  "2_transcription_jobs": transcriptionJobs,
  "3_answers": answers,
  "4_nodes": nodes,
  "5_development_key": developmentKey,
  "6_client_secrets": clientSecrets,
  "7_client_secret_spending": clientSecretSpending,
  "8_deletions": deletions,
  "9_presence": presence,
  "10_leases": leases,
  "11_account_changes": accountChanges,
  "12_shared_jobs": sharedJobs,
  "13_padding": padding,
  "14_receipt_days": receiptDays,
}

const run = Migrator.make({})({
  loader: Migrator.fromRecord(migrations),
  table: "migrations",
})

/** The cause of a failed migration: the error of its statement, because the outer error only says that it failed. */
const reasonOf = (error: Effect.Error<typeof run> | SqlError): unknown =>
  "cause" in error && error.cause instanceof Error ? error.cause : error

/** The schema of this version: the number of its newest migration. */
export const newestSchema = Math.max(...Object.keys(migrations).map((name) => Number.parseInt(name, 10)))

/** One line for each upgrade; none for a new store. */
const reportUpgrade = (place: string, applied: ReadonlyArray<readonly [id: number, name: string]>) => {
  const first = applied[0]?.[0] ?? 1
  return first === 1
    ? Effect.void
    : Effect.logInfo("the store was upgraded").pipe(
        Effect.annotateLogs({ place, from: first - 1, to: newestSchema }),
      )
}

/**
 * The oldest schema whose version of edgewise works on the tables of this one. The nodes of a shared database are replaced one after the
 * other, so that both versions run for a while, and one of the old version may start again.
 */
const oldestBeside = 12

/** Row of `meta`: the schema of the version that wrote it, and its `oldestBeside`. */
const besideName = "oldest schema beside"
const beside = `${newestSchema} ${oldestBeside}`

/**
 * Refuses a database that a later version has changed, because this version would misread it, unless that one says that this one can work
 * beside it.
 */
const checkVersion = (place: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{
      readonly version: number
    }>`SELECT MAX(migration_id) AS version FROM migrations`
    const version = Number(row?.version ?? 0)
    // What a much later version has made of the table is not known.
    const [said] = yield* Effect.orElseSucceed(
      sql<{ readonly value: string }>`SELECT value FROM meta WHERE name = ${besideName}`,
      () => [],
    )
    if (version <= newestSchema) {
      if (said?.value === beside) return
      return yield* sql`INSERT INTO meta (name, value) VALUES (${besideName}, ${beside})
        ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value`
    }
    const [by, oldest] = (said?.value ?? "").split(" ").map(Number)
    if (by === version && (oldest ?? version) <= newestSchema) {
      return yield* Effect.logInfo(
        "the store was changed by a later version, beside which this one works",
      ).pipe(Effect.annotateLogs({ place, schema: version, own: newestSchema }))
    }
    const problem = `was changed by a later version of edgewise (schema ${version}); start that one, or use another database`
    return yield* new StoreUnavailable({ place, problem })
  })

/** `place` names the database in errors for the operator. */
export const migrationsLayer = (place: string): Layer.Layer<never, StoreUnavailable, SqlClient.SqlClient> =>
  Layer.effectDiscard(
    Effect.andThen(
      Effect.flatMap(run, (applied) => reportUpgrade(place, applied)),
      checkVersion(place),
    ).pipe(
      Effect.mapError((error) =>
        error._tag === "StoreUnavailable"
          ? error
          : new StoreUnavailable({ place, problem: problemOf(reasonOf(error)) }),
      ),
    ),
  )
