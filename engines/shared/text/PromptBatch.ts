// A request with several prompts: they are evaluated one after the other, their replies are numbered, and their tokens counted, as those
// of one request.
import * as Effect from "effect/Effect"
import {
  EngineError,
  type GenerateEnd,
  type GenerateRequest,
  type GenerateStarted,
  type Outlet,
  type TextDelta,
  type TextPrompt,
} from "../../protocol/Engine.ts"

/** A request with one prompt that was read. */
export interface PromptRun {
  readonly promptTokens: number
  readonly run: Effect.Effect<GenerateEnd, EngineError>
}

type Prepare = (request: GenerateRequest, out: Outlet<"text">) => Effect.Effect<PromptRun, EngineError>

class PromptBatch {
  readonly #out: Outlet<"text">
  readonly #replies: number
  #promptTokens = 0
  #cachedTokens = 0
  #begun = false
  /** Tokens generated for the prompts that have ended. */
  #completionTokens = 0
  readonly #ends: Array<GenerateEnd> = []

  /** `replies`: that each prompt returns. */
  constructor(out: Outlet<"text">, replies: number) {
    this.#out = out
    this.#replies = replies
  }

  /** Called for each prompt before the first begins. */
  expect(promptTokens: number): void {
    this.#promptTokens += promptTokens
  }

  /** Of prompt number `index`. */
  outlet(index: number): Outlet<"text"> {
    const out = this.#out
    return {
      started: ({ cachedTokens }: GenerateStarted) => {
        this.#cachedTokens += cachedTokens
        if (!this.#begun) out.started({ promptTokens: this.#promptTokens, cachedTokens })
        this.#begun = true
      },
      push: ({ completionTokens, detail, text }: TextDelta) => {
        const reply = index * this.#replies + (detail?.reply ?? 0)
        out.push({
          text,
          completionTokens: this.#completionTokens + completionTokens,
          ...(reply === 0 && detail === undefined ? {} : { detail: { ...detail, reply } }),
        })
      },
      paused: () => out.paused(),
      resumed: out.resumed,
    }
  }

  ended(end: GenerateEnd): void {
    this.#completionTokens += end.completionTokens
    this.#ends.push(end)
  }

  get end(): GenerateEnd {
    const finishReasons = this.#ends.flatMap((end) => end.finishReasons ?? [end.finishReason])
    return {
      finishReason: finishReasons[0] ?? "stop",
      finishReasons,
      promptTokens: this.#promptTokens,
      cachedTokens: this.#cachedTokens,
      completionTokens: this.#completionTokens,
    }
  }
}

/** A refusal that names its prompt. */
const ofPrompt = (error: EngineError, index: number): EngineError =>
  error.field === "prompt" ? new EngineError({ ...error, field: `prompt[${index}]` }) : error

/** All prompts are read before the first is evaluated, so one that cannot be evaluated is refused at no cost. */
const runBatch = Effect.fnUntraced(function* (
  request: GenerateRequest,
  texts: ReadonlyArray<TextPrompt>,
  out: Outlet<"text">,
  prepare: Prepare,
): Effect.fn.Return<GenerateEnd, EngineError> {
  const batch = new PromptBatch(out, request.replies ?? 1)
  const all: Array<PromptRun> = []
  for (const [index, text] of texts.entries()) {
    const reading = prepare({ ...request, prompt: { texts: [text] } }, batch.outlet(index))
    const one = yield* Effect.mapError(reading, (error) => ofPrompt(error, index))
    batch.expect(one.promptTokens)
    all.push(one)
    // Other requests are read in between.
    yield* Effect.sleep(0)
  }
  for (const { run } of all) batch.ended(yield* run)
  return batch.end
})

/** Runs a request with one prompt or several. `prepare` reads a request with one. */
export const runPrompts = (
  request: GenerateRequest,
  out: Outlet<"text">,
  prepare: Prepare,
): Effect.Effect<GenerateEnd, EngineError> => {
  const { prompt } = request
  return "texts" in prompt && prompt.texts.length > 1
    ? runBatch(request, prompt.texts, out, prepare)
    : Effect.flatMap(prepare(request, out), ({ run }) => run)
}
