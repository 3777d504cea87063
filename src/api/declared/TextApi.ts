// Chat, responses and text completions (protocol 7), and embeddings.
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import { ChatCompletion, ChatRequest } from "#domain/wire/Chat.ts"
import { Completion, CompletionRequest } from "#domain/wire/Completion.ts"
import { EmbeddingList, EmbeddingRequest } from "#domain/wire/Embeddings.ts"
import { ResponseEvent } from "#domain/wire/events/ResponseEvents.ts"
import { ChatEvent, CompletionEvent } from "#domain/wire/events/TextEvents.ts"
import { ResponsesReply } from "#domain/wire/responses/Reply.ts"
import { ResponsesRequest } from "#domain/wire/responses/Request.ts"
import { errors, eventStream, OwnHeaders, StreamEvents } from "#http/Declared.ts"
import { Authentication } from "../access/Authentication.ts"
import { ofJson, ofModels, ofRuns, onceErrors, onceHeaders, streamHeaders } from "./SharedReplies.ts"

const error = errors(...ofJson, ...onceErrors, ...ofModels, ...ofRuns)
/** A chat may hold pictures. */
const chatError = errors("NotInstalled", ...ofJson, ...onceErrors, ...ofModels, ...ofRuns)
const headers = [...streamHeaders, ...onceHeaders]

export class TextGroup extends HttpApiGroup.make("Text")
  .add(
    HttpApiEndpoint.post("chatCompletions", "/v1/chat/completions", {
      payload: ChatRequest,
      success: [ChatCompletion, eventStream],
      error: chatError,
    })
      .annotate(StreamEvents, ChatEvent)
      .annotate(OwnHeaders, headers),
    HttpApiEndpoint.post("completions", "/v1/completions", {
      payload: CompletionRequest,
      success: [Completion, eventStream],
      error,
    })
      .annotate(StreamEvents, CompletionEvent)
      .annotate(OwnHeaders, headers),
    HttpApiEndpoint.post("responses", "/v1/responses", {
      payload: ResponsesRequest,
      success: [ResponsesReply, eventStream],
      error: chatError,
    })
      .annotate(StreamEvents, ResponseEvent)
      .annotate(OwnHeaders, headers),
  )
  .add(
    HttpApiEndpoint.post("embeddings", "/v1/embeddings", {
      payload: EmbeddingRequest,
      success: EmbeddingList,
      error,
    }).annotate(OwnHeaders, onceHeaders),
  )
  .middleware(Authentication) {}
