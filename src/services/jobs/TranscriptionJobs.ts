// What a caller may do with a transcription job: submit, find, cancel. An accepted job is a promise: it survives the node, runs
// again after a crash, is charged once, and its upload is removed when it ends. The actors and workers that do the jobs are
// started here, under a rest-for-one supervisor.
import { Context, Effect, Layer } from "effect"
import { startChild } from "#actors/Child.ts"
import { Drain } from "#actors/Drain.ts"
import { admitBatch } from "#actors/device/MemoryPressureLevel.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import * as Specifications from "#actors/Specifications.ts"
import { supervisor } from "#actors/Supervisor.ts"
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
import { type Job, Jobs, type NewJob } from "#store/ledger/Jobs.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { UploadDir } from "../TranscriptionUpload.ts"
import { makeDispatcher } from "./JobDispatcher.ts"
import type { JobWorld } from "./JobEnd.ts"
import { inTraceOf } from "./JobTrace.ts"
import { failLostJobs, purgeJobs, recoverJobs } from "./JobUpkeep.ts"

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

const make = Effect.gen(function* () {
  const jobs = yield* Jobs
  const syncStore = yield* StoreSync
  const drain = yield* Drain
  const ledger = yield* UsageLedger
  const meters = yield* CurrentNodeMeters
  const services = yield* Effect.context<Accounts | Decoder | ModelRegistry | UsageLedger>()
  const registry = yield* ModelRegistry
  const world: JobWorld = { jobs, ledger, registry, meters, services, kept: new Map(), lost: new Set() }

  yield* recoverJobs(jobs, yield* UploadDir)
  const { dispatcher, end, inWork, wake } = makeDispatcher(world, drain)
  const workers = yield* startChild(
    supervisor({
      name: "job supervisor",
      terms: Specifications.group,
      strategy: "rest-for-one",
      children: [failLostJobs(jobs), purgeJobs(jobs), inWork, dispatcher],
    }),
  )
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
        wake()
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
