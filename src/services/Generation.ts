// One text generation of a caller: admission, payment, start, reading, end. Each caller of this file writes the text in
// its own format.
import { Effect, Exit, Option, Random, type Scope } from "effect"
import type { ModelHandle } from "#actors/model/ModelHandle.ts"
import { textUsage, type Usage } from "#domain/models/Usage.ts"
import { type EdgeError, isNodeFault } from "#domain/wire/Failures.ts"
import { biasesOf } from "#domain/wire/Sampling.ts"
import { textOf, textPromptsOf } from "#engines/protocol/Contents.ts"
import type { Flow, Reader } from "#engines/protocol/Reader.ts"
import type {
  ChatTurn,
  GenerateCall,
  GenerateEnd,
  GenerateRequest,
  GenerateStarted,
  Sampling,
  TextDelta,
  TextPrompt,
} from "#engines/protocol/Text.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import type { Reservation } from "#store/ledger/UsageLedger.ts"
import { ownerOf } from "./Caller.ts"
import { beginRun, type ModelRunError, type ModelRunServices } from "./ModelRun.ts"

/** The fields of both text endpoints' bodies that an engine gets, after validation. */
interface SamplingFields {
  readonly temperature?: number | null
  readonly top_p?: number | null
  readonly top_k?: number | null
  readonly frequency_penalty?: number | null
  readonly presence_penalty?: number | null
  readonly stop?: string | ReadonlyArray<string> | null
  readonly max_tokens?: number | null
  readonly max_completion_tokens?: number | null
  readonly seed?: unknown
  readonly n?: number | null
  readonly logit_bias?: unknown
  readonly min_tokens?: number | null
}

/** Defaults that differ between the two endpoints (protocol 7.1). */
export interface TextDefaults {
  readonly maxTokens: number
  /** 0 is no top-k. */
  readonly topK: number
}

const isInteger = (value: unknown): value is number => Number.isSafeInteger(value)

/** The parts of an engine request that only one endpoint has, or that it computes. */
export type OwnTerms = Omit<Partial<GenerateRequest>, "prompt" | "sampling" | "stop">

/** Fields that most requests leave out: an absent one costs the message to the engine nothing. Undefined if all are absent. */
const rareTerms = ({ logit_bias = null, min_tokens, n }: SamplingFields): OwnTerms | undefined => {
  const replies = n ?? 1
  const minTokens = min_tokens ?? 0
  if (replies === 1 && minTokens === 0 && logit_bias === null) return undefined
  return {
    ...(replies > 1 ? { replies } : {}),
    ...(minTokens > 0 ? { minTokens } : {}),
    ...(logit_bias === null ? {} : { logitBias: biasesOf(logit_bias) }),
  }
}

/** Body fields → engine request. A seed is drawn where the caller gave no integer. `own` wins over the fields. */
export const toGenerateRequest = (
  prompt: GenerateRequest["prompt"],
  fields: SamplingFields,
  defaults: TextDefaults,
  own?: OwnTerms,
): Effect.Effect<GenerateRequest> =>
  isInteger(fields.seed)
    ? Effect.succeed(withSeed(fields.seed >>> 0, prompt, fields, defaults, own))
    : Effect.map(Random.nextIntBetween(0, 2 ** 32 - 1), (seed) =>
        withSeed(seed, prompt, fields, defaults, own),
      )

const withSeed = (
  seed: number,
  prompt: GenerateRequest["prompt"],
  fields: SamplingFields,
  defaults: TextDefaults,
  own: OwnTerms | undefined,
): GenerateRequest => {
  const sampling: Sampling = {
    temperature: fields.temperature ?? 0.7,
    topP: fields.top_p ?? 0.9,
    topK: Math.max(0, fields.top_k ?? defaults.topK),
    frequencyPenalty: fields.frequency_penalty ?? 0,
    presencePenalty: fields.presence_penalty ?? 0,
    seed,
  }
  const stop = fields.stop ?? []
  const request: GenerateRequest = {
    prompt,
    maxTokens: fields.max_tokens ?? fields.max_completion_tokens ?? defaults.maxTokens,
    sampling,
    stop: typeof stop === "string" ? [stop] : stop,
  }
  const rare = rareTerms(fields)
  return rare === undefined && own === undefined ? request : { ...request, ...rare, ...own }
}

/** Template tokens that a chat template puts around one message, and around the whole prompt. A generous guess. */
const tokensPerTurn = 16

/** Bytes of one message in the prompt, with its calls and thoughts. */
const bytesOfTurn = (turn: ChatTurn): number => {
  const bytes = Buffer.byteLength(textOf(turn.content)) + tokensPerTurn
  if (turn.role !== "assistant") return bytes
  const { calls = [], reasoning = "" } = turn
  return calls.reduce(
    (sum, call) => sum + Buffer.byteLength(call.name + call.arguments) + 2 * tokensPerTurn,
    bytes + Buffer.byteLength(reasoning),
  )
}

/** Templates print definitions of tools with spaces or indented: at most this many times the bytes of compact JSON. A guess. */
const printedOverCompact = 2

const bytesOfDefinitions = ({ format, tools }: GenerateCall): number =>
  format === undefined && tools === undefined
    ? 0
    : printedOverCompact * Buffer.byteLength(JSON.stringify([format, tools]))

