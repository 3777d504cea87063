// Takes jobs from the queue and starts an actor for each, at most two at a time. The organization whose last job was taken
// longest ago is next.
import { Effect, Exit, Latch, Scope } from "effect"
import { type ChildSpec, startChild } from "#actors/Child.ts"
import * as Specifications from "#actors/Specifications.ts"
import { CurrentParent, type Parent } from "#actors/TreeNode.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import type { Job } from "#store/ledger/JobRows.ts"
import { storeRetryMs } from "../UntilStoreWorks.ts"
import { CancelJob, type JobRef, startJob } from "./JobActor.ts"
import { afterCancellation } from "./JobEnd.ts"
import { type JobWorld, newKept } from "./JobWorld.ts"

/**
 * Most running jobs. Two keep an engine busy (one file is decoded while the other is transcribed) and leave half of the node's
 * four decoders to interactive requests.
 */
const atOnce = 2

/** Interval at which the queue is read without a wake-up: for jobs whose pause has ended. */
const idleReadMs = 500

/** Interval at which the jobs in work are compared with their rows. A guess: what it finds is rare, and costs its job this long. */
const compareMs = 5_000

/** Most organizations whose last job is remembered. Beyond it all are forgotten, which affects only the order. */
const rememberedOrgs = 10_000

interface JobDispatcher {
  /** Parent of the dispatcher and of the running jobs' actors. */
  readonly inWork: ChildSpec<never, never, never>
  /** Makes the dispatcher read the queue now. */
  readonly wake: () => void
  /** Ends a job that was cancelled, or given up by another node. */
  readonly end: (job: Job) => Effect.Effect<void>
  /** Jobs that could begin at once. */
  readonly freeSlots: () => number
}

