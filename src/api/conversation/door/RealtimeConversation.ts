// GET /v1/realtime?model=…: OpenAI's realtime protocol for a conversation over a WebSocket. Sockets for transcription alone go to
// RealtimeTranscription.
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { looksLikeSecret } from "#domain/access/ClientSecret.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import { ownedBy } from "../../live/DroppedBytes.ts"
import { eventSize } from "../../live/EventReader.ts"
import { isWebSocket, liveCredential, upgradeLive } from "../../live/LiveAdmission.ts"
import { realtimeTranscription } from "../../live/RealtimeTranscription.ts"
import { converses } from "../ConversationModels.ts"
import type { Line } from "../Line.ts"
import { holdConversation } from "./Converse.ts"
import { identifyOpener, type Opener, openerOf } from "./Opener.ts"

const webSocketLine = (request: HttpServerRequest.HttpServerRequest, { caller, secret }: Opener) =>
  Effect.gen(function* () {
    const connection = yield* ownedBy(secret?.id ?? caller.userId, upgradeLive(request, eventSize))
    const reader = yield* connection.reader
    const writer = yield* connection.writer
    const line: Line = { reader, writer, sound: undefined }
    return line
  })

const serve = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, url: URL) {
  const identity = yield* identifyOpener(liveCredential(request, url))
  if (identity.secret !== undefined && url.searchParams.get("intent") !== null) {
    return yield* new InvalidRequest({ field: "intent", problem: "must be absent with a client secret" })
  }
  const opener = yield* openerOf(identity, url.searchParams.get("model"), "")
  yield* holdConversation(opener, webSocketLine(request, opener))
})

/**
 * A socket converses if its `model` is a conversation or one that writes text and no other `intent` is given, or if a client secret
 * opens it. Refused before the upgrade like any request; after it, failures are events.
 */
export const realtime = (request: HttpServerRequest.HttpServerRequest) =>
  Effect.gen(function* () {
    const url = new URL(request.url, "http://edge")
    const model = url.searchParams.get("model")
    const isConversation =
      looksLikeSecret(liveCredential(request, url)) ||
      (url.searchParams.get("intent") === null && model !== null && (yield* converses(model)))
    if (!isConversation || !isWebSocket(request)) return yield* realtimeTranscription(request)
    yield* serve(request, url)
    return HttpServerResponse.empty()
  })
