// The `generate` verb: turns a request into a job for each reply, and the outcomes of the jobs into the request's end. StepLoop
// pushes the tokens to the outlet.
//
// `completionTokens` counts every generated token except the end-of-turn token. It includes stop sequences and dropped
// thinking, because they were computed.
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Semaphore from "effect/Semaphore"
import type {
  EngineError,
  GenerateEnd,
  GenerateRequest,
  MessageEndTerms,
  Outlet,
  Prepared,
  TextEngine,
} from "../../protocol/Engine.ts"
import { type PromptRun, runPrompts } from "../../shared/text/PromptBatch.ts"
import type { ReplyEnd } from "../replies/Reply.ts"
import type { Job, JobTerms, Outcome } from "../steps/Job.ts"
import type { StepLoop } from "../steps/StepLoop.ts"
import { BestReplies } from "./BestReplies.ts"
import { Entrance } from "./Entrance.ts"
import type { Model } from "./LoadedGguf.ts"
import { messageEndPlan, messageEndProblem, noMessageEnd } from "./MessageEnd.ts"
import { type ReplyPlan, readRequest } from "./ReadRequest.ts"

/** Runs the job in the loop. Interruption only stops the waiting; `release` frees the sequence. */
const runOnce = (loop: StepLoop, job: Job) =>
  Effect.callback<Outcome, EngineError>((resume) => {
    loop.run(job, (exit: Exit.Exit<Outcome, EngineError>) => resume(exit))
  })

const runToEnd = Effect.fnUntraced(function* (loop: StepLoop, job: Job, out: Outlet<"text">) {
  let outcome: Outcome = yield* runOnce(loop, job)
  while (outcome === "paused") {
    yield* out.resumed
    outcome = yield* runOnce(loop, job)
  }
  return outcome
})

/** Requests that wait for a sequence, and whether the engine is being unloaded. */
export interface Arrivals {
  waiting: number
  closed: boolean
  /** Called when a request begins to wait. */
  arrived: () => void
}

interface GeneratorOptions {
  readonly model: Model
  readonly loop: StepLoop
  /** Sequences of the context. */
  readonly slots: number
  /** One for each sequence. */
  readonly permits: Semaphore.Semaphore
  readonly arrivals: Arrivals
}

/** Runs all replies of a request. If one fails, the others are ended. */
const runAll = (
  loop: StepLoop,
  plan: ReplyPlan,
  out: Outlet<"text">,
): Effect.Effect<ReadonlyArray<ReplyEnd>, EngineError> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const [leader, ...others] = plan.jobs
      const first = loop.open(leader)
      return [first, ...others.map((terms) => loop.open(terms, first))]
    }),
    ([job, ...others]) =>
      job !== undefined && others.length === 0
        ? Effect.map(runToEnd(loop, job, out), (end) => [end])
        : Effect.forEach([job!, ...others], (one) => runToEnd(loop, one, one.terms.out), {
            concurrency: "unbounded",
          }),
    (jobs) => Effect.promise(() => Promise.all(jobs.map((job) => loop.release(job)))),
  )

const sumOf = (numbers: ReadonlyArray<number>): number => numbers.reduce((sum, number) => sum + number, 0)

/** `all`: of all replies that were generated. `returned`: of those that the caller gets, in their order. */
const endOf = (
  { prompt, spans }: JobTerms,
  all: ReadonlyArray<ReplyEnd>,
  returned: ReadonlyArray<ReplyEnd>,
): GenerateEnd => ({
  finishReason: returned[0]!.finishReason,
  promptTokens: prompt.length,
  ...(spans.length === 0 ? {} : { imageTokens: sumOf(spans.map(({ count }) => count)) }),
  completionTokens: sumOf(all.map(({ completionTokens }) => completionTokens)),
  ...(returned[0]!.reasoningTokens === undefined
    ? {}
    : { reasoningTokens: sumOf(all.map(({ reasoningTokens }) => reasoningTokens ?? 0)) }),
  ...(returned.length === 1 ? {} : { finishReasons: returned.map(({ finishReason }) => finishReason) }),
})

export const generator = ({
  arrivals,
  loop,
  model,
  permits,
  slots,
}: GeneratorOptions): TextEngine["generate"] => {
  const entrance = new Entrance(permits)
  /** Takes the request's sequences, and counts it as waiting until then. */
  const enter = <A, E>(count: number, use: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      let waits = true
      arrivals.waiting++
      arrivals.arrived()
      const admitted = Effect.sync(() => {
        if (waits) arrivals.waiting--
        waits = false
      })
      return entrance.enter(count, Effect.andThen(admitted, use)).pipe(Effect.ensuring(admitted))
    })
  const measured = Effect.fnUntraced(function* (
    request: GenerateRequest,
    terms: MessageEndTerms,
    out: Outlet<"text">,
  ): Effect.fn.Return<GenerateEnd, EngineError> {
    const problem = messageEndProblem(request)
    if (problem !== undefined) return yield* problem
    const plan = yield* messageEndPlan(model, request, terms, out)
    if (typeof plan === "string") return noMessageEnd(plan, out)
    yield* enter(1, runAll(loop, { jobs: [plan.job] }, out))
    return plan.end()
  })

  /** Reads a request with one prompt. What it returns generates the replies. */
  const prepare = Effect.fnUntraced(function* (
    request: GenerateRequest,
    out: Outlet<"text">,
    prepared: Prepared | undefined,
  ): Effect.fn.Return<PromptRun, EngineError> {
    const returned = request.replies ?? 1
    const best = (request.bestOf ?? returned) > returned ? new BestReplies(out) : undefined
    const plan = yield* readRequest(model, slots, request, best ?? out, prepared)
    const run = Effect.gen(function* () {
      const ended = yield* enter(plan.jobs.length, runAll(loop, plan, out))
      // Replies without tokens are equal, and have one job.
      const ends = ended.length < returned ? Array.from({ length: returned }, () => ended[0]!) : ended
      const chosen = best === undefined ? ends : best.choose(ends, returned)
      return endOf(plan.jobs[0], ends, chosen)
    })
    return { promptTokens: plan.jobs[0].prompt.length, run }
  })

  return Effect.fnUntraced(function* (
    request: GenerateRequest,
    out: Outlet<"text">,
  ): Effect.fn.Return<GenerateEnd, EngineError> {
    if (request.messageEnd !== undefined) return yield* measured(request, request.messageEnd, out)
    return yield* runPrompts(request, out, (one, to) => prepare(one, to, out.prepared))
  })
}
