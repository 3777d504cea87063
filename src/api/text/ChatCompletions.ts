// POST /v1/chat/completions: request, response, handler.
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { ChatRequest } from "#domain/wire/Chat.ts"
import { Caller } from "#services/Caller.ts"
import { beginChat } from "#services/chat/Chat.ts"
import { readChat } from "./ChatBody.ts"
import { ChatReply, replyIn } from "./ChatReply.ts"
import { ChatStream } from "./ChatStream.ts"
import { finishesOf, usageOf } from "./TextHead.ts"
import { extrasOf, streamReply } from "./TextStream.ts"

const readRequest = readChat(ChatRequest)

export const chatCompletions = Effect.fnUntraced(function* (
  httpRequest: HttpServerRequest.HttpServerRequest,
) {
  const { body, sizeBytes } = yield* readRequest(httpRequest)
  const delivery = body.stream === true ? "stream" : "whole"
  const begun = yield* beginChat(yield* Caller, body, delivery, { sizeBytes })
  const { generation } = begun
  const { started } = generation
  const { head, terms } = replyIn(yield* Effect.context<never>(), body, begun)
  if (delivery === "stream") {
    const extras = yield* extrasOf(body.stream_options)
    return streamReply(generation, new ChatStream(head, terms, extras, started))
  }
  const reply = new ChatReply(terms)
  generation.read(reply)
  const end = yield* generation.end
  const record = reply.record(head, finishesOf(end), usageOf(end, started))
  return HttpServerResponse.text(record, { contentType: "application/json" })
})