/** No tokenizer makes more tokens of a text than it has UTF-8 bytes; the context bounds it as well. */
const promptTokensAtMost = (request: GenerateCall, contextTokens: number, pictureTokens: number): number => {
  const { prompt, suffix = "" } = request
  if ("turns" in prompt) {
    const bytes = prompt.turns.reduce((sum, turn) => sum + bytesOfTurn(turn), tokensPerTurn)
    return Math.min(bytes + bytesOfDefinitions(request) + tokensPerTurn + pictureTokens, contextTokens)
  }
  const around = Buffer.byteLength(suffix) + tokensPerTurn
  const sizeOf = (text: TextPrompt) => (typeof text === "string" ? Buffer.byteLength(text) : text.length)
  return textPromptsOf(prompt).reduce((sum, text) => sum + Math.min(sizeOf(text) + around, contextTokens), 0)
}

/** Tokens that a request generates at most: those of all replies to all prompts, also of the ones that are not returned. */
const completionTokensAtMost = (request: GenerateCall, contextTokens: number): number =>
  Math.min(request.maxTokens, contextTokens) *
  Math.max(request.replies ?? 1, request.bestOf ?? 1) *
  Math.max(1, textPromptsOf(request.prompt).length)

/**
 * Pixels that become a token at least: models cut pictures into squares of 14 pixels or more, and some give a picture of
 * any size the tokens of the largest one. A guess on the safe side.
 */
const pixelsOfToken = 64

/** For the money reservation before the engine has loaded and the model's own number is known. */
const assumedContextTokens = 8_192

/** The most that a request with this number of pictures can use. */
export const generationAtMost = (model: ModelHandle<"text">, request: GenerateCall, pictures = 0): Usage => {
  const { contextTokens = assumedContextTokens, pictures: sight } = model.facts() ?? {}
  const pictureTokens = pictures * Math.ceil((sight?.maxPixels ?? 0) / pixelsOfToken)
  return textUsage(
    promptTokensAtMost(request, contextTokens, pictureTokens),
    completionTokensAtMost(request, contextTokens),
  )
}

export interface Generation {
  readonly started: GenerateStarted
  /** Sends all deltas to `reader`, those that arrived earlier first. Called once. */
  readonly read: (reader: Reader<TextDelta>) => void
  readonly flow: Flow
  /** Completes when the generation has ended. */
  readonly end: Effect.Effect<GenerateEnd, EdgeError>
}

/** Counts the tokens of a generation and passes its deltas on; deltas that arrive before there is a reader are buffered. */
class Progress implements Reader<TextDelta, GenerateStarted, GenerateEnd> {
  #reader: Reader<TextDelta> | undefined
  completionTokens = 0
  promptTokens: number | undefined
  #early: Array<TextDelta> = []

  started(started: GenerateStarted): void {
    this.promptTokens = started.promptTokens
  }

  take(delta: TextDelta): void {
    this.completionTokens = delta.completionTokens
    if (this.#reader === undefined) this.#early.push(delta)
    else this.#reader.take(delta)
  }

  ended(end: GenerateEnd): void {
    this.completionTokens = end.completionTokens
  }

  read(reader: Reader<TextDelta>): void {
    for (const delta of this.#early) reader.take(delta)
    this.#early = []
    this.#reader = reader
  }
}

/** Whether the caller reads the text while it is generated, or gets the whole text at the end. */
export type Delivery = "stream" | "whole"

export interface BeginTerms {
  /** Money that is reserved already, because preparing the request costs something. */
  readonly reservation?: Reservation
  /** For a generation that may turn out not to be wanted: asked when the caller's scope closes, and only then it is charged. */
  readonly chargedIf?: () => boolean
}

const failedHere = (exit: Exit.Exit<GenerateEnd, ModelRunError> | undefined): boolean =>
  exit !== undefined && Option.exists(Exit.findErrorOption(exit), isNodeFault)

/**
 * Starts a generation and waits until the engine has accepted its prompt. Charged for what was generated; if the node failed,
 * only for what the caller has received.
 */
export const begin = (
  principal: Principal,
  model: ModelHandle<"text">,
  request: GenerateCall,
  delivery: Delivery,
  { chargedIf, reservation }: BeginTerms = {},
): Effect.Effect<Generation, EdgeError, Scope.Scope | ModelRunServices> =>
  Effect.suspend(() => {
    const progress = new Progress()
    const run = beginRun<"text">({
      principal,
      model,
      request: { ...request, owner: ownerOf(principal.orgId) },
      atMost: generationAtMost(model, request),
      ...(reservation === undefined ? {} : { reservation }),
      used: (exit) => {
        const { completionTokens, promptTokens } = progress
        if (promptTokens === undefined || chargedIf?.() === false) return undefined
        const had = delivery === "stream" ? completionTokens : 0
        return had === 0 && failedHere(exit) ? undefined : textUsage(promptTokens, completionTokens)
      },
      reader: progress,
      untilReplied: chargedIf !== undefined,
    })
    return Effect.map(run, ({ end, flow, started }) => ({
      started,
      flow,
      read: (reader) => progress.read(reader),
      end,
    }))
  })
