// The room of the GGUF text models: the descriptor and the `generate` verb. Called by engineMain through the
// adapter table. Here a request becomes a job and a job's outcome becomes the request's end; the tokens themselves
// go from StepLoop straight to the outlet.
//
// Token counts: `completionTokens` counts every generated token except the end-of-turn token, stop sequences and
// dropped thinking included, because they were computed.
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Semaphore from "effect/Semaphore"
import {
  type EngineDescriptor,
  EngineError,
  type GenerateEnd,
  type GenerateRequest,
  type Outlet,
  type TextEngine,
} from "../../protocol/Engine.ts"
import { decodeOptions } from "../Options.ts"
import type { Prompt } from "../prompt/ChatPrompt.ts"
import { TemplateRefused } from "../prompt/ChatTemplate.ts"
import type { Job, Outcome } from "../steps/Job.ts"
import { StepLoop } from "../steps/StepLoop.ts"
import { loadModel, type Model } from "./LoadedGguf.ts"

const mebibyte = 1024 * 1024

/** The prompt's tokens, or why it cannot be one. Before anything was promised to the reader. */
const readPrompt = (model: Model, request: GenerateRequest): Effect.Effect<Prompt, EngineError> =>
  Effect.suspend(() => {
    const field = "turns" in request.prompt ? "messages" : "prompt"
    let read: ReturnType<Model["prompts"]["read"]>
    try {
      read = model.prompts.read(request.prompt)
    } catch (cause) {
      const said = cause instanceof Error ? cause.message : String(cause)
      // E.g. the assistant speaking first. Anything else is the template's own trouble.
      const reason = cause instanceof TemplateRefused ? "InvalidInput" : "Failed"
      const detail = `the model's chat template: ${said}`
      return Effect.fail(new EngineError({ reason, field: reason === "Failed" ? "" : field, detail }))
    }
    if ("tokens" in read) return Effect.succeed(read)
    if ("empty" in read)
      return Effect.fail(new EngineError({ reason: "InvalidInput", field, detail: "is empty" }))
    const { contextTokens } = model
    const { promptTokens } = read
    const detail = `${promptTokens} tokens do not fit into a context of ${contextTokens}`
    return Effect.fail(
      new EngineError({ reason: "PromptTooLong", field, detail, promptTokens, contextTokens }),
    )
  })

/** One run of the loop; interrupting it only stops waiting, `release` frees the sequence. */
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
interface Arrivals {
  waiting: number
  closed: boolean
}

/**
 * When the threads are measured again after a load on a busy machine, as when a node starts with several models: only while
 * no request is there, and a request ends it. Milliseconds from one try to the next; guesses.
 */
const measureAgainAfterMs: ReadonlyArray<number> = [2_000, 5_000, 15_000, 60_000, 300_000]

const measureLater = (
  { stepped }: Model,
  loop: StepLoop,
  permits: Semaphore.Semaphore,
  slots: number,
  arrivals: Arrivals,
): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (const waitMs of measureAgainAfterMs) {
      if (!stepped.isUnsure()) return
      yield* Effect.sleep(waitMs)
      const measuring = Effect.promise(() => {
        // The measured steps begin at the start of a sequence.
        loop.empty()
        return stepped.measureAgain(() => arrivals.closed || arrivals.waiting > 0)
      })
      // The context must not be closed under a step.
      yield* permits.withPermitsIfAvailable(slots)(Effect.uninterruptible(measuring))
    }
  })

const generator = (
  model: Model,
  loop: StepLoop,
  permits: Semaphore.Semaphore,
  arrivals: Arrivals,
): TextEngine["generate"] =>
  Effect.fnUntraced(function* (
    request: GenerateRequest,
    out: Outlet<"text">,
  ): Effect.fn.Return<GenerateEnd, EngineError> {
    const { tokens, marks, thought } = yield* readPrompt(model, request)
    const { sampling, stop } = request
    const maxTokens = Math.min(request.maxTokens, model.contextTokens - tokens.length)
    const terms = { prompt: tokens, marks, thought, sampling, stop, maxTokens, out }
    let waits = true
    arrivals.waiting++
    const arrived = Effect.sync(() => {
      if (waits) arrivals.waiting--
      waits = false
    })
    return yield* permits
      .withPermits(1)(
        Effect.acquireUseRelease(
          Effect.andThen(
            arrived,
            Effect.sync(() => loop.open(terms)),
          ),
          (job) => runToEnd(loop, job, out),
          (job) => Effect.promise(() => loop.release(job)),
        ),
      )
      .pipe(Effect.ensuring(arrived))
  })

export const llamaGguf: EngineDescriptor<"text"> = {
  adapter: "llama-gguf",
  kind: "text",
  acquire: Effect.fnUntraced(function* (spec) {
    const options = yield* decodeOptions(spec.options)
    const model = yield* loadModel(spec, options)
    const loop = yield* Effect.acquireRelease(
      Effect.sync(
        () =>
          new StepLoop({
            native: model.stepped.native,
            vocabulary: model.vocabulary,
            slots: options.slots,
            needsCheckpoints: model.needsCheckpoints,
            checkpointBytes: options.checkpointMegabytes * mebibyte,
            costs: model.costs,
            promptShare: options.promptShare,
          }),
      ),
      (opened) => Effect.promise(() => opened.close()),
    )
    const permits = yield* Semaphore.make(options.slots)
    const arrivals = { waiting: 0, closed: false }
    yield* Effect.forkScoped(measureLater(model, loop, permits, options.slots, arrivals))
    // Registered last, so it runs first: a measurement under way ends with its step.
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        arrivals.closed = true
      }),
    )
    const { contextTokens, summary } = model
    return {
      kind: "text",
      facts: { contextTokens, slots: options.slots, summary },
      generate: generator(model, loop, permits, arrivals),
      lean: (on) => loop.lean(on),
      threads: model.stepped.threads,
    } satisfies TextEngine
  }),
}
