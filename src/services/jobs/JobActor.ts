// One job in work as an actor: it does one slice of the job, writes what follows from it and ends. It takes two messages, the end
// of its slice and the owner's cancellation, so a job is never cancelled while its end is being written.
import { Cause, Effect, Exit, Fiber, type Scope } from "effect"
import { type ActorRef, Message, type Next, spawn } from "#actors/Actor.ts"
import * as Specifications from "#actors/Specifications.ts"
import type { Transcript } from "#domain/audio/Transcript.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { isStoreDefect } from "#store/files/StoreErrors.ts"
import type { Job } from "#store/ledger/Jobs.ts"
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

/** Stops the slice. The reply comes when it no longer uses the engine; what it has done is charged by its end. */
export class CancelJob extends Message<void> {
  readonly _tag = "CancelJob"
}

type JobMessage = SliceEnded | CancelJob

/** The end of the slice, and cancellations: by the owner, and by the node's own look for jobs ended elsewhere. */
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
        // Nothing is wrong with the job: it goes on when the store works again.
        if (exit.cause.reasons.some((reason) => Cause.isDieReason(reason) && isStoreDefect(reason.defect)))
          return void lost.add(job.id)
        yield* Effect.provideContext(reportJob(job, exit.cause), services)
        yield* finish(world, job, "fail", { note: "The transcription failed" }, trace, true)
      })

    /** A job whose end could not be written goes back into the queue once the database works again. */
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

    const ref: JobRef = yield* spawn<JobState, JobMessage, void>({
      name: `job ${job.id}`,
      terms: Specifications.job,
      capacity: mailbox,
      initial: Effect.gen(function* () {
        yield* Effect.addFinalizer(() =>
          Effect.andThen(
            // A node that stops gives the job back; a cancelled one has left that state already.
            isWritten ? Effect.void : orLost(jobs.change(job.id, "return")),
            Effect.sync(() => trace?.over()),
          ),
        )
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
