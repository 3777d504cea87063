// The actor of a running job: it runs one slice of the job, stores the outcome and ends. It has two messages, the end of its
// slice and the cancellation, so a job is never cancelled while its end is being stored.
import { Cause, Effect, Exit, Fiber, type Scope } from "effect"
import { type ActorRef, Message, type Next, spawn } from "#actors/Actor.ts"
import * as Specifications from "#actors/Specifications.ts"
import type { Transcript } from "#domain/audio/Transcript.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { isStoreDefect } from "#store/files/StoreErrors.ts"
import type { Job } from "#store/ledger/JobRows.ts"
import { reportJob } from "../AnswerFailures.ts"
import { afterFailure, finish, type JobWorld } from "./JobEnd.ts"
import { type Kept, SliceOver, takeSlice } from "./JobSlice.ts"
import { JobTrace } from "./JobTrace.ts"

type SliceExit = Exit.Exit<Transcript, EdgeError | SliceOver>

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
          if (!(error.value instanceof SliceOver))
            return yield* afterFailure(world, job, kept, error.value, trace)
          trace?.ends("turn over")
          return void (yield* jobs.change(job.id, "return"))
        }
        if (Exit.hasInterrupts(exit)) return void (yield* jobs.change(job.id, "return"))
        // The store failed, not the job: it continues when the store works again.
        if (exit.cause.reasons.some((reason) => Cause.isDieReason(reason) && isStoreDefect(reason.defect)))
          return void lost.add(job.id)
        yield* Effect.provideContext(reportJob(job, exit.cause), services)
        yield* finish(world, job, "fail", { note: "The transcription failed" }, trace, true)
      })

    /** If the outcome cannot be stored, the job goes back into the queue once the database works again. */
    const orLost = (writing: Effect.Effect<unknown>): Effect.Effect<void> =>
      Effect.asVoid(writing).pipe(
        Effect.catchDefect((cause) =>
          Effect.logError("the end of a transcription job could not be written", String(cause)).pipe(
            Effect.annotateLogs({ job: job.id }),
            Effect.andThen(Effect.sync(() => lost.add(job.id))),
          ),
        ),
      )

    const slice = takeSlice(job, kept, jobs.othersWait(job.orgId))
    const traced = trace === undefined ? slice : trace.follow(slice)

    // Before the actor: one that is stopped at once never runs, and its job goes back all the same.
    yield* Effect.addFinalizer(() =>
      Effect.andThen(
        // A node that stops returns the job to the queue. This changes nothing if the job was cancelled.
        isWritten ? Effect.void : orLost(jobs.change(job.id, "return")),
        Effect.sync(() => trace?.over()),
      ),
    )
    const ref: JobRef = yield* spawn<JobState, JobMessage, void>({
      name: `job ${job.id}`,
      terms: Specifications.job,
      capacity: mailbox,
      initial: () =>
        Effect.gen(function* () {
          const fiber = yield* traced.pipe(
            Effect.scoped,
            Effect.provideContext(services),
            Effect.exit,
            Effect.map((exit) => void ref.tell(new SliceEnded(exit))),
            Effect.forkScoped,
          )
          return { slice: fiber }
        }),
      handle: {
        SliceEnded: (state, { exit }) =>
          Effect.map(orLost(settle(exit)), () => {
            isWritten = true
            return ended(state)
          }),
        CancelJob: (state) => Effect.as(Fiber.interrupt(state.slice), ended(state)),
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
