// An engine without weights: scripted text, timings and failures behind the interface of the real ones.
// A product, not a test double: benches measure the gateway with it, tests kill it, and an operator can deploy it
// (adapter `fake`) to load-test a network path. It counts one token for each unit and for each word of the prompt.
import * as Effect from "effect/Effect"
import { textOf, textPromptsOf } from "../protocol/Contents.ts"
import {
  type EngineDescriptor,
  EngineError,
  type GenerateEnd,
  type GenerateRequest,
  invalidInput,
  loadFailed,
  type Outlet,
  type TextEngine,
} from "../protocol/Engine.ts"
import { whileOpening } from "../protocol/Opening.ts"
import { decodeOptions } from "../shared/files/EngineSpecFiles.ts"
import { type PromptRun, runPrompts } from "../shared/text/PromptBatch.ts"
import { fakeMessageEnd } from "./FakeMessageEnd.ts"
import { pictureTokens } from "./FakePictures.ts"
import { FakeProgress } from "./FakeProgress.ts"
import { type FakeScript, scriptOf } from "./FakeScript.ts"
import { FakeOptions } from "./Options.ts"
import { Ticker } from "./Ticker.ts"

/** Words of the prompt, and one for each tool and each call. */
const countWords = ({ prompt, tools }: GenerateRequest): number => {
  const words = (text: string) => text.split(/\s+/u).filter((word) => word !== "").length
  if (!("turns" in prompt))
    return textPromptsOf(prompt).reduce(
      (sum, text) => sum + (typeof text === "string" ? words(text) : text.length),
      0,
    )
  return prompt.turns.reduce(
    (sum, turn) =>
      sum + words(textOf(turn.content)) + (turn.role === "assistant" ? (turn.calls?.length ?? 0) : 0),
    tools?.tools.length ?? 0,
  )
}

const tooMany = (slots: number): EngineError =>
  invalidInput("replies", `must be at most ${slots} for this model`)

/** Blocks the event loop for `ms`; without it for ever, like a native call that never returns. */
const block = (ms?: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** Blocks the event loop until it has used `ms` of processor time, like a native call that computes. */
const compute = (ms: number): void => {
  const before = process.cpuUsage()
  const usedMs = () => {
    const { system, user } = process.cpuUsage(before)
    return (system + user) / 1000
  }
  while (usedMs() < ms) Math.sqrt(ms)
}

let signals = 0
let listens = false

/** Signals to this process so far. Counts from the first call on: before it the signal ends the process. */
const signalsSoFar = (): number => {
  if (!listens) {
    listens = true
    process.on("SIGUSR2", () => {
      signals++
    })
  }
  return signals
}

const hang = (): never => {
  for (;;) block()
}

const prepare =
  (ticker: Ticker, { contextTokens, messageEnd, slots }: typeof FakeOptions.Type) =>
  (request: GenerateRequest, out: Outlet<"text">): Effect.Effect<PromptRun, EngineError> =>
    Effect.gen(function* () {
      const imageTokens = pictureTokens(request)
      const promptTokens = countWords(request) + imageTokens
      if (promptTokens >= contextTokens) {
        return yield* new EngineError({
          reason: "PromptTooLong",
          field: "turns" in request.prompt ? "messages" : "prompt",
          detail: "",
          promptTokens,
          contextTokens,
        })
      }
      if (Math.max(request.replies ?? 1, request.bestOf ?? 1) > slots) return yield* tooMany(slots)
      if (request.messageEnd !== undefined) {
        const run = fakeMessageEnd(messageEnd, request, request.messageEnd, promptTokens, out)
        return { promptTokens, run }
      }
      const script = scriptOf(request)
      const { refuses } = script
      if (refuses !== undefined && script.failAt === undefined)
        return yield* new EngineError({ reason: "InvalidInput", ...refuses })
      const budget = Math.min(request.maxTokens, contextTokens - promptTokens)
      return {
        promptTokens,
        run: played(ticker, request, script, { budget, imageTokens, promptTokens }, out),
      }
    })

interface Counts {
  readonly promptTokens: number
  readonly imageTokens: number
  /** Most tokens of a reply. */
  readonly budget: number
}

const played = (
  ticker: Ticker,
  request: GenerateRequest,
  script: FakeScript,
  { budget, imageTokens, promptTokens }: Counts,
  out: Outlet<"text">,
): Effect.Effect<GenerateEnd, EngineError> =>
  Effect.gen(function* () {
    const { cachedTokens, computeMs, openingMs } = script
    out.started({
      promptTokens,
      cachedTokens: Math.min(cachedTokens, promptTokens),
      ...(imageTokens === 0 ? {} : { imageTokens }),
    })
    if (script.prefillMs > 0) yield* Effect.sleep(script.prefillMs)
    if (openingMs > 0) yield* Effect.promise(() => whileOpening(async () => block(openingMs)))
    if (computeMs > 0) yield* Effect.sync(() => compute(computeMs))
    const before = script.signalAt === undefined ? 0 : signalsSoFar()
    const progress = new FakeProgress(request, script, budget)
    const total = progress.steps
    progress.echo(out)
    let index = 0
    // Each round runs until the script ends or the reader is behind.
    while (index < total || script.failAt === index || script.crashAt === index || script.hangAt === index) {
      yield* out.resumed
      yield* Effect.callback<void, EngineError>((resume) => {
        const leave = ticker.join(script.tokenMs, () => {
          if (index === script.crashAt) process.kill(process.pid, "SIGSEGV")
          if (index === script.hangAt) hang()
          if (index === script.signalAt && signals === before) return true
          if (index === script.failAt) {
            const failure = script.refuses ?? { field: "", detail: "scripted failure" }
            const reason = script.refuses === undefined ? "Failed" : "InvalidInput"
            resume(Effect.fail(new EngineError({ reason, ...failure })))
            return false
          }
          if (index >= total || out.paused()) {
            resume(Effect.void)
            return false
          }
          progress.step(out, index)
          index++
          if (index < total || script.failAt === index) return true
          resume(Effect.void)
          return false
        })
        return Effect.sync(leave)
      })
    }
    const end = progress.end(out, promptTokens)
    return imageTokens === 0 ? end : { ...end, imageTokens }
  })

export const fake: EngineDescriptor<"text"> = {
  adapter: "fake",
  kind: "text",
  acquire: Effect.fnUntraced(function* (spec) {
    const options = yield* decodeOptions(FakeOptions, spec)
    for (let n = 0; n < (options.print?.times ?? 1); n++) {
      if (options.print?.stdout !== undefined) process.stdout.write(options.print.stdout)
      if (options.print?.stderr !== undefined) process.stderr.write(options.print.stderr)
    }
    if (options.loadMs > 0) yield* Effect.sleep(options.loadMs)
    if (options.loadFailure !== undefined) return yield* loadFailed("", options.loadFailure)
    const prepareOne = prepare(new Ticker(), options)
    const engine: TextEngine = {
      kind: "text",
      facts: {
        contextTokens: options.contextTokens,
        slots: options.slots,
        summary: "scripted answers, no weights",
        ...(options.pictures === undefined
          ? {}
          : { pictures: { ...options.pictures, summary: "described by size and colours" } }),
      },
      generate: (request, out) => runPrompts(request, out, prepareOne),
    }
    return engine
  }),
}
