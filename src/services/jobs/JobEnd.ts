// Stores the outcome of a slice: the job is completed, has failed, or goes back into the queue.
import { type Context, Effect } from "effect"
import type { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { Decoder } from "#audio/Decoder.ts"
import { removeSpooled } from "#audio/SpoolFile.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { type EdgeError, isRefusal } from "#domain/wire/Failures.ts"
import { retryAfterMs } from "#domain/wire/JobRetry.ts"
import { detailOf } from "#http/ErrorBody.ts"
import type { NodeMeters } from "#http/NodeMeters.ts"
import type { Accounts } from "#store/accounts/Accounts.ts"
import type { Job, JobChange } from "#store/ledger/JobRows.ts"
import { type Jobs, unpaidNote } from "#store/ledger/Jobs.ts"
import type { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { reportJob } from "../AnswerFailures.ts"
import { chargeCancelled, type Kept } from "./JobSlice.ts"
import type { JobTrace } from "./JobTrace.ts"

/** A job that its organization cannot pay for fails at this age, and its upload is removed. A guess. */
const unpaidMs = 24 * 3_600_000

/**
 * How long jobs wait for a model that a reload has removed, so that a mistake in the catalog can be corrected. After this they
 * fail. A guess.
 */
const removedModelMs = 600_000

/** The services and the state that all jobs of a node share. */
export interface JobWorld {
  readonly jobs: Jobs["Service"]
  readonly ledger: UsageLedger["Service"]
  readonly registry: ModelRegistry["Service"]
  readonly meters: NodeMeters
  readonly services: Context.Context<Accounts | Decoder | ModelRegistry | UsageLedger>
  /** Job id → progress of the unfinished job. Lost in a crash of the node, after which jobs start from the beginning. */
  readonly kept: Map<string, Kept>
  /** Ids of jobs whose outcome could not be stored. They go back into the queue once the database works again. */
  readonly lost: Set<string>
}

const removeUpload = (path: string) => Effect.promise(() => removeSpooled(path))

export const finish = (
  { jobs, kept, ledger }: JobWorld,
  job: Job,
  event: "complete" | "fail",
  change: JobChange,
  trace: JobTrace | undefined,
  isOurFault = false,
): Effect.Effect<void> => {
  trace?.ends(event === "complete" ? "completed" : "failed", isOurFault)
  const writing = Effect.gen(function* () {
    // The receipt is written first. After a crash in between the job runs again, but a receipt of its id is written only once.
    yield* Effect.ignore(ledger.flush)
    yield* jobs.change(job.id, event, change)
    kept.delete(job.id)
    yield* removeUpload(job.uploadPath)
  })
  return trace === undefined ? writing : trace.settle(writing)
}

/** Whether the job's model has been missing in the catalog for too long. A model that an operator has unloaded is not missing. */
const isRemoved = ({ registry }: JobWorld, job: Job, state: Kept) =>
  Effect.map(monotonicMs, (nowMs) => {
    if (registry.find(job.model) !== undefined) return false
    state.missingSinceMs ??= nowMs
    return nowMs - state.missingSinceMs >= removedModelMs
  })

/** Fails the job, or returns it to the queue where a later attempt may succeed. */
export const afterFailure = (
  world: JobWorld,
  job: Job,
  state: Kept,
  error: EdgeError,
  trace: JobTrace | undefined,
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { jobs, services } = world
    const note = detailOf(error)
    const isOurFault = !isRefusal(error)
    if (error._tag === "ModelNotLoaded" && (yield* isRemoved(world, job, state))) {
      yield* Effect.provideContext(reportJob(job, error), services)
      const removed = `Model not loaded: the node no longer has ${job.model}`
      return yield* finish(world, job, "fail", { note: removed }, trace)
    }
    if (error._tag === "EngineFailed") state.engineFailures++
    const waitMs = retryAfterMs(error, state.engineFailures)
    const isUnpaid = error._tag === "PaymentRequired"
    if (isUnpaid && (yield* jobs.now) - job.acceptedAtMs > unpaidMs) {
      return yield* finish(world, job, "fail", { note: "The organization had no credit for a day" }, trace)
    }
    yield* Effect.provideContext(reportJob(job, error, waitMs), services)
    if (waitMs === undefined) return yield* finish(world, job, "fail", { note }, trace, isOurFault)
    trace?.ends("paused", isOurFault)
    yield* jobs.change(job.id, "return", {
      note: isUnpaid ? unpaidNote : note,
      waitMs,
      ...(state.decodedMs === undefined ? {} : { decodedMs: state.decodedMs }),
    })
  })

/** Charges a cancelled job for its progress and removes its upload. Call it when the job no longer runs. */
export const afterCancellation = (
  { kept, ledger, services }: JobWorld,
  job: Job,
  isCharged: boolean,
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const state = kept.get(job.id)
    if (isCharged && state?.progress !== undefined)
      yield* Effect.provideContext(chargeCancelled(job, state.progress), services)
    kept.delete(job.id)
    yield* Effect.ignore(ledger.flush)
    yield* removeUpload(job.uploadPath)
  })
