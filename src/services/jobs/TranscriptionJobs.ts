// The service for transcription jobs: submit, find, cancel. An accepted job survives a restart of the node and runs again after
// a crash. It is charged once, and its upload is removed when it ends. The layer also starts the actors and workers that run the
// jobs.
import { Context, Effect, Layer } from "effect"
import { startChild } from "#actors/Child.ts"
import { Drain } from "#actors/Drain.ts"
import { admitBatch } from "#actors/device/Admission.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { Decoder } from "#audio/Decoder.ts"
import {
  AtCapacity,
  type Draining,
  JobNotFound,
  type MemoryPressure,
  PaymentRequired,
} from "#domain/wire/Errors.ts"
import type { JobStatus } from "#domain/wire/JobStatus.ts"
import { CurrentNodeMeters } from "#http/NodeMeters.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import type { Accounts } from "#store/accounts/Accounts.ts"
import { StoreSync, syncFile } from "#store/files/Durable.ts"
import { StoreUnavailable } from "#store/files/StoreErrors.ts"
import type { Job, NewJob } from "#store/ledger/JobRows.ts"
import { Jobs } from "#store/ledger/Jobs.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { Presence } from "#store/nodes/Presence.ts"
import { Compaction } from "#store/sql/Compaction.ts"
import { UploadDir } from "../TranscriptionUpload.ts"
import { makeDispatcher } from "./JobDispatcher.ts"
import { UploadRetry } from "./JobEnd.ts"
import { inTraceOf } from "./JobTrace.ts"
import {
  failLostJobs,
  failUnservedJobs,
  purgeJobs,
  recoverJobs,
  removeOldUploads,
  takeOverJobs,
} from "./JobUpkeep.ts"
import type { JobWorld } from "./JobWorld.ts"
import { SharedUploads, type SharedUploadsView } from "./SharedUploads.ts"

/** Retry-After when the node or the organization has as many unfinished jobs as it may, milliseconds. A guess. */
const fullRetryMs = 30_000

export class TranscriptionJobs extends Context.Service<
  TranscriptionJobs,
  {
    /**
     * Checks before the upload what `submit` checks after it. An organization with a job that waits for credit cannot
     * submit another one.
     */
    readonly admit: (
      orgId: string,
      model: string,
    ) => Effect.Effect<void, AtCapacity | MemoryPressure | PaymentRequired>
    /**
     * Stores the job; returns its id. Once this has succeeded, the job survives a power failure. `keep` is called if the uploaded file is
     * the job's from then on; otherwise the caller removes it.
     */
    readonly submit: (
      job: NewJob,
      keep: () => void,
    ) => Effect.Effect<string, AtCapacity | Draining | PaymentRequired>
    /** A job of the organization. Fails alike for an unknown job and for one of another organization. */
    readonly find: (orgId: string, jobId: string) => Effect.Effect<Job, JobNotFound>
    /** Cancels the job if it has not ended, else removes it with its transcript; returns its last status. */
    readonly cancel: (orgId: string, jobId: string) => Effect.Effect<JobStatus, JobNotFound>
    /** Jobs that this node could begin at once. */
    readonly freeSlots: () => number
  }
>()("edgewise/api/TranscriptionJobs") {
  static readonly layer = Layer.effect(
    TranscriptionJobs,
    Effect.suspend(() => make),
  )
}

const make = Effect.gen(function* () {
  const jobs = yield* Jobs
  const syncStore = yield* StoreSync
  const { emptyLogSoon } = yield* Compaction
  const drain = yield* Drain
  const ledger = yield* UsageLedger
  const meters = yield* CurrentNodeMeters
  const services = yield* Effect.context<Accounts | Decoder | ModelRegistry | UsageLedger>()
  const registry = yield* ModelRegistry
  const uploads = yield* SharedUploads
  const world: JobWorld = {
    jobs,
    ledger,
    registry,
    meters,
    drain,
    uploads,
    uploadRetryMs: yield* UploadRetry,
    models: () =>
      uploads === undefined
        ? []
        : registry.all().flatMap(({ entry }) => (entry.kind === "transcription" ? [entry.id] : [])),
    services,
    kept: new Map(),
    lost: new Map(),
  }

  yield* recoverJobs(jobs, yield* UploadDir)
  const { end, freeSlots, inWork, wake } = makeDispatcher(world)
  yield* startChild(failLostJobs(jobs))
  const presence = yield* Presence
  if (presence.isShared) yield* startChild(takeOverJobs(jobs, presence, wake))
  if (uploads !== undefined) {
    yield* startChild(removeOldUploads(jobs, uploads))
    yield* startChild(failUnservedJobs(jobs, world.models, presence))
  }
  yield* startChild(purgeJobs(jobs))
  const workers = yield* startChild(inWork)
  yield* workers.ready

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
  /** Jobs that nothing would process are not accepted. */
  const lost = (model: string): Effect.Effect<void, AtCapacity> =>
    workers.node.state === "gave up" ? Effect.fail(full(model)) : Effect.void
  const full = (model: string) => new AtCapacity({ model, retryAfterMs: fullRetryMs })

  const acceptOwn = Effect.fnUntraced(function* (job: NewJob) {
    yield* Effect.promise(() => syncFile(job.uploadPath))
    const id = yield* jobs.accept(job)
    if (id !== undefined) yield* syncStore
    return id
  })
  /** The row names the file only once that is safe. A file without a row is removed after a day. */
  const acceptShared = Effect.fnUntraced(function* (job: NewJob, shared: SharedUploadsView) {
    const stored = yield* Effect.catch(shared.put(job.uploadPath), ({ problem }) =>
      Effect.andThen(
        Effect.logError("an upload could not be stored in the shared place").pipe(
          Effect.annotateLogs({ problem }),
        ),
        Effect.die(new StoreUnavailable({ place: "uploads", problem })),
      ),
    )
    const id = yield* jobs.accept({ ...job, uploadPath: stored.name, shared: stored.shared })
    if (id === undefined) yield* shared.remove(stored.name)
    return id
  })

  return TranscriptionJobs.of({
    admit: Effect.fnUntraced(function* (orgId, model) {
      yield* admitBatch
      yield* lost(model)
      yield* paid(orgId)
      if (!(yield* jobs.hasCapacity(orgId, uploads !== undefined))) return yield* full(model)
    }),
    submit: (job, keep) =>
      Effect.gen(function* () {
        yield* lost(job.model)
        yield* paid(job.orgId)
        const traced = inTraceOf(yield* CurrentRequest, job, meters)
        const id = yield* uploads === undefined ? acceptOwn(traced) : acceptShared(traced, uploads)
        if (id === undefined) return yield* full(job.model)
        if (uploads === undefined) keep()
        wake()
        return id
      }).pipe(drain.admit),
    find,
    cancel: Effect.fnUntraced(function* (orgId, jobId) {
      yield* find(orgId, jobId)
      const cancelled = yield* jobs.cancel(jobId)
      if (cancelled === undefined) {
        const { status } = yield* find(orgId, jobId)
        if (yield* jobs.remove(jobId)) emptyLogSoon()
        return status
      }
      // A job of another node is ended by that node, which reads the cancellation from the store.
      if (cancelled.isHere) yield* end(cancelled)
      return "cancelled"
    }, Effect.uninterruptible),
    freeSlots,
  })
})
