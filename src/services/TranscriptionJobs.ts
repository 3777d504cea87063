// The workers that do accepted transcription jobs, and what a caller may do with a job. An accepted job is a promise:
// it survives the node, runs again after a crash, is charged once, and its upload goes when it ends. What one job does
// in its turn is TranscriptionTurn's matter; here it is decided whose turn it is, and what follows from its end.
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { Cause, Context, Effect, Exit, FiberMap, Latch, Layer, Schedule } from "effect"
import { Drain } from "#actors/Drain.ts"
import { admitBatch } from "#actors/device/MemoryPressureLevel.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { Decoder } from "#audio/Decoder.ts"
import { removeSpooled } from "#audio/SpoolFile.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import {
  AtCapacity,
  type Draining,
  JobNotFound,
  type MemoryPressure,
  PaymentRequired,
} from "#domain/wire/Errors.ts"
import { type EdgeError, isRefusal } from "#domain/wire/Failures.ts"
import { retryAfterMs } from "#domain/wire/JobRetry.ts"
import type { JobStatus } from "#domain/wire/JobStatus.ts"
import { detailOf } from "#http/ErrorBody.ts"
import { CurrentNodeMeters } from "#http/NodeMeters.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import type { Accounts } from "#store/accounts/Accounts.ts"
import { StoreSync, syncFile } from "#store/files/Durable.ts"
import { isStoreDefect } from "#store/files/StoreErrors.ts"
import { type Job, type JobChange, Jobs, type NewJob, unpaidNote } from "#store/ledger/Jobs.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { reportJob } from "./AnswerFailures.ts"
import { inTraceOf, JobTrace } from "./JobTrace.ts"
import { isAnothersRing, ringFolder } from "./TranscriptionAudio.ts"
import { chargeCancelled, type Kept, newKept, TurnOver, takeTurn } from "./TranscriptionShare.ts"
import { UploadDir } from "./TranscriptionUpload.ts"

/**
 * Jobs in work at a time. Two keep an engine busy (one decodes a file while the other is heard) and leave half of the
 * node's four decoders to those who wait in person.
 */
const workers = 2

/** How often the table is looked at without a reason: for jobs whose pause is over. */
const idleLookMs = 500

/** A job that its organization cannot pay for fails at this age, and its upload is removed. A guess. */
const unpaidMs = 24 * 3_600_000

const purgeEveryMs = 3_600_000

/** How often jobs of nodes that have not come back are looked for. A guess: they have waited for an hour by then. */
const lostEveryMs = 60_000

/**
 * How long jobs wait for a model that a reload has removed: an edit that was a mistake can be mended meanwhile. Then they
 * fail. A guess.
 */
const removedModelMs = 600_000

/** After the database failed: a guess at how long a full disk or a lock lasts at least. */
const storeRetryMs = 1_000

/** When a caller may find room for another job. A guess. */
const fullRetryMs = 30_000

