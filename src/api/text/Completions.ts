// POST /v1/completions: request, response, handler. The chunk form is shared with the completions socket.
import { Clock, Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import {
  type CompletionRequest,
  CompletionRequest as CompletionRequestSchema,
} from "#domain/wire/Completion.ts"
import { NewId } from "#http/Ids.ts"
import { Caller } from "#services/Caller.ts"
import { begin, type Delivery, type TextDefaults, toGenerateRequest } from "#services/Generation.ts"
import { findModel } from "#services/ModelLookup.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import { readJson } from "../http/JsonBody.ts"
import { usageOf } from "./ChatCompletions.ts"
import { type Extras, event, extrasOf, type StreamFrames, streamReply, TextFrame } from "./TextStream.ts"

const defaults: TextDefaults = { maxTokens: 100, topK: 50 }

const readRequest = readJson(CompletionRequestSchema)

export interface CompletionHead {
  readonly id: string
  readonly created: number
  readonly model: string
}

/** One streamed chunk; `finish_reason` is null until the last. */
export const completionChunk = (
  { created, id, model }: CompletionHead,
  text: string,
  finish_reason: string | null,
) => ({
  id,
  object: "text_completion",
  created,
  model,
  choices: [{ text, index: 0, logprobs: null, finish_reason }],
})

/** A decoded body on behalf of a caller, accepted by the engine. */
export const beginCompletion = Effect.fnUntraced(function* (
  caller: Principal,
  body: CompletionRequest,
  delivery: Delivery,
) {
  const model = yield* findModel(body.model, "text")
  const request = yield* toGenerateRequest({ text: body.prompt }, body, defaults)
  const generation = yield* begin(caller, model, request, delivery)
  const head: CompletionHead = {
    id: `cmpl-${(yield* NewId)()}`,
    created: Math.floor((yield* Clock.currentTimeMillis) / 1000),
    model: model.entry.id,
  }
  return { generation, head }
})

const streamFrames = (head: CompletionHead, { timing, usage }: Extras): StreamFrames => {
  const text = new TextFrame((marker) => completionChunk(head, marker, null))
  return {
    first: text,
    next: text,
    last: (end) => {
      const last = completionChunk(head, "", end.finishReason)
      if (!usage) return event({ ...last, ...timing() })
      const object = "text_completion"
      return event(last) + event({ ...head, object, choices: [], usage: usageOf(end), ...timing() })
    },
  }
}

export const completions = Effect.fnUntraced(function* (httpRequest: HttpServerRequest.HttpServerRequest) {
  const body = yield* readRequest(httpRequest)
  const { generation, head } = yield* beginCompletion(
    yield* Caller,
    body,
    body.stream === true ? "stream" : "whole",
  )
  if (body.stream === true) {
    return streamReply(generation, streamFrames(head, yield* extrasOf(body.stream_options)))
  }
  let text = ""
  generation.read({
    take: (delta) => {
      text += delta.text
    },
  })
  const end = yield* generation.end
  return HttpServerResponse.jsonUnsafe({
    ...head,
    object: "text_completion",
    choices: [{ text, index: 0, logprobs: null, finish_reason: end.finishReason }],
    usage: usageOf(end),
  })
})
