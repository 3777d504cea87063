// Stores the outcome of a slice: the job is completed, has failed, or goes back into the queue.
import { Context, Effect } from "effect"
import { removeSpooled } from "#audio/SpoolFile.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { type EdgeError, isRefusal } from "#domain/wire/Failures.ts"
import { retryAfterMs } from "#domain/wire/JobRetry.ts"
import { isFinished } from "#domain/wire/JobStatus.ts"
import { detailOf } from "#http/ErrorBody.ts"
import type { Job, JobChange } from "#store/ledger/JobRows.ts"
import { unpaidNote } from "#store/ledger/Jobs.ts"
import { reportJob } from "../AnswerFailures.ts"
import { untilStoreWorks } from "../UntilStoreWorks.ts"
import { chargeCancelled } from "./JobSlice.ts"
import type { JobTrace } from "./JobTrace.ts"
import { type JobWorld, type Kept, savedOf } from "./JobWorld.ts"
import type { UploadLost } from "./SharedUploads.ts"

/** A job that its organization cannot pay for fails at this age, and its upload is removed. A guess. */
const unpaidMs = 24 * 3_600_000

/**
 * How long jobs wait for a model that a reload has removed, so that a mistake in the catalog can be corrected. After this they
 * fail. A guess.
 */
export const removedModelMs = 600_000

/** Of a shared upload that this node does not reach, the others remove the file after a day. */
const removeUpload = ({ uploads }: JobWorld, { shared, uploadPath }: Job): Effect.Effect<void> =>
  shared === undefined
    ? Effect.promise(() => removeSpooled(uploadPath))
    : (uploads?.remove(uploadPath) ?? Effect.void)

/** What the row of a job that goes back into the queue must hold for the next worker: of a shared one, its progress. */
export const returning = ({ shared }: Job, kept: Kept): JobChange => ({
  ...(kept.decodedMs === undefined ? {} : { decodedMs: kept.decodedMs }),
  ...(shared === undefined ? {} : { saved: savedOf(kept) }),
})

/** Puts the job back into the queue. The next worker of a shared one reads its row, also if it is this node. */
export const giveBack = (
  { jobs, kept }: JobWorld,
  job: Job,
  state: Kept,
  change: JobChange = {},
): Effect.Effect<void> =>
  Effect.map(untilStoreWorks(jobs.change(job, "return", { ...returning(job, state), ...change })), () => {
    if (job.shared !== undefined) kept.delete(job.id)
  })

/**
 * Pause of a job whose upload cannot be reached from here, milliseconds. A guess: another node takes it then, or the folder is back. Tests
 * shorten it.
 */
export const UploadRetry = Context.Reference<number>("edgewise/api/UploadRetry", {
  defaultValue: () => 10_000,
})

/** After the upload of a job could not be read. Nothing is charged. */
export const afterUploadLost = (
  world: JobWorld,
  job: Job,
  state: Kept,
  { problem, reason }: UploadLost,
  trace: JobTrace | undefined,
): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* Effect.logError(
      reason === "away"
        ? "shared uploads cannot be reached; jobs wait"
        : "the upload of a job is lost; it fails",
    ).pipe(Effect.annotateLogs({ job: job.id, problem }))
    if (reason === "away") {
      trace?.ends("paused", true)
      const note = "paused: the uploaded file cannot be read now"
      return yield* giveBack(world, job, state, { note, waitMs: world.uploadRetryMs })
    }
    const note =
      reason === "gone"
        ? "The uploaded file is no longer there"
        : "The uploaded file was changed after it was accepted"
    yield* finish(world, job, "fail", { note }, trace, true)
  })

/**
 * Ends the job. What it costs is charged in the same transaction, and nothing happens if another node has taken the job. Waits until the
 * store works.
 */
export const finish = (
  world: JobWorld,
  job: Job,
  event: "complete" | "fail",
  change: JobChange,
  trace: JobTrace | undefined,
  isOurFault = false,
): Effect.Effect<void> => {
  trace?.ends(event === "complete" ? "completed" : "failed", isOurFault)
  const { jobs, kept, ledger } = world
  const bill = kept.get(job.id)?.bill
  const ending = jobs.change(job, event, change)
  const writing = Effect.gen(function* () {
    const isOurs = yield* untilStoreWorks(
      bill === undefined ? ending : ledger.settleIf(bill.reservation, bill.settlement, ending),
    )
    kept.delete(job.id)
    // A connection that broke at the commit may have hidden that it was done.
    const after = isOurs ? undefined : yield* jobs.find(job.id)
    if (isOurs || (after?.attempt === job.attempt && isFinished(after.status)))
      yield* removeUpload(world, job)
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
    yield* giveBack(world, job, state, { note: isUnpaid ? unpaidNote : note, waitMs })
  })

/** Charges a job that was cancelled during a slice of this node for what the slice has transcribed. Call it before its scope closes. */
export const chargeSlice = ({ jobs, ledger }: JobWorld, job: Job, state: Kept): Effect.Effect<void> =>
  state.bill === undefined
    ? Effect.void
    : ledger.settleIf(state.bill.reservation, state.bill.settlement, jobs.wasCancelled(job)).pipe(
        Effect.asVoid,
        Effect.catchDefect((cause) =>
          Effect.logError("a cancelled job could not be charged", String(cause)).pipe(
            Effect.annotateLogs({ job: job.id }),
          ),
        ),
      )

/** Charges a cancelled job for its progress and removes its upload. Call it when the job no longer runs. */
export const afterCancellation = (world: JobWorld, job: Job, isCharged: boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { kept, ledger, services } = world
    const state = kept.get(job.id)
    const samples = state === undefined ? job.heardSamples : (state.progress?.samples ?? 0)
    if (isCharged && state?.bill === undefined && samples > 0)
      yield* Effect.provideContext(chargeCancelled(job, samples), services)
    kept.delete(job.id)
    yield* Effect.ignore(ledger.flush)
    yield* removeUpload(world, job)
  })
