// The workers that do accepted transcription jobs, and what a caller may do with a job. An accepted job is a promise:
// it survives the node, runs again after a crash, is charged once, and its upload goes when it ends.
import { readdir, rm } from "node:fs/promises"
import { join } from "node:path"
import { Clock, Context, Effect, Exit, FiberMap, Latch, Layer, Schedule } from "effect"
import { Drain } from "#actors/Drain.ts"
import type { ModelRegistry } from "#actors/ModelRegistry.ts"
import type { Decoder } from "#audio/Decoder.ts"
import { LISTEN_RATE_HZ, samplesToMs } from "#domain/Audio.ts"
import { JobNotFound } from "#domain/Errors.ts"
import type { JobStatus } from "#domain/JobStatus.ts"
import type { Transcript } from "#domain/Transcript.ts"
import { Accounts } from "#store/Accounts.ts"
import { type Job, Jobs, type NewJob } from "#store/Jobs.ts"
import { UsageLedger } from "#store/UsageLedger.ts"
import { type EdgeError, problemOf } from "./ErrorBody.ts"
import { runTranscription, transcriptionModel } from "./TranscriptionRun.ts"
import { UploadDir } from "./TranscriptionUpload.ts"

/**
 * Jobs in work at a time. Their windows take turns at the engine, so a short one is not held up by two long ones;
 * more would take decoders away from those who wait in person (the decoder has 4 processes). A guess.
 */
const workers = 3

/** A job that cannot go on now is looked at again after this long: no credit, or a model that is away. A guess. */
const retryMs = 10_000

/** How often the table is looked at without a reason: for jobs whose pause is over. */
const idleLookMs = 1_000

const purgeEveryMs = 3_600_000

export class TranscriptionJobs extends Context.Service<
  TranscriptionJobs,
  {
    readonly submit: (job: NewJob) => Effect.Effect<string>
    /** A job of the organization; anybody else's cannot be told from none. */
    readonly find: (orgId: string, jobId: string) => Effect.Effect<Job, JobNotFound>
    /** Cancels it if it has not ended; the state it is in afterwards. */
    readonly cancel: (orgId: string, jobId: string) => Effect.Effect<JobStatus, JobNotFound>
  }
>()("edgewise/api/TranscriptionJobs") {
  static readonly layer = Layer.effect(
    TranscriptionJobs,
    Effect.suspend(() => make),
  )
}

const removeUpload = (path: string) => Effect.promise(() => rm(path, { force: true }))

/** Files that no unfinished job needs: left by a crash between an upload and its row, or after a job's end. */
const removeOrphans = (dir: string, needed: ReadonlySet<string>) =>
  Effect.promise(async () => {
    const names = await readdir(dir).catch(() => [])
    for (const name of names) {
      const path = join(dir, name)
      if (!needed.has(path)) await rm(path, { force: true })
    }
  })

/** Whether a failure passes by itself, so that the job shall wait instead of fail. */
const passes = (error: EdgeError): boolean =>
  error._tag === "PaymentRequired" ||
  error._tag === "AtCapacity" ||
  error._tag === "ModelUnavailable" ||
  error._tag === "ModelNotLoaded" ||
  error._tag === "EngineFailed" ||
  error._tag === "Draining"

/** Times an engine may die under one job before the job is given up: the audio may be what kills it. */
const maxEngineFailures = 3

