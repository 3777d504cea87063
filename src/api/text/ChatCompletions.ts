// POST /v1/chat/completions: request, response, handler.
import { Clock, Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { type ChatRequest, ChatRequest as ChatRequestSchema, textOf } from "#domain/wire/Chat.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import type { ChatTurn, GenerateEnd } from "#engines/protocol/Engine.ts"
import { NewId } from "#http/Ids.ts"
import { Caller } from "#services/Caller.ts"
import { begin, type TextDefaults, toGenerateRequest } from "#services/Generation.ts"
import { findModel } from "#services/ModelLookup.ts"
import { readJson } from "../http/JsonBody.ts"
import { type Extras, event, extrasOf, type StreamFrames, streamReply, TextFrame } from "./TextStream.ts"

const defaults: TextDefaults = { maxTokens: 150, topK: 0 }

const readRequest = readJson(ChatRequestSchema)

/** The messages of a request; fails for a part that a text model cannot read. */
const turnsOf = (request: ChatRequest): Effect.Effect<ReadonlyArray<ChatTurn>, InvalidRequest> => {
  const turns: Array<ChatTurn> = []
  for (const [index, { content, role }] of request.messages.entries()) {
    const text = textOf(content)
    if (text === undefined) {
      const problem = `only text is supported by ${request.model}`
      return Effect.fail(new InvalidRequest({ field: `messages[${index}].content`, problem }))
    }
    turns.push({ role: role === "developer" ? "system" : role, content: text })
  }
  return Effect.succeed(turns)
}

export const usageOf = ({ completionTokens, promptTokens }: GenerateEnd) => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
})

interface Head {
  readonly id: string
  readonly created: number
  readonly model: string
}

const chunk = ({ created, id, model }: Head, delta: object, finish_reason: string | null) => ({
  id,
  object: "chat.completion.chunk",
  created,
  model,
  choices: [{ index: 0, delta, finish_reason }],
})

const streamFrames = (head: Head, { timing, usage }: Extras): StreamFrames => ({
  first: new TextFrame((content) => chunk(head, { role: "assistant", content }, null)),
  next: new TextFrame((content) => chunk(head, { content }, null)),
  last: (end) => {
    const last = chunk(head, {}, end.finishReason)
    if (!usage) return event({ ...last, ...timing() })
    const { created, id, model } = head
    const object = "chat.completion.chunk"
    return event(last) + event({ id, object, created, model, choices: [], usage: usageOf(end), ...timing() })
  },
})

export const chatCompletions = Effect.fnUntraced(function* (
  httpRequest: HttpServerRequest.HttpServerRequest,
) {
  const body = yield* readRequest(httpRequest)
  const model = yield* findModel(body.model, "text")
  const turns = yield* turnsOf(body)
  const request = yield* toGenerateRequest({ turns }, body, defaults)
  const delivery = body.stream === true ? "stream" : "whole"
  const generation = yield* begin(yield* Caller, model, request, delivery)
  const head: Head = {
    id: `chatcmpl-${(yield* NewId)()}`,
    created: Math.floor((yield* Clock.currentTimeMillis) / 1000),
    model: model.entry.id,
  }
  if (body.stream === true) {
    return streamReply(generation, streamFrames(head, yield* extrasOf(body.stream_options)))
  }
  let content = ""
  generation.read({
    take: ({ text }) => {
      content += text
    },
  })
  const end = yield* generation.end
  return HttpServerResponse.jsonUnsafe({
    ...head,
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: end.finishReason }],
    usage: usageOf(end),
  })
})
