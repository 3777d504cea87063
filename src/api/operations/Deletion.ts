// DELETE /v1/orgs and below (protocol 12.12): removes an organization, a user, a job or kept answers with everything that the node holds
// of them. For operators only. A store that fails is a defect, which the listener answers with 503.
import { Effect, Schema } from "effect"
import type { ModelUsage } from "#domain/models/Usage.ts"
import { AccountNotFound, InvalidRequest, JobNotFound } from "#domain/wire/Errors.ts"
import { type Deleted, Deletions } from "#store/deletion/Deletions.ts"
import type { NoSuchJob, OrgNotFound, StoreUnavailable, UserNotFound } from "#store/files/StoreErrors.ts"
import { asLongAsItTakes } from "#store/sql/StorePresence.ts"
import { operator } from "./Operations.ts"

const count = Schema.Int

export const DeletionRecord = Schema.Struct({
  status: Schema.Literal("success"),
  /** The random id of the organization, under which sums stay. */
  org_id: Schema.String,
  deleted: Schema.Struct({
    users: count,
    keys: count,
    client_secrets: count,
    jobs: count,
    answers: count,
    /** Single receipts, which became a part of `kept`. */
    receipts: count,
  }),
  /** Uploads on the disks of nodes that did not answer; they remove them when they run again. */
  waiting_uploads: count,
  /** What stays of the organization for accounting, by model, without names and texts. */
  kept: Schema.Array(
    Schema.Struct({
      model: Schema.String,
      kind: Schema.String,
      requests: count,
      input_tokens: count,
      output_tokens: count,
      audio_ms: count,
      micro_dollars: count,
    }),
  ),
})
export type DeletionRecord = typeof DeletionRecord.Type

const sumOf = (sum: ModelUsage) => ({
  model: sum.model,
  kind: sum.kind,
  requests: sum.requests,
  input_tokens: sum.inputTokens,
  output_tokens: sum.outputTokens,
  audio_ms: sum.audioMs,
  micro_dollars: sum.microDollars,
})

export const deletionRecord = (deleted: Deleted): DeletionRecord => ({
  status: "success",
  org_id: deleted.orgId,
  deleted: {
    users: deleted.users,
    keys: deleted.keys,
    client_secrets: deleted.clientSecrets,
    jobs: deleted.jobs,
    answers: deleted.answers,
    receipts: deleted.receipts,
  },
  waiting_uploads: deleted.waitingUploads,
  kept: deleted.kept.map(sumOf),
})

type Query = { readonly [Name in "org" | "user" | "job_id"]?: string }

const required = (query: Query, field: keyof Query) => {
  const value = query[field] ?? ""
  return value === ""
    ? Effect.fail(new InvalidRequest({ field, problem: "is required" }))
    : Effect.succeed(value)
}

type Failure = NoSuchJob | OrgNotFound | StoreUnavailable | UserNotFound

/** The error that the caller gets. */
const refusalOf = (error: Exclude<Failure, StoreUnavailable>): AccountNotFound | JobNotFound => {
  switch (error._tag) {
    case "OrgNotFound":
      return new AccountNotFound({ field: "org" })
    case "UserNotFound":
      return new AccountNotFound({ field: "user" })
    case "NoSuchJob":
      return new JobNotFound({ jobId: error.job })
  }
}

const answered = (deletion: Effect.Effect<Deleted, Failure>) =>
  deletion.pipe(
    Effect.catch((error) =>
      error._tag === "StoreUnavailable" ? Effect.die(error) : Effect.fail(refusalOf(error)),
    ),
    Effect.map(deletionRecord),
  )

/** A client that disconnects does not stop a deletion. */
const whole = <A, E, R>(deletion: Effect.Effect<A, E, R>) => Effect.uninterruptible(asLongAsItTakes(deletion))

export const deleteOrg = Effect.fn("Operations.deleteOrg")(function* (query: Query) {
  yield* operator
  const org = yield* required(query, "org")
  return yield* answered((yield* Deletions).org(org))
}, whole)

export const deleteUser = Effect.fn("Operations.deleteUser")(function* (query: Query) {
  yield* operator
  const org = yield* required(query, "org")
  const user = yield* required(query, "user")
  return yield* answered((yield* Deletions).user(org, user))
}, whole)

export const deleteJob = Effect.fn("Operations.deleteJob")(function* (query: Query) {
  yield* operator
  const org = yield* required(query, "org")
  const id = yield* required(query, "job_id")
  return yield* answered((yield* Deletions).job(org, id))
}, whole)

export const deleteAnswers = Effect.fn("Operations.deleteAnswers")(function* (query: Query) {
  yield* operator
  const org = yield* required(query, "org")
  return yield* answered((yield* Deletions).answers(org))
}, whole)
