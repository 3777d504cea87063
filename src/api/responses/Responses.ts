// POST /v1/responses: OpenAI's Responses API as another form of a chat. Nothing is stored.
import { Clock, Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import { ResponsesRequest } from "#domain/wire/responses/Request.ts"
import { NewId } from "#http/Ids.ts"
import { Caller } from "#services/Caller.ts"
import { beginChat } from "#services/chat/Chat.ts"
import type { TextDefaults } from "#services/Generation.ts"
import { readChat } from "../text/ChatBody.ts"
import { extrasOf, streamReply } from "../text/TextStream.ts"
import { asChat, echoOf } from "./AsChat.ts"
import { OutputItems } from "./OutputItems.ts"
import { ResponseRecord, usageOf } from "./ResponseRecord.ts"
import { ResponseStream } from "./ResponseStream.ts"

/** OpenAI's default is no bound, so here it is the largest one. */
const defaults: TextDefaults = { maxTokens: 4096, topK: 0 }

const readRequest = readChat(ResponsesRequest)

export const responses = Effect.fnUntraced(function* (httpRequest: HttpServerRequest.HttpServerRequest) {
  const { body, sizeBytes } = yield* readRequest(httpRequest)
  const asked = asChat(body)
  if (asked instanceof InvalidRequest) return yield* asked
  const { chat, renamed } = asked
  const delivery = body.stream === true ? "stream" : "whole"
  const begun = yield* beginChat(yield* Caller, chat, delivery, {
    sizeBytes,
    unless: defaults,
  }).pipe(Effect.mapError(renamed))
  const { model, request } = begun
  const generation = { ...begun.generation, end: Effect.mapError(begun.generation.end, renamed) }
  const { started } = generation
  const newId = yield* NewId
  const clock = yield* Clock.Clock
  const echo = echoOf(body, request.sampling)
  const created_at = Math.floor(clock.currentTimeMillisUnsafe() / 1000)
  const record = new ResponseRecord({ id: `resp_${newId()}`, created_at, model: model.entry.id }, echo)
  const logprobs = chat.logprobs === true
  if (delivery === "stream") {
    const { timing } = yield* extrasOf(body.stream_options)
    const summary = echo.reasoning.summary !== null
    const stream = new ResponseStream({ record, summary, logprobs, newId, started, clock, timing })
    return streamReply(generation, stream)
  }
  const output = new OutputItems(newId, logprobs)
  generation.read(output)
  const end = yield* generation.end
  output.end(end.finishReason)
  const reply = record.of({
    status: end.finishReason === "length" ? "incomplete" : "completed",
    completedAt: Math.floor(clock.currentTimeMillisUnsafe() / 1000),
    items: output.items,
    usage: usageOf(end, started),
  })
  return HttpServerResponse.text(reply, { contentType: "application/json" })
})
