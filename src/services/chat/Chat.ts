// Begins the generation of a chat, which chat completions, the Responses API, the completions socket and conversations
// share: its messages, tools and bounds as the engine takes them, and errors in the request's own names.
import { Effect } from "effect"
import type { ModelHandle } from "#actors/model/ModelHandle.ts"
import { maxJsonBytes } from "#domain/json/JsonLimits.ts"
import { type ChatRequest, thinkingTokens } from "#domain/wire/Chat.ts"
import { BodyTooLarge, InvalidRequest, PromptTooLong } from "#domain/wire/Errors.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import type { GenerateRequest, MessageEndTerms } from "#engines/protocol/Text.ts"
import { nowMs } from "#http/RequestContext.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import {
  type BeginTerms,
  begin,
  type Delivery,
  type Generation,
  type OwnTerms,
  type TextDefaults,
  toGenerateRequest,
} from "../Generation.ts"
import { findModel } from "../ModelLookup.ts"
import { beginWithPictures, takesPictures } from "../PictureChat.ts"
import { replyProblem, tooManyLogprobs } from "../ReplyLimits.ts"
import { type ChatShape, renamed, renamedLimit, shapeOf } from "./ChatTools.ts"
import { turnsOf } from "./ChatTurns.ts"

const defaults: TextDefaults = { maxTokens: 150, topK: 0 }

/** The refusal of a body that is too large for a model that takes no pictures. */
const tooLargeForText = (sizeBytes: number, pictures: boolean): BodyTooLarge | undefined =>
  pictures || sizeBytes <= maxJsonBytes ? undefined : new BodyTooLarge({ limitBytes: maxJsonBytes })

/**
 * How long the model may think and how long the whole reply may be (protocol 7.10). Where the body bounds the reply,
 * thinking gets at most half of it; the default bound is that of the answer alone.
 */
const thinking = (body: ChatRequest, maxTokens: number): OwnTerms | undefined => {
  const budget = body.max_thinking_tokens ?? thinkingTokens[body.reasoning_effort ?? "none"]
  if (budget === 0) return undefined
  const bound = body.max_tokens ?? body.max_completion_tokens
  if (bound === undefined || bound === null) {
    return { thinkingTokens: budget, maxTokens: maxTokens + budget }
  }
  const half = Math.floor(bound / 2)
  return half === 0 ? undefined : { thinkingTokens: Math.min(budget, half) }
}

/** Undefined for most requests, which spares them the copying of objects. */
const ownTerms = (
  body: ChatRequest,
  { format, tools }: ChatShape,
  maxTokens: number,
): OwnTerms | undefined => {
  const thought = thinking(body, maxTokens)
  if (thought === undefined && tools === undefined && format === undefined && body.logprobs !== true) {
    return undefined
  }
  return {
    ...(tools === undefined ? {} : { tools }),
    ...(format === undefined ? {} : { format }),
    ...(body.logprobs === true ? { logprobs: body.top_logprobs ?? 0 } : {}),
    ...thought,
  }
}

/** Reading a request in this time is one tick's work. A guess: a third of what may block the event loop. */
const tickMs = 3

/** Goes on with `next`, after others had their turn if the present tick has worked since `sinceMs` on this request for a while. */
const inPieces = <A, E, R>(sinceMs: number, next: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  nowMs() - sinceMs > tickMs ? Effect.flatMap(Effect.sleep(0), next) : next()

interface ChatTerms {
  /** Of the body's text, where it may be larger than a text model's. */
  readonly sizeBytes?: number
  /** What counts where the body says nothing. */
  readonly unless?: TextDefaults
  readonly terms?: Pick<BeginTerms, "chargedIf">
  /** No reply, but how probable the end of the last message is. */
  readonly messageEnd?: MessageEndTerms
}

/** A chat that the engine has accepted. */
export interface BegunChat {
  readonly generation: Generation
  readonly model: ModelHandle<"text">
  readonly request: GenerateRequest
  readonly shape: ChatShape
}

/**
 * A decoded body on behalf of a caller, accepted by the engine. No generator, because every chat request runs this, and each step of a generator allocates several objects.
 */
export const beginChat = (
  caller: Principal,
  body: ChatRequest,
  delivery: Delivery,
  { messageEnd, sizeBytes = 0, terms: beginTerms, unless = defaults }: ChatTerms = {},
) =>
  Effect.flatMap(findModel(body.model, "text"), (model) => {
    const beganMs = nowMs()
    const sees = takesPictures(model)
    const tooLarge = tooLargeForText(sizeBytes, sees)
    if (tooLarge !== undefined) return Effect.fail(tooLarge)
    const read = turnsOf(body.messages, { model: body.model, pictures: sees })
    if (read instanceof InvalidRequest) return Effect.fail(read)
    const { pictures, turns } = read
    return inPieces(beganMs, () => {
      const shape = shapeOf(body)
      if (shape instanceof InvalidRequest) return Effect.fail(shape)
      return inPieces(beganMs, () => {
        const asked = ownTerms(body, shape, unless.maxTokens)
        const own = messageEnd === undefined ? asked : { ...asked, messageEnd }
        return Effect.flatMap(toGenerateRequest({ turns }, body, unless, own), (request) => {
          const problem =
            replyProblem(body, request, model.facts()?.slots) ?? tooManyLogprobs(request, "top_logprobs")
          if (problem !== undefined) return Effect.fail(problem)
          const starting =
            pictures.length === 0
              ? begin(caller, model, request, delivery, beginTerms)
              : beginWithPictures(caller, model, request, pictures, delivery, beginTerms)
          const named = (error: EdgeError): EdgeError => {
            if (error._tag === "InvalidRequest") return renamed(error, shape)
            if (error._tag === "RateLimited") return renamedLimit(error, shape)
            if (error._tag === "PromptTooLong" && error.field === "tools" && shape.usesFunctions)
              return new PromptTooLong({ ...error, field: "functions" })
            return error
          }
          // A reply that is held to a schema may be refused while it is generated.
          const isHeld = request.format !== undefined || request.tools !== undefined
          const begun = Effect.map(Effect.mapError(starting, named), (generation) =>
            isHeld ? { ...generation, end: Effect.mapError(generation.end, named) } : generation,
          )
          return Effect.map(begun, (generation): BegunChat => ({ generation, model, request, shape }))
        })
      })
    })
  })
