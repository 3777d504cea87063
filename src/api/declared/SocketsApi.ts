// The four WebSockets (protocol 7.6, 10, 11, 19.10), which the OpenAPI document leaves out, because it has no word for frames; and the
// client secrets with which browsers open conversations (protocol 19.6).
import { Schema } from "effect"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import { ClientSecretReply, ClientSecretRequest } from "#domain/conversation/ClientSecretTerms.ts"
import { ConversationEvent } from "#domain/conversation/ServerEvents.ts"
import { TwilioMessage, TwilioReply } from "#domain/telephony/TwilioMessages.ts"
import { RealtimeClientEvent, RealtimeEvent } from "#domain/wire/events/RealtimeEvents.ts"
import {
  completionsCloses,
  liveCloses,
  realtimeCloses,
  twilioCloses,
} from "#domain/wire/events/SocketCloses.ts"
import { CompletionClientFrame, CompletionServerFrame } from "#domain/wire/events/TextEvents.ts"
import { LiveEvent, StopFrame } from "#domain/wire/events/TranscriptEvents.ts"
import { errors, SocketFrames, switchingProtocols } from "#http/Declared.ts"
import { Authentication } from "../access/Authentication.ts"
import { ofJson, ofModels, ofRuns, text } from "./SharedReplies.ts"

/** Refused before the handshake is answered, as over HTTP. Credentials may stand in the query here (protocol 2.2). */
const ofCallers = ["InvalidRequest", "Unauthorized", "AuthUnavailable", "RateLimited", "StoreDown"] as const
const ofSessions = [...ofCallers, ...ofModels, ...ofRuns] as const

export class SocketsGroup extends HttpApiGroup.make("Sockets")
  .add(
    HttpApiEndpoint.get("completionsSocket", "/v1/completions/ws", {
      query: { token: text },
      success: switchingProtocols,
      error: errors(...ofCallers, "PaymentRequired"),
    }).annotate(SocketFrames, {
      server: CompletionServerFrame,
      client: CompletionClientFrame,
      closes: completionsCloses,
    }),
    HttpApiEndpoint.get("liveTranscription", "/v1/audio/transcriptions/ws", {
      query: {
        token: text,
        model: text,
        language: text,
        prompt: text,
        punctuation: text,
        window_s: text,
        vad_events: text,
      },
      success: switchingProtocols,
      error: errors(...ofSessions),
    }).annotate(SocketFrames, {
      server: LiveEvent,
      client: StopFrame,
      closes: liveCloses,
    }),
    HttpApiEndpoint.get("realtime", "/v1/realtime", {
      query: { token: text, intent: text, model: text, punctuation: text, call_id: text },
      success: switchingProtocols,
      error: errors(...ofSessions, "CallNotFound"),
    }).annotate(SocketFrames, {
      server: Schema.Union([RealtimeEvent, ConversationEvent]),
      client: RealtimeClientEvent,
      closes: realtimeCloses,
    }),
  )
  .add(
    HttpApiEndpoint.get("twilio", "/v1/telephony/twilio", {
      success: switchingProtocols,
      error: errors("InvalidRequest", "Unauthorized", "CallNotFound"),
    }).annotate(SocketFrames, { server: TwilioReply, client: TwilioMessage, closes: twilioCloses }),
  )
  .annotate(OpenApi.Exclude, true) {}

export class RealtimeGroup extends HttpApiGroup.make("Realtime")
  .add(
    HttpApiEndpoint.post("createClientSecret", "/v1/realtime/client_secrets", {
      payload: ClientSecretRequest,
      success: HttpApiSchema.WithHeaders(ClientSecretReply, { "cache-control": Schema.String }),
      error: errors(...ofJson, ...ofModels, "RateLimited", "Draining"),
    }),
  )
  .middleware(Authentication) {}
