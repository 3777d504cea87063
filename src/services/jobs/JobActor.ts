// The actor of a running job: it runs one slice of the job, stores the outcome and ends. It has two messages, the end of its
// slice and the cancellation, so a job is never cancelled while its end is being stored.
import { Cause, Effect, Exit, Fiber, Scope } from "effect"
import { type ActorRef, Message, type Next, spawn } from "#actors/Actor.ts"
import * as Specifications from "#actors/Specifications.ts"
import type { Transcript } from "#domain/audio/Transcript.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { isStoreDefect } from "#store/files/StoreErrors.ts"
import type { Job } from "#store/ledger/JobRows.ts"
import { reportJob } from "../AnswerFailures.ts"
import { afterFailure, afterUploadLost, chargeSlice, finish, giveBack, returning } from "./JobEnd.ts"
import { JobMoved, SliceOver, type SliceStop, takeSlice } from "./JobSlice.ts"
import { JobTrace } from "./JobTrace.ts"
import type { JobWorld, Kept } from "./JobWorld.ts"
import { UploadLost } from "./SharedUploads.ts"

type SliceExit = Exit.Exit<Transcript, EdgeError | SliceStop>

class SliceEnded extends Message<void> {
  readonly _tag = "SliceEnded"
  readonly exit: SliceExit
  constructor(exit: SliceExit) {
    super()
    this.exit = exit
  }
}

/** Stops the slice. The reply comes when the slice no longer uses the engine; its end charges the audio transcribed so far. */
export class CancelJob extends Message<void> {
  readonly _tag = "CancelJob"
}

type JobMessage = SliceEnded | CancelJob

/** Most messages that wait: the end of the slice, the owner's cancellation, and those of the dispatcher for jobs ended elsewhere. */
const mailbox = 4

interface JobState {
  readonly slice: Fiber.Fiber<void>
  /** What the slice has acquired. Open until its outcome is stored, because that charges its reservation. */
  readonly scope: Scope.Closeable
}

export type JobRef = ActorRef<JobState, JobMessage, void>

export const startJob = (world: JobWorld, job: Job, kept: Kept): Effect.Effect<JobRef, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { jobs, lost, meters, services } = world
    const trace = JobTrace.begin(meters, job, kept)
    let isWritten = false

    const settle = (exit: SliceExit): Effect.Effect<void> =>
      Effect.gen(function* () {
        if (Exit.isSuccess(exit))
          return yield* finish(world, job, "complete", { transcript: exit.value }, trace)
        const error = Exit.findErrorOption(exit)
        if (error._tag === "Some") {
          if (error.value instanceof JobMoved) {
            yield* Effect.logWarning("a job was taken by another node while this one did not answer").pipe(
              Effect.annotateLogs({ job: job.id }),
            )
            return void world.kept.delete(job.id)
          }
          if (error.value instanceof UploadLost)
            return yield* afterUploadLost(world, job, kept, error.value, trace)
          if (!(error.value instanceof SliceOver))
            return yield* afterFailure(world, job, kept, error.value, trace)
          trace?.ends("turn over")
          return yield* giveBack(world, job, kept)
        }
        if (Exit.hasInterrupts(exit)) return yield* giveBack(world, job, kept)
        // The store failed, not the job: it continues when the store works again.
        if (exit.cause.reasons.some((reason) => Cause.isDieReason(reason) && isStoreDefect(reason.defect)))
          return void lost.set(job.id, { job, change: returning(job, kept) })
        yield* Effect.provideContext(reportJob(job, exit.cause), services)
        yield* finish(world, job, "fail", { note: "The transcription failed" }, trace, true)
      })

    /** If the outcome cannot be stored, the job goes back into the queue once the database works again. */
    const orLost = (writing: Effect.Effect<unknown>): Effect.Effect<void> =>
      Effect.asVoid(writing).pipe(
        Effect.catchDefect((cause) =>
          Effect.logError("the end of a transcription job could not be written", String(cause)).pipe(
            Effect.annotateLogs({ job: job.id }),
            Effect.andThen(Effect.sync(() => lost.set(job.id, { job, change: returning(job, kept) }))),
          ),
        ),
      )

    const slice = takeSlice(world, job, kept)
    const traced = trace === undefined ? slice : trace.follow(slice)

    // Before the actor: one that is stopped at once never runs, and its job goes back all the same.
    yield* Effect.addFinalizer(() =>
      Effect.andThen(
        // A node that stops returns the job to the queue. This changes nothing if the job was cancelled.
        isWritten ? Effect.void : orLost(jobs.change(job, "return", returning(job, kept))),
        Effect.sync(() => trace?.over()),
      ),
    )
    const ref: JobRef = yield* spawn<JobState, JobMessage, void>({
      name: `job ${job.id}`,
      terms: Specifications.job,
      capacity: mailbox,
      initial: () =>
        Effect.gen(function* () {
          const scope = yield* Scope.fork(yield* Effect.scope)
          const fiber = yield* traced.pipe(
            Scope.provide(scope),
            Effect.provideContext(services),
            Effect.exit,
            Effect.map((exit) => void ref.tell(new SliceEnded(exit))),
            Effect.forkScoped,
          )
          return { slice: fiber, scope }
        }),
      handle: {
        SliceEnded: (state, { exit }) =>
          Effect.gen(function* () {
            yield* orLost(settle(exit))
            isWritten = true
            yield* Scope.close(state.scope, Exit.void)
            return ended(state)
          }),
        CancelJob: (state) =>
          Effect.gen(function* () {
            yield* Fiber.interrupt(state.slice)
            yield* chargeSlice(world, job, kept)
            yield* Scope.close(state.scope, Exit.void)
            return ended(state)
          }),
      },
      details: { state: () => "transcribing" },
    })
    return ref
  })

const ended = (state: JobState): Next<JobState, void, void> => ({
  state,
  reply: undefined,
  end: { value: undefined },
})