export const makeDispatcher = (world: JobWorld): JobDispatcher => {
  const { drain, jobs, kept, lost, models, uploads } = world
  const running = new Map<string, { readonly job: Job; readonly ref: JobRef }>()
  const work = Latch.makeUnsafe(true)
  /** Time of the last read of jobs ended elsewhere, which limits these reads to one per interval, however often `wake` is called. */
  let readElsewhereAtMs = Number.NEGATIVE_INFINITY
  let comparedAtMs = Number.NEGATIVE_INFINITY
  /** Organization → the value of `taken` when its last job was taken. */
  const served = new Map<string, number>()
  let taken = 0
  let parent: (Parent & { readonly scope: Scope.Scope }) | undefined

  const start = Effect.fnUntraced(function* (
    job: Job,
    { node, scope: parentScope }: NonNullable<typeof parent>,
  ) {
    // Another node may have worked at a shared job since this one did.
    const known = job.shared === undefined ? kept.get(job.id) : undefined
    const state = known ?? newKept(job.decodedMs, job.saved)
    kept.set(job.id, state)
    const scope = yield* Scope.fork(parentScope)
    const ref = yield* startJob(world, job, state).pipe(
      Scope.provide(scope),
      Effect.provideService(CurrentParent, { node, scope }),
    )
    running.set(job.id, { job, ref })
    yield* Effect.forkIn(
      Effect.gen(function* () {
        yield* ref.ended
        if (running.get(job.id)?.ref === ref) running.delete(job.id)
        work.openUnsafe()
        yield* Effect.forkDetach(Scope.close(scope, Exit.void))
      }),
      scope,
    )
  }, Effect.uninterruptible)

  const end = Effect.fnUntraced(function* (job: Job) {
    const state = kept.get(job.id)
    // A job that failed through the node's fault is not charged.
    const isCharged = job.status !== "failed"
    if (state !== undefined) state.cancelled = isCharged
    // If its actor has just ended, there is nothing to stop.
    yield* Effect.ignore(running.get(job.id)?.ref.ask(new CancelJob()) ?? Effect.void)
    yield* afterCancellation(world, job, isCharged)
  }, Effect.uninterruptible)

  const endOthers = Effect.gen(function* () {
    const nowMs = yield* monotonicMs
    if (nowMs - readElsewhereAtMs < idleReadMs) return
    readElsewhereAtMs = nowMs
    for (const job of yield* jobs.endedElsewhere(uploads !== undefined)) {
      yield* end(job)
      yield* jobs.forget(job.id)
    }
    // Jobs that other nodes have taken, because this one did not answer for a while: their slices end without an outcome.
    const shared = [...running.values()].filter(({ job }) => job.shared !== undefined)
    for (const { id } of yield* jobs.lostOf(shared.map(({ job }) => job))) {
      yield* Effect.ignore(running.get(id)?.ref.ask(new CancelJob()) ?? Effect.void)
      kept.delete(id)
      yield* Effect.logWarning("a job was taken by another node while this one did not answer").pipe(
        Effect.annotateLogs({ job: id }),
      )
    }
  })

  /**
   * False if no job waits. Uninterruptible: a node that stops between the row's change to `processing` and the start of the
   * actor, whose end changes it back, would leave the job as one in work until the node starts again.
   */
  const takeOne = Effect.fnUntraced(function* (under: NonNullable<typeof parent>) {
    const lastServed = (orgId: string) => served.get(orgId) ?? 0
    const job = yield* jobs.take({ models: models(), lastServed })
    if (job === undefined) return false
    if (served.size > rememberedOrgs) served.clear()
    served.set(job.orgId, ++taken)
    yield* start(job, under)
    return true
  }, Effect.uninterruptible)

  /**
   * Starts the jobs that this node has taken without knowing it: a database that stood still, or whose answer was lost, may have carried out
   * the take all the same, and no other node takes a job of one that lives. A job that runs, or ends while the rows are read, was known
   * before.
   */
  const startUnknown = Effect.fnUntraced(function* (under: NonNullable<typeof parent>) {
    const nowMs = yield* monotonicMs
    if (nowMs - comparedAtMs < compareMs) return
    comparedAtMs = nowMs
    for (const job of yield* jobs.inWorkBut([...running.keys(), ...lost.keys()])) {
      if (running.size >= atOnce) return
      yield* Effect.logWarning(
        "a transcription job was taken without an answer of the database; it begins now",
      ).pipe(Effect.annotateLogs({ job: job.id }))
      yield* start(job, under)
    }
  }, Effect.uninterruptible)

  const dispatch = Effect.gen(function* () {
    yield* Effect.raceFirst(work.await, Effect.sleep(idleReadMs))
    work.closeUnsafe()
    yield* endOthers
    for (const [id, { change, job }] of lost) {
      yield* jobs.change(job, "return", change)
      if (job.shared !== undefined) kept.delete(id)
      lost.delete(id)
    }
    if (!drain.isClosed() && parent !== undefined) yield* startUnknown(parent)
    while (!drain.isClosed() && parent !== undefined && running.size < atOnce) {
      if (!(yield* takeOne(parent))) break
    }
  }).pipe(
    // A defect here is the database's: accepted jobs wait until it works again.
    Effect.catchDefect((cause) =>
      Effect.logError("transcription jobs could not be read", String(cause)).pipe(
        Effect.andThen(Effect.sleep(storeRetryMs)),
      ),
    ),
  )

  const dispatcher: ChildSpec<never, never, never> = {
    ...Specifications.worker,
    name: "dispatcher",
    run: ({ ready }) => Effect.andThen(Effect.sync(ready), Effect.forever(dispatch)),
  }

  return {
    inWork: {
      ...Specifications.jobsInWork,
      name: "jobs in work",
      run: (self) =>
        Effect.gen(function* () {
          parent = { node: self.node, scope: yield* Effect.scope }
          const close = Effect.sync(() => {
            parent = undefined
          })
          yield* Effect.addFinalizer(() => close)
          yield* startChild(dispatcher)
          self.ready()
          return yield* Effect.never
        }),
    },
    wake: () => work.openUnsafe(),
    end,
    freeSlots: () => Math.max(0, atOnce - running.size),
  }
}
