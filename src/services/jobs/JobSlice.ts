// One slice of a job: transcribes from where the previous slice stopped until the file ends, the organization's credit is used up,
// or the slice is over. The caller stores the outcome.
import { hash } from "node:crypto"
import { Effect, Exit, Schema, type Scope } from "effect"
import type { Model } from "#actors/model/Model.ts"
import type { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { Decoder } from "#audio/Decoder.ts"
import { listenRateHz, samplesToMs } from "#domain/audio/Audio.ts"
import type { Transcript, TranscriptProgress } from "#domain/audio/Transcript.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { costOf } from "#domain/models/Money.ts"
import { audioUsage } from "#domain/models/Usage.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { isTransient } from "#domain/wire/JobRetry.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import type { Job } from "#store/ledger/JobRows.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { findModel } from "../ModelLookup.ts"
import { runOptions, runTranscription } from "../TranscriptionRun.ts"
import { UploadDir } from "../TranscriptionUpload.ts"
import { untilStoreWorks } from "../UntilStoreWorks.ts"
import { type JobWorld, type Kept, savedOf } from "./JobWorld.ts"
import { UploadLost } from "./SharedUploads.ts"

/**
 * The job must continue in a later slice: another organization's job waits, a reload has replaced the model, or the node stops and another
 * can go on.
 */
export class SliceOver extends Schema.TaggedError<SliceOver>()("SliceOver", {}) {}

/** Another node has taken the job, because this one looked dead. Whatever this one has done since counts for nothing. */
export class JobMoved extends Schema.TaggedError<JobMoved>()("JobMoved", {}) {}

/** What ends a slice besides the errors of a request. */
export type SliceStop = SliceOver | JobMoved | UploadLost

/** Two nodes with the same value have the same weights, and so the same tokens. */
const weightsOf = ({ adapter, files, options }: ModelEntry): string =>
  hash("sha256", JSON.stringify([adapter, files, options])).slice(0, 16)

/** The progress from which a job continues, without the last slice's tokens if the model is another now, by a reload or on another node. */
const progressOn = (
  kept: Kept,
  model: Model<"transcription"> | undefined,
  weights: string,
): TranscriptProgress | undefined =>
  kept.progress === undefined ||
  kept.model === model ||
  (kept.model === undefined && kept.weights === weights)
    ? kept.progress
    : { ...kept.progress, previousTokens: [] }

/**
 * Windows of one slice if jobs of other organizations wait: 10 minutes of audio in windows of 30 s. A guess: the start of a slice
 * decodes the file up to where the previous one stopped, which takes 1/500 of that duration.
 */
const windowsOfSlice = 20

/**
 * How often a slice stores where it stands, so that another node goes on there if this one dies: a statement with all the text so far. A
 * guess: what a death costs is at most this much work.
 */
const saveEveryMs = 10_000

/** Path of the job's upload on this node's disk, for as long as the scope. */
const openUpload = (
  { uploads }: JobWorld,
  { shared, uploadPath }: Job,
): Effect.Effect<string, UploadLost, Scope.Scope> => {
  if (shared === undefined) return Effect.succeed(uploadPath)
  if (uploads === undefined)
    return Effect.fail(new UploadLost({ reason: "away", problem: "this node has no shared uploads" }))
  return Effect.flatMap(UploadDir, (folder) => uploads.fetch(uploadPath, shared, folder))
}

/** Runs one slice. Fails at once if the key of the job has been revoked. */
export const takeSlice = (
  world: JobWorld,
  job: Job,
  kept: Kept,
): Effect.Effect<
  Transcript,
  EdgeError | SliceStop,
  Scope.Scope | Accounts | Decoder | ModelRegistry | UsageLedger
> =>
  Effect.gen(function* () {
    const { drain, jobs, models } = world
    const accounts = yield* Accounts
    const principal = yield* untilStoreWorks(accounts.principalOf(job.keyId))
    const handle = yield* findModel(job.model, "transcription")
    const model = handle.current()
    const weights = weightsOf(handle.entry)
    const from = progressOn(kept, model, weights)
    kept.model = model
    kept.weights = weights
    kept.missingSinceMs = undefined
    kept.bill = undefined
    const path = yield* openUpload(world, job)
    const othersWait = jobs.othersWait(job.orgId, models())
    let windows = 0
    let savedAtMs = yield* monotonicMs
    let savedSamples = kept.progress?.samples ?? 0
    /** Stores the progress now and then. Fails if another node has taken the job. */
    const save = Effect.gen(function* () {
      const nowMs = yield* monotonicMs
      const samples = kept.progress?.samples ?? 0
      if (job.shared === undefined || samples === savedSamples || nowMs - savedAtMs < saveEveryMs) return
      if (!(yield* jobs.save(job, savedOf(kept), kept.decodedMs))) return yield* new JobMoved()
      savedAtMs = yield* monotonicMs
      savedSamples = samples
    })
    return yield* runTranscription<SliceOver | JobMoved>({
      principal,
      model: handle,
      path,
      options: runOptions(job.options),
      background: true,
      receiptId: job.id,
      settle: (reservation, settlement) =>
        Effect.sync(() => {
          kept.bill = { reservation, settlement }
        }),
      from,
      knownMs: kept.decodedMs,
      onStarted: () => {},
      onSegment: () => {},
      beforeWindow: (decodedSamples) =>
        Effect.suspend((): Effect.Effect<void, SliceOver | JobMoved> => {
          const decodedMs = Math.ceil(samplesToMs(decodedSamples, listenRateHz))
          kept.decodedMs = Math.max(kept.decodedMs ?? 0, decodedMs)
          // If a reload has replaced the model, the file continues with the new one, so that the old one can be unloaded.
          const current = handle.current()
          if (current !== undefined && current !== model) return Effect.fail(new SliceOver())
          // Another node need not wait until this one has stopped.
          if (job.shared !== undefined && drain.isClosed()) return Effect.fail(new SliceOver())
          windows++
          if (windows === 1 || windows % windowsOfSlice !== 0) return save
          return Effect.flatMap(
            othersWait,
            (wait): Effect.Effect<void, SliceOver | JobMoved> => (wait ? Effect.fail(new SliceOver()) : save),
          )
        }),
      onProgress: (progress) => {
        kept.progress = progress
        kept.engineFailures = 0
      },
      // A job that continues later is charged then. Both its owner and a node that stops interrupt it; only the owner sets `cancelled`.
      charged: (exit) => {
        const error = Exit.findErrorOption(exit)
        return error._tag === "Some"
          ? error.value._tag !== "SliceOver" && error.value._tag !== "JobMoved" && !isTransient(error.value)
          : kept.cancelled
      },
    })
  })

/**
 * Charges a job that was cancelled between two slices for this much audio, if its organization can pay. A receipt of one id is written
 * only once.
 */
export const chargeCancelled = (
  job: Job,
  samples: number,
): Effect.Effect<void, never, Accounts | ModelRegistry | UsageLedger> =>
  Effect.gen(function* () {
    const ledger = yield* UsageLedger
    const principal = yield* (yield* Accounts).principalOf(job.keyId)
    const { entry } = yield* findModel(job.model, "transcription")
    const usage = audioUsage("transcription", samples, listenRateHz)
    const microDollars = costOf(entry.price, usage)
    const reservation = yield* ledger.reserve(principal, microDollars)
    yield* ledger.settle(reservation, { model: entry.id, usage, microDollars, receiptId: job.id })
  }).pipe(Effect.scoped, Effect.ignore)
