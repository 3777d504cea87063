// An engine without weights: scripted text, timings and failures over the same interface as the real ones.
// A product, not a test double: benches measure the gateway with it, tests kill it, and an operator can deploy it
// (adapter `fake`) to load-test a network path. It counts one token a unit and one a prompt word.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import {
  type EngineDescriptor,
  EngineError,
  type GenerateEnd,
  type GenerateRequest,
  type Outlet,
  type TextEngine,
} from "../protocol/Engine.ts"
import { whileOpening } from "../protocol/Opening.ts"
import { scriptOf, unitText } from "./FakeScript.ts"
import { FakeOptions } from "./Options.ts"
import { Ticker } from "./Ticker.ts"

const promptText = (request: GenerateRequest): string =>
  "text" in request.prompt ? request.prompt.text : (request.prompt.turns.at(-1)?.content ?? "")

const countWords = (request: GenerateRequest): number => {
  const words = (text: string) => text.split(/\s+/u).filter((word) => word !== "").length
  return "text" in request.prompt
    ? words(request.prompt.text)
    : request.prompt.turns.reduce((sum, turn) => sum + words(turn.content), 0)
}

/** Blocks the event loop for ever, as a hung native call does. */
const block = (ms?: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

const hang = (): never => {
  for (;;) block()
}

const generate =
  (ticker: Ticker, contextTokens: number) =>
  (request: GenerateRequest, out: Outlet<"text">): Effect.Effect<GenerateEnd, EngineError> =>
    Effect.gen(function* () {
      const promptTokens = countWords(request)
      if (promptTokens >= contextTokens) {
        return yield* new EngineError({
          reason: "PromptTooLong",
          field: "text" in request.prompt ? "prompt" : "messages",
          detail: "",
          promptTokens,
          contextTokens,
        })
      }
      const script = scriptOf(promptText(request))
      out.started({ promptTokens, cachedTokens: 0 })
      if (script.prefillMs > 0) yield* Effect.sleep(script.prefillMs)
      const { openingMs } = script
      if (openingMs > 0) yield* Effect.promise(() => whileOpening(async () => block(openingMs)))
      const budget = Math.min(request.maxTokens, contextTokens - promptTokens)
      const total = Math.min(script.tokens, budget)
      const finishReason = script.tokens > budget ? "length" : "stop"
      let index = 0
      // Each round runs until the script ends or the reader pauses.
      while (
        index < total ||
        script.failAt === index ||
        script.crashAt === index ||
        script.hangAt === index
      ) {
        yield* out.resumed
        yield* Effect.callback<void, EngineError>((resume) => {
          const leave = ticker.join(script.tokenMs, () => {
            if (index === script.crashAt) process.kill(process.pid, "SIGSEGV")
            if (index === script.hangAt) hang()
            if (index === script.failAt) {
              const detail = "scripted failure"
              resume(Effect.fail(new EngineError({ reason: "Failed", field: "", detail })))
              return false
            }
            if (index >= total || out.paused()) {
              resume(Effect.void)
              return false
            }
            out.push({ text: unitText(script, index), completionTokens: index + 1 })
            index++
            if (index < total || script.failAt === index) return true
            resume(Effect.void)
            return false
          })
          return Effect.sync(leave)
        })
      }
      return { finishReason, promptTokens, completionTokens: total } satisfies GenerateEnd
    })

export const fake: EngineDescriptor<"text"> = {
  adapter: "fake",
  kind: "text",
  acquire: Effect.fnUntraced(function* (spec) {
    const options = yield* Schema.decodeUnknownEffect(FakeOptions)(spec.options).pipe(
      Effect.mapError(
        (error) => new EngineError({ reason: "LoadFailed", field: "options", detail: error.message }),
      ),
    )
    for (let n = 0; n < (options.print?.times ?? 1); n++) {
      if (options.print?.stdout !== undefined) process.stdout.write(options.print.stdout)
      if (options.print?.stderr !== undefined) process.stderr.write(options.print.stderr)
    }
    if (options.loadMs > 0) yield* Effect.sleep(options.loadMs)
    if (options.loadFailure !== undefined) {
      return yield* new EngineError({ reason: "LoadFailed", field: "", detail: options.loadFailure })
    }
    const engine: TextEngine = {
      kind: "text",
      facts: {
        contextTokens: options.contextTokens,
        slots: options.slots,
        summary: "scripted answers, no weights",
      },
      generate: generate(new Ticker(), options.contextTokens),
    }
    return engine
  }),
}
