// POST /v1/completions: request, response, handler. The start of a generation is shared with the completions socket.
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import {
  type CompletionBody,
  CompletionBody as CompletionBodySchema,
  promptsOf,
} from "#domain/wire/Completion.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import type { GenerateStarted } from "#engines/protocol/Text.ts"
import { Caller } from "#services/Caller.ts"
import { renamed } from "#services/chat/ChatTools.ts"
import {
  begin,
  type Delivery,
  type OwnTerms,
  type TextDefaults,
  toGenerateRequest,
} from "#services/Generation.ts"
import { findModel } from "#services/ModelLookup.ts"
import { replyProblem, tooManyLogprobs } from "#services/ReplyLimits.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import { readJson } from "../http/JsonBody.ts"
import { CompletionChunks, CompletionReply } from "./CompletionReply.ts"
import { finishesOf, type Head, headIn, usageOf } from "./TextHead.ts"
import { type Extras, event, extrasOf, type StreamFrames, streamReply, TextFrame } from "./TextStream.ts"

const defaults: TextDefaults = { maxTokens: 100, topK: 50 }

const readRequest = readJson(CompletionBodySchema)

const ownTerms = ({ best_of, echo, logprobs, n, suffix }: CompletionBody): OwnTerms => ({
  ...(typeof logprobs === "number" ? { logprobs } : {}),
  ...(echo === true ? { echo } : {}),
  ...(typeof suffix === "string" ? { suffix } : {}),
  ...((best_of ?? 1) > (n ?? 1) ? { bestOf: best_of ?? 1 } : {}),
})

/** The refusal of a `best_of` that cannot be served. */
const bestOfProblem = ({ best_of, n }: CompletionBody, delivery: Delivery): InvalidRequest | undefined => {
  if (best_of === undefined || best_of === null) return undefined
  const field = "best_of"
  if (best_of < (n ?? 1)) return new InvalidRequest({ field, problem: `must be at least n: ${n ?? 1}` })
  if (delivery === "whole" || best_of === (n ?? 1)) return undefined
  return new InvalidRequest({ field, problem: "cannot be streamed: the best reply is known at the end" })
}

/** The refusal of an `echo` that cannot be served, or of a reply without tokens that needs one. */
const echoProblem = ({ echo, logprobs, max_tokens, suffix }: CompletionBody): InvalidRequest | undefined => {
  if (max_tokens === 0 && echo !== true)
    return new InvalidRequest({ field: "max_tokens", problem: "must be at least 1 without echo" })
  if (echo !== true || typeof suffix !== "string" || (typeof logprobs !== "number" && max_tokens !== 0))
    return undefined
  const problem = "cannot be combined with suffix where the request has logprobs, or max_tokens of 0"
  return new InvalidRequest({ field: "echo", problem })
}

/** A decoded body on behalf of a caller, accepted by the engine. */
export const beginCompletion = Effect.fnUntraced(function* (
  caller: Principal,
  body: CompletionBody,
  delivery: Delivery,
) {
  const texts = promptsOf(body)
  if (texts instanceof InvalidRequest) return yield* texts
  const [first] = texts
  const model = yield* findModel(body.model, "text")
  const prompt = texts.length === 1 && typeof first === "string" ? { text: first } : { texts }
  const request = yield* toGenerateRequest(prompt, body, defaults, ownTerms(body))
  const problem =
    echoProblem(body) ??
    bestOfProblem(body, delivery) ??
    replyProblem(body, request, model.facts()?.slots) ??
    tooManyLogprobs(request, "logprobs")
  if (problem !== undefined) return yield* problem
  const generation = yield* begin(caller, model, request, delivery).pipe(
    Effect.mapError((error) => (error._tag === "InvalidRequest" ? renamed(error) : error)),
  )
  const head = headIn(yield* Effect.context(), "cmpl", model.entry)
  return { generation, head, replies: texts.length * (body.n ?? 1) }
})

const streamFrames = (head: Head, { timing, usage }: Extras, started: GenerateStarted): StreamFrames => {
  const chunks = new CompletionChunks(head)
  const text = new TextFrame((marker) => chunks.text(marker))
  return {
    first: text,
    next: text,
    detailed: (detail, piece) => chunks.detailed(detail, piece).map(event).join(""),
    last: (end) => {
      const last = chunks.last(finishesOf(end))
      if (!usage) return last.slice(0, -1).map(event).join("") + event({ ...last.at(-1), ...timing() })
      const { created, id, model } = head
      const tokens = { usage: usageOf(end, started), ...timing() }
      return (
        last.map(event).join("") +
        event({ id, object: "text_completion", created, model, choices: [], ...tokens })
      )
    },
  }
}

export const completions = Effect.fnUntraced(function* (httpRequest: HttpServerRequest.HttpServerRequest) {
  const body = yield* readRequest(httpRequest)
  const delivery = body.stream === true ? "stream" : "whole"
  const { generation, head, replies } = yield* beginCompletion(yield* Caller, body, delivery)
  const { started } = generation
  if (delivery === "stream") {
    const extras = yield* extrasOf(body.stream_options)
    return streamReply(generation, streamFrames(head, extras, started))
  }
  const reply = new CompletionReply(replies, typeof body.logprobs === "number")
  generation.read(reply)
  const end = yield* generation.end
  const record = reply.record(head, finishesOf(end), usageOf(end, started))
  return HttpServerResponse.text(record, { contentType: "application/json" })
})
