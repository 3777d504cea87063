// GET /v1/realtime?model=…: OpenAI's realtime protocol for a conversation. Holds admission and the life of the socket;
// ConversationSocket handles events. Sockets for transcription alone go to RealtimeTranscription.
import { Cause, Effect, Option } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { CloseEvent, type Reader, type SocketError } from "effect/socket/Socket"
import { Drain } from "#actors/Drain.ts"
import { TokenBucket } from "#domain/access/TokenBucket.ts"
import { SPEECH_RATE_HZ } from "#domain/audio/Audio.ts"
import { History } from "#domain/conversation/History.ts"
import { PlayClock } from "#domain/conversation/PlayClock.ts"
import { NewId } from "#http/Ids.ts"
import { nowMs } from "#http/RequestContext.ts"
import { reportFailure } from "#services/AnswerFailures.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { credentialEnds } from "../access/CredentialEnd.ts"
import { RateLimit } from "../access/RateLimit.ts"
import { identifyLive, isWebSocket, upgradeLive } from "../live/LiveAdmission.ts"
import { RealtimeItems, type Tell } from "../live/RealtimeItems.ts"
import { realtimeTranscription } from "../live/RealtimeTranscription.ts"
import { takeSeat } from "./ConversationAdmission.ts"
import { conversationModels, converses, firstSettings, presetOf } from "./ConversationModels.ts"
import { type ConversationServices, ConversationSocket } from "./ConversationSocket.ts"
import { Floor } from "./Floor.ts"

/** Longest conversation. OpenAI's limit. */
export const longestMinutes = 60

/** Minutes after which a client that sends nothing has gone. Audio comes all the time, and texts between thoughts. A guess. */
export const idleMinutes = 15

/** Most events of one socket without audio. Audio comes 50 to 100 times a second and is bounded by its bytes. A guess. */
const smallEvents = { burst: 500, perSecond: 50 }
/** An event of this length carries 4 ms of audio and more, and is not counted. */
const audioChars = 256

const readUntilIdle = (
  reader: Reader,
  socket: ConversationSocket,
): Effect.Effect<CloseEvent, SocketError, ConversationServices> =>
  Effect.gen(function* () {
    const allowance = new TokenBucket(smallEvents, nowMs())
    for (;;) {
      const frames = yield* Effect.timeoutOption(reader.pull, `${idleMinutes} minutes`)
      if (Option.isNone(frames)) return new CloseEvent(1000, "idle")
      for (const frame of frames.value) {
        const understood = yield* socket.take(frame)
        const counts = !understood || frame.length < audioChars
        if (counts && !allowance.spend(1, nowMs())) return new CloseEvent(1008, "too many events")
      }
    }
  })

const serve = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, url: URL) {
  const caller = yield* identifyLive(request, url)
  const models = yield* conversationModels(url.searchParams.get("model") ?? "")
  const accounts = yield* Accounts
  const drain = yield* Drain
  const newId = yield* NewId
  // No money is reserved before audio arrives; a caller without money is refused before the upgrade.
  yield* Effect.scoped((yield* UsageLedger).reserve(caller, 0))
  const outer = yield* Effect.scope
  const settings = firstSettings(models)
  // A voice that the engine lacks, though the catalog names it.
  yield* presetOf(models.speaks, settings.voice)
  const seat = yield* takeSeat(models, settings, outer)
  const expiresAt = Math.floor(Date.now() / 1000) + longestMinutes * 60
  const facts = { id: `sess_${newId()}`, model: models.asked, expiresAt }
  yield* Effect.gen(function* () {
    const connection = yield* upgradeLive(request)
    const reader = yield* connection.reader
    const writer = yield* connection.writer
    const scope = yield* Effect.scope
    const tell: Tell = (type, event = {}) =>
      writer.write(JSON.stringify({ type, event_id: `event_${newId()}`, ...event }))
    const history = new History()
    const clock = new PlayClock(SPEECH_RATE_HZ)
    const admit = (yield* RateLimit).admit(caller.userId)
    const conversationId = `conv_${newId()}`
    const shared = { tell, newId, caller, scope, models, conversationId, history, admit }
    const floor: Floor = new Floor(
      { ...shared, settings: () => socket.current, heardMs: () => socket.heardMs },
      clock,
    )
    const items = new RealtimeItems(tell, caller, scope, false, {
      add: floor.heardTurn,
      tellsTranscripts: () => socket.current.transcription !== null,
      transcribed: floor.transcribed,
    })
    const socket: ConversationSocket = new ConversationSocket(
      {
        ...shared,
        facts,
        items,
        seat,
        reseat: (next, replaced) => takeSeat(models, next, outer, replaced),
      },
      settings,
      floor,
    )
    yield* socket.created
    const gone = new CloseEvent(1001, "server is shutting down")
    const drained = Effect.andThen(
      drain.closing,
      Effect.as(Effect.andThen(Effect.ignore(items.finished), floor.finished), gone),
    )
    const locked = Effect.map(credentialEnds(accounts, caller), (end) => new CloseEvent(1008, end))
    const message = `Your session hit the maximum duration of ${longestMinutes} minutes.`
    const expired = Effect.andThen(
      Effect.sleep(`${longestMinutes} minutes`),
      Effect.as(
        tell("error", {
          error: {
            type: "invalid_request_error",
            code: "session_expired",
            message,
            param: null,
            event_id: null,
          },
        }),
        new CloseEvent(1000, "session expired"),
      ),
    )
    const close = yield* Effect.raceAllFirst([readUntilIdle(reader, socket), drained, locked, expired]).pipe(
      Effect.catchCauseIf(Cause.hasDies, (cause) =>
        Effect.as(reportFailure(cause, "/v1/realtime"), new CloseEvent(1011, "failed")),
      ),
    )
    yield* writer.write(close)
  }).pipe(
    Effect.scoped,
    Effect.catchIf(
      (error): error is SocketError => error._tag === "SocketError",
      () => Effect.void,
    ),
    drain.admit,
  )
}, Effect.scoped)

/**
 * A socket converses if its `model` is a conversation or one that writes text, and no other `intent` is given. Refused before the upgrade like any
 * request; after it, failures are events.
 */
export const realtime = (request: HttpServerRequest.HttpServerRequest) =>
  Effect.gen(function* () {
    const url = new URL(request.url, "http://edge")
    const model = url.searchParams.get("model")
    const isConversation =
      url.searchParams.get("intent") === null && model !== null && (yield* converses(model))
    if (!isConversation || !isWebSocket(request)) return yield* realtimeTranscription(request)
    yield* serve(request, url)
    return HttpServerResponse.empty()
  })