export class TranscriptionJobs extends Context.Service<
  TranscriptionJobs,
  {
    /**
     * Refuses before an upload what `submit` would refuse after it. An organization with a job that waits for credit
     * submits no further ones.
     */
    readonly admit: (
      orgId: string,
      model: string,
    ) => Effect.Effect<void, AtCapacity | MemoryPressure | PaymentRequired>
    /** Once it has succeeded, the job survives a loss of power. */
    readonly submit: (job: NewJob) => Effect.Effect<string, AtCapacity | Draining | PaymentRequired>
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

const removeUpload = (path: string) => Effect.promise(() => removeSpooled(path))

/** Files that no unfinished job needs: left by a crash between an upload and its row, after a job's end, in a turn. */
const removeOrphans = (dir: string, needed: ReadonlySet<string>) =>
  Effect.promise(async () => {
    const entries = await readdir(dir, { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      const path = join(dir, entry.name)
      if (!entry.isDirectory() && !needed.has(path) && !isAnothersRing(entry.name)) await removeSpooled(path)
    }
  })

const make = Effect.gen(function* () {
  const jobs = yield* Jobs
  const syncStore = yield* StoreSync
  const drain = yield* Drain
  const ledger = yield* UsageLedger
  const meters = yield* CurrentNodeMeters
  const services = yield* Effect.context<Accounts | Decoder | ModelRegistry | UsageLedger>()
  const registry = yield* ModelRegistry
  const running = yield* FiberMap.make<string>()
  const work = Latch.makeUnsafe(true)
  /** Work that comes every millisecond is no reason to ask that often for jobs that another node has ended. */
  let lookedElsewhereAtMs = Number.NEGATIVE_INFINITY
  /** When an organization's job was last taken; the one that waited longest is next. */
  const served = new Map<string, number>()
  /** What unfinished jobs have done so far; a crash forgets it, and they start anew. */
  const kept = new Map<string, Kept>()
  /** Jobs whose end could not be written: they go back into the queue once the database works again. */
  const lost = new Set<string>()
  let turn = 0

  yield* jobs.recover
  const uploads = yield* UploadDir
  yield* removeOrphans(uploads, yield* jobs.uploads)
  yield* removeOrphans(ringFolder(uploads), new Set())

  const finish = (
    job: Job,
    event: "complete" | "fail",
    change: JobChange,
    trace: JobTrace | undefined,
    isOurFault = false,
  ) => {
    trace?.ends(event === "complete" ? "completed" : "failed", isOurFault)
    const writing = Effect.gen(function* () {
      // The receipt first: a crash in between runs the job again, and its receipt is written once.
      yield* Effect.ignore(ledger.flush)
      yield* jobs.change(job.id, event, change)
      kept.delete(job.id)
      yield* removeUpload(job.uploadPath)
    })
    return trace === undefined ? writing : trace.settle(writing)
  }

  /** Whether its model has been gone from the catalog for too long; one that an operator has unloaded is not gone. */
  const isRemoved = (job: Job, state: Kept) =>
    Effect.map(monotonicMs, (nowMs) => {
      if (registry.find(job.model) !== undefined) return false
      state.missingSinceMs ??= nowMs
      return nowMs - state.missingSinceMs >= removedModelMs
    })

  const onError = (job: Job, state: Kept, error: EdgeError, trace: JobTrace | undefined) =>
    Effect.gen(function* () {
      const note = detailOf(error)
      const isOurFault = !isRefusal(error)
      if (error._tag === "ModelNotLoaded" && (yield* isRemoved(job, state))) {
        yield* Effect.provideContext(reportJob(job, error), services)
        const removed = `Model not loaded: the node no longer has ${job.model}`
        return yield* finish(job, "fail", { note: removed }, trace)
      }
      if (error._tag === "EngineFailed") state.engineFailures++
      const waitMs = retryAfterMs(error, state.engineFailures)
      const isUnpaid = error._tag === "PaymentRequired"
      if (isUnpaid && (yield* jobs.now) - job.acceptedAtMs > unpaidMs) {
        return yield* finish(job, "fail", { note: "The organization had no credit for a day" }, trace)
      }
      yield* Effect.provideContext(reportJob(job, error, waitMs), services)
      if (waitMs === undefined) return yield* finish(job, "fail", { note }, trace, isOurFault)
      trace?.ends("paused", isOurFault)
      yield* jobs.change(job.id, "return", {
        note: isUnpaid ? unpaidNote : note,
        waitMs,
        ...(state.decodedMs === undefined ? {} : { decodedMs: state.decodedMs }),
      })
    })

  const runTurn = (job: Job, state: Kept, trace: JobTrace | undefined) =>
    Effect.gen(function* () {
      const turn = takeTurn(job, state, jobs.othersWait(job.orgId))
      const exit = yield* (trace === undefined ? turn : trace.follow(turn)).pipe(
        Effect.scoped,
        Effect.provideContext(services),
        Effect.exit,
      )
      if (Exit.isSuccess(exit)) return yield* finish(job, "complete", { transcript: exit.value }, trace)
      const error = Exit.findErrorOption(exit)
      if (error._tag === "Some") {
        if (!(error.value instanceof TurnOver)) return yield* onError(job, state, error.value, trace)
        trace?.ends("turn over")
        return void (yield* jobs.change(job.id, "return"))
      }
      if (Exit.hasInterrupts(exit)) return yield* Effect.interrupt
      // Nothing is wrong with the job: it goes on when the store works again.
      if (exit.cause.reasons.some((reason) => Cause.isDieReason(reason) && isStoreDefect(reason.defect))) {
        return void lost.add(job.id)
      }
      yield* Effect.provideContext(reportJob(job, exit.cause), services)
      yield* finish(job, "fail", { note: "The transcription failed" }, trace, true)
    }).pipe(
      // A node that stops gives the job back; a cancelled one has left that state already.
      Effect.onInterrupt(() => jobs.change(job.id, "return")),
      Effect.catchDefect((cause) =>
        Effect.logError("the end of a transcription job could not be written", String(cause)).pipe(
          Effect.annotateLogs({ job: job.id }),
          Effect.andThen(Effect.sync(() => lost.add(job.id))),
        ),
      ),
      Effect.ensuring(
        Effect.sync(() => {
          trace?.over()
          work.openUnsafe()
        }),
      ),
    )

  const runJob = (job: Job) =>
    Effect.suspend(() => {
      const state = kept.get(job.id) ?? newKept(job.decodedMs)
      kept.set(job.id, state)
      return runTurn(job, state, JobTrace.begin(meters, job, state))
    })

  /** What follows here from a cancellation, wherever the owner has asked for it. */
  const end = Effect.fnUntraced(function* (job: Job) {
    const state = kept.get(job.id)
    // One that was given up for lost was given up by us: it costs nothing.
    const isCharged = job.status !== "failed"
    if (state !== undefined) state.cancelled = isCharged
    yield* FiberMap.remove(running, job.id)
    if (isCharged && state?.progress !== undefined) {
      yield* Effect.provideContext(chargeCancelled(job, state.progress), services)
    }
    kept.delete(job.id)
    yield* Effect.ignore(ledger.flush)
    yield* removeUpload(job.uploadPath)
  }, Effect.uninterruptible)

  const endOthers = Effect.gen(function* () {
    const nowMs = yield* monotonicMs
    if (nowMs - lookedElsewhereAtMs < idleLookMs) return
    lookedElsewhereAtMs = nowMs
    for (const job of yield* jobs.endedElsewhere) {
      yield* end(job)
      yield* jobs.forget(job.id)
    }
  })

  const dispatch = Effect.gen(function* () {
    yield* Effect.raceFirst(work.await, Effect.sleep(idleLookMs))
    work.closeUnsafe()
    yield* endOthers
    for (const id of lost) {
      yield* jobs.change(id, "return")
      lost.delete(id)
    }
    while (!drain.isClosed() && (yield* FiberMap.size(running)) < workers) {
      const job = yield* jobs.take((orgId) => served.get(orgId) ?? 0)
      if (job === undefined) break
      // Bounded by forgetting: who is forgotten is merely next.
      if (served.size > 10_000) served.clear()
      served.set(job.orgId, ++turn)
      yield* FiberMap.run(running, job.id, runJob(job))
    }
  }).pipe(
    // A defect here is the database's: accepted jobs wait until it works again.
    Effect.catchDefect((cause) =>
      Effect.logError("transcription jobs could not be read", String(cause)).pipe(
        Effect.andThen(Effect.sleep(storeRetryMs)),
      ),
    ),
  )
  yield* Effect.forkScoped(Effect.forever(dispatch))
  yield* jobs.failLost.pipe(
    Effect.tap((count) =>
      count === 0
        ? Effect.void
        : Effect.logWarning("transcription jobs of nodes that have not come back have failed").pipe(
            Effect.annotateLogs({ jobs: count }),
          ),
    ),
    Effect.catchDefect((cause) => Effect.logError("lost jobs could not be looked for", String(cause))),
    Effect.repeat(Schedule.spaced(lostEveryMs)),
    Effect.forkScoped,
  )
  yield* jobs.purge.pipe(
    Effect.catchDefect((cause) => Effect.logError("old jobs could not be removed", String(cause))),
    Effect.repeat(Schedule.spaced(purgeEveryMs)),
    Effect.forkScoped,
  )

  const find = (orgId: string, jobId: string) =>
    Effect.flatMap(jobs.find(jobId), (job) =>
      job === undefined || job.orgId !== orgId
        ? Effect.fail(new JobNotFound({ jobId }))
        : Effect.succeed(job),
    )
  const paid = (orgId: string): Effect.Effect<void, PaymentRequired> =>
    Effect.flatMap(jobs.isUnpaid(orgId), (unpaid) =>
      unpaid ? Effect.fail(new PaymentRequired()) : Effect.void,
    )
  const full = (model: string) => new AtCapacity({ model, retryAfterMs: fullRetryMs })

  return TranscriptionJobs.of({
    admit: Effect.fnUntraced(function* (orgId, model) {
      yield* admitBatch
      yield* paid(orgId)
      if (!(yield* jobs.hasRoom(orgId))) return yield* full(model)
    }),
    submit: (job) =>
      Effect.gen(function* () {
        yield* paid(job.orgId)
        yield* Effect.promise(() => syncFile(job.uploadPath))
        const id = yield* jobs.accept(inTraceOf(yield* CurrentRequest, job, meters))
        if (id === undefined) return yield* full(job.model)
        yield* syncStore
        work.openUnsafe()
        return id
      }).pipe(drain.admit),
    find,
    cancel: Effect.fnUntraced(function* (orgId, jobId) {
      const job = yield* find(orgId, jobId)
      if (!(yield* jobs.change(jobId, "cancel"))) return (yield* find(orgId, jobId)).status
      // Another node's job is ended by that node, which will notice.
      if (job.isHere) yield* end(job)
      return "cancelled"
    }, Effect.uninterruptible),
  })
})
