// POST /v1/completions: request, response, handler. The start of a generation is shared with the completions socket.
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import {
  type CompletionRequest,
  CompletionRequest as CompletionRequestSchema,
} from "#domain/wire/Completion.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import type { GenerateStarted } from "#engines/protocol/Text.ts"
import { Caller } from "#services/Caller.ts"
import {
  begin,
  type Delivery,
  type OwnTerms,
  type TextDefaults,
  toGenerateRequest,
} from "#services/Generation.ts"
import { findModel } from "#services/ModelLookup.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import { readJson } from "../http/JsonBody.ts"
import { CompletionChunks, CompletionReply } from "./CompletionReply.ts"
import { tooManyLogprobs } from "./Logprobs.ts"
import { replyProblem } from "./Replies.ts"
import { renamed } from "./request/ChatTools.ts"
import { finishesOf, type Head, headIn, usageOf } from "./TextHead.ts"
import { type Extras, event, extrasOf, type StreamFrames, streamReply, TextFrame } from "./TextStream.ts"

const defaults: TextDefaults = { maxTokens: 100, topK: 50 }

const readRequest = readJson(CompletionRequestSchema)

const ownTerms = ({ best_of, echo, logprobs, n, suffix }: CompletionRequest): OwnTerms => ({
  ...(typeof logprobs === "number" ? { logprobs } : {}),
  ...(echo === true ? { echo } : {}),
  ...(typeof suffix === "string" ? { suffix } : {}),
  ...((best_of ?? 1) > (n ?? 1) ? { bestOf: best_of ?? 1 } : {}),
})

/** The refusal of a `best_of` that cannot be served. */
const bestOfProblem = ({ best_of, n }: CompletionRequest, delivery: Delivery): InvalidRequest | undefined => {
  if (best_of === undefined || best_of === null) return undefined
  const field = "best_of"
  if (best_of < (n ?? 1)) return new InvalidRequest({ field, problem: `must be at least n: ${n ?? 1}` })
  if (delivery === "whole" || best_of === (n ?? 1)) return undefined
  return new InvalidRequest({ field, problem: "cannot be streamed: the best reply is known at the end" })
}

/** A decoded body on behalf of a caller, accepted by the engine. */
export const beginCompletion = Effect.fnUntraced(function* (
  caller: Principal,
  body: CompletionRequest,
  delivery: Delivery,
) {
  const model = yield* findModel(body.model, "text")
  const request = yield* toGenerateRequest({ text: body.prompt }, body, defaults, ownTerms(body))
  const problem =
    bestOfProblem(body, delivery) ??
    replyProblem(body, request, model.facts()?.slots) ??
    tooManyLogprobs(request, "logprobs")
  if (problem !== undefined) return yield* problem
  const generation = yield* begin(caller, model, request, delivery).pipe(
    Effect.mapError((error) => (error._tag === "InvalidRequest" ? renamed(error) : error)),
  )
  return { generation, head: headIn(yield* Effect.context(), "cmpl", model.entry) }
})

/** The prompt where the replies begin with it. */
export const echoedOf = ({ echo, prompt }: CompletionRequest): string => (echo === true ? prompt : "")

const streamFrames = (
  head: Head,
  echoed: string,
  { timing, usage }: Extras,
  started: GenerateStarted,
): StreamFrames => {
  const chunks = new CompletionChunks(head, echoed)
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
  const { generation, head } = yield* beginCompletion(yield* Caller, body, delivery)
  const { started } = generation
  if (delivery === "stream") {
    const extras = yield* extrasOf(body.stream_options)
    return streamReply(generation, streamFrames(head, echoedOf(body), extras, started))
  }
  const reply = new CompletionReply(body.n ?? 1, typeof body.logprobs === "number", echoedOf(body))
  generation.read(reply)
  const end = yield* generation.end
  const record = reply.record(head, finishesOf(end), usageOf(end, started))
  return HttpServerResponse.text(record, { contentType: "application/json" })
})