const make = Effect.gen(function* () {
  const jobs = yield* Jobs
  const accounts = yield* Accounts
  const drain = yield* Drain
  const ledger = yield* UsageLedger
  const services = yield* Effect.context<Decoder | ModelRegistry | UsageLedger>()
  const running = yield* FiberMap.make<string>()
  const work = Latch.makeUnsafe(true)
  /** When an organization's job was last taken; the one that waited longest is next. */
  const served = new Map<string, number>()
  const engineFailures = new Map<string, number>()
  let turn = 0

  yield* jobs.recover
  yield* removeOrphans(yield* UploadDir, yield* jobs.uploads)

  const finish = (job: Job, event: "complete" | "fail", change: { note?: string; transcript?: Transcript }) =>
    Effect.gen(function* () {
      engineFailures.delete(job.id)
      yield* jobs.change(job.id, event, change)
      yield* removeUpload(job.uploadPath)
    })

  const onError = (job: Job, error: EdgeError, decodedMs: number | undefined) =>
    Effect.gen(function* () {
      const failures = (engineFailures.get(job.id) ?? 0) + (error._tag === "EngineFailed" ? 1 : 0)
      const note = problemOf(error).detail
      if (!passes(error) || failures >= maxEngineFailures) return yield* finish(job, "fail", { note })
      engineFailures.set(job.id, failures)
      const notBeforeMs = (yield* Clock.currentTimeMillis) + retryMs
      const waiting = error._tag === "PaymentRequired" ? "paused: the organization has no credit left" : note
      yield* jobs.change(job.id, "return", {
        note: waiting,
        notBeforeMs,
        ...(decodedMs === undefined ? {} : { decodedMs }),
      })
    })

  const runJob = (job: Job) =>
    Effect.gen(function* () {
      let decodedMs = job.decodedMs
      const transcribed = yield* Effect.gen(function* () {
        const principal = yield* accounts.principalOf(job.keyId)
        const entry = yield* transcriptionModel(job.model)
        const { language, punctuation, ...options } = job.options
        return yield* runTranscription({
          principal,
          entry,
          path: job.uploadPath,
          options: {
            ...options,
            language: language ?? undefined,
            punctuation: punctuation ?? undefined,
            words: options.granularities.includes("word"),
          },
          background: true,
          receiptId: job.id,
          ...(job.decodedMs === undefined ? {} : { knownMs: job.decodedMs }),
          onSegment: () => {},
          onDecoded: (samples) => {
            decodedMs = Math.max(decodedMs ?? 0, Math.ceil(samplesToMs(samples, LISTEN_RATE_HZ)))
          },
        })
      }).pipe(Effect.scoped, Effect.provideContext(services), Effect.exit)
      if (Exit.isSuccess(transcribed)) {
        // The receipt first: a crash in between runs the job again, and its receipt is written once.
        yield* Effect.ignore(ledger.flush)
        return yield* finish(job, "complete", { transcript: transcribed.value })
      }
      const error = Exit.findErrorOption(transcribed)
      if (error._tag === "Some") return yield* onError(job, error.value, decodedMs)
      if (Exit.hasInterrupts(transcribed)) return yield* Effect.failCause(transcribed.cause as never)
      yield* Effect.logError("transcription job died").pipe(Effect.annotateLogs({ job: job.id }))
      yield* finish(job, "fail", { note: "The transcription failed" })
    }).pipe(
      // A node that stops gives the job back; a cancelled one has left that state already.
      Effect.onInterrupt(() => jobs.change(job.id, "return")),
      Effect.ensuring(Effect.sync(() => work.openUnsafe())),
    )

  const dispatch = Effect.gen(function* () {
    yield* Effect.raceFirst(work.await, Effect.sleep(idleLookMs))
    work.closeUnsafe()
    while (!drain.isClosed() && (yield* FiberMap.size(running)) < workers) {
      const job = yield* jobs.take((orgId) => served.get(orgId) ?? 0)
      if (job === undefined) break
      if (served.size > 10_000) served.clear()
      served.set(job.orgId, ++turn)
      yield* FiberMap.run(running, job.id, runJob(job))
    }
  })
  yield* Effect.forkScoped(Effect.forever(dispatch))
  yield* Effect.forkScoped(Effect.repeat(jobs.purge, Schedule.spaced(purgeEveryMs)))

  const find = (orgId: string, jobId: string) =>
    Effect.flatMap(jobs.find(jobId), (job) =>
      job === undefined || job.orgId !== orgId
        ? Effect.fail(new JobNotFound({ jobId }))
        : Effect.succeed(job),
    )

  return TranscriptionJobs.of({
    submit: (job) => Effect.tap(jobs.accept(job), () => Effect.sync(() => work.openUnsafe())),
    find,
    cancel: Effect.fnUntraced(function* (orgId, jobId) {
      const job = yield* find(orgId, jobId)
      if (!(yield* jobs.change(jobId, "cancel"))) return (yield* find(orgId, jobId)).status
      yield* FiberMap.remove(running, jobId)
      yield* removeUpload(job.uploadPath)
      return "cancelled"
    }),
  })
})
