// GET /v1/realtime?model=…: OpenAI's realtime protocol for a conversation. Holds admission and the life of the socket;
// ConversationSocket handles events. Sockets for transcription alone go to RealtimeTranscription.
import { Cause, Effect, Option } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { CloseEvent, type Reader, type SocketError } from "effect/socket/Socket"
import { Drain } from "#actors/Drain.ts"
import { Resampler } from "#audio/Resampler.ts"
import { looksLikeSecret } from "#domain/access/ClientSecret.ts"
import { TokenBucket } from "#domain/access/TokenBucket.ts"
import { PlayedAudio } from "#domain/activity/PlayedAudio.ts"
import { LISTEN_RATE_HZ, SPEECH_RATE_HZ } from "#domain/audio/Audio.ts"
import { maxMicroDollarsOf } from "#domain/conversation/ClientSecretTerms.ts"
import { History } from "#domain/conversation/History.ts"
import { PlayClock } from "#domain/conversation/PlayClock.ts"
import { type ConversationSettings, withChange } from "#domain/conversation/Settings.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import { NewId } from "#http/Ids.ts"
import { CurrentNodeMeters } from "#http/NodeMeters.ts"
import { nowMs } from "#http/RequestContext.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { CurrentSpendingLimit, SpendingLimit } from "#store/ledger/SpendingLimit.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { RateLimit } from "../../access/RateLimit.ts"
import { identifyLive, isWebSocket, liveCredential, upgradeLive } from "../../live/LiveAdmission.ts"
import { RealtimeItems, type Tell } from "../../live/RealtimeItems.ts"
import { followed, realtimeTranscription } from "../../live/RealtimeTranscription.ts"
import { traceSession } from "../../tracing/SessionTrace.ts"
import { conversationModels, converses, firstSettings, presetOf } from "../ConversationModels.ts"
import { ConversationSessions } from "../ConversationSessions.ts"
import { type ConversationServices, ConversationSocket } from "../ConversationSocket.ts"
import { Floor } from "../Floor.ts"
import { crashGuard, tellCrash } from "../Guard.ts"
import { identifySecret, modelsOfSecret } from "./ClientSecret.ts"
import { takeSeat } from "./ConversationAdmission.ts"
import { secondsOf, sessionEnd } from "./SessionEnds.ts"

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

/** Who opens a conversation, and what it begins with: a caller with a key, or with a client secret, whose terms are bound to it. */
const openerOf = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, url: URL) {
  const asked = url.searchParams.get("model")
  const credential = liveCredential(request, url)
  if (!looksLikeSecret(credential)) {
    const caller = yield* identifyLive(request, url)
    const models = yield* conversationModels(asked ?? "")
    return { caller, models, session: { type: "realtime" as const }, limits: {} }
  }
  const { caller, terms } = yield* identifySecret(credential)
  if (url.searchParams.get("intent") !== null) {
    return yield* new InvalidRequest({ field: "intent", problem: "must be absent with a client secret" })
  }
  return { caller, models: yield* modelsOfSecret(terms, asked), session: terms.session, limits: terms.limits }
})

const serve = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, url: URL) {
  const opener = yield* openerOf(request, url)
  const { caller, models, session } = opener
  // No money is reserved before audio arrives; a caller without money is refused before the upgrade.
  yield* Effect.scoped((yield* UsageLedger).reserve(caller, 0))
  const settings = withChange(firstSettings(models), session)
  // A voice that the engine lacks, though the catalog names it.
  yield* presetOf(models.speaks, settings.voice)
  yield* (yield* ConversationSessions).run(models.asked, converse(request, opener, settings))
}, Effect.scoped)

/** From the admission to the end of the socket. */
const converse = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  { caller, limits, models }: Effect.Success<ReturnType<typeof openerOf>>,
  settings: ConversationSettings,
) {
  const accounts = yield* Accounts
  const drain = yield* Drain
  const newId = yield* NewId
  const outer = yield* Effect.scope
  const seat = yield* takeSeat(models, settings, outer)
  const parts = { hears: seat.entry.id, writes: models.writes.entry.id, speaks: models.speaks.entry.id }
  const report = yield* (yield* ConversationSessions).enter(models.asked, parts)
  const ledger = yield* UsageLedger
  const most = maxMicroDollarsOf(limits)
  const spending = most === undefined ? undefined : new SpendingLimit(most)
  const expiresAt = Math.floor(Date.now() / 1000) + secondsOf(limits)
  const facts = { id: `sess_${newId()}`, model: models.asked, expiresAt }
  const conversation = Effect.gen(function* () {
    const connection = yield* upgradeLive(request)
    const reader = yield* connection.reader
    const writer = yield* connection.writer
    const scope = yield* Effect.scope
    const tell: Tell = (type, event = {}) =>
      writer.write(JSON.stringify({ type, event_id: `event_${newId()}`, ...event }))
    const history = new History()
    const played = new PlayedAudio()
    const toListenRate = new Resampler(SPEECH_RATE_HZ, LISTEN_RATE_HZ)
    const clock = new PlayClock(SPEECH_RATE_HZ, {
      sent: (samples, startMs, sentMs) => played.sent(toListenRate.push(samples), startMs, sentMs),
      stopped: (stoppedMs) => played.stopped(stoppedMs),
    })
    const admit = (yield* RateLimit).admit(caller.userId)
    const conversationId = `conv_${newId()}`
    const trace = yield* traceSession("conversation", (ended) => ({
      ...ended.hearing(),
      ...ended.generating(),
    }))
    const meters = (yield* CurrentNodeMeters).conversations
    const { crashed, guard } = crashGuard()
    const shared = {
      tell,
      guard,
      newId,
      caller,
      scope,
      models,
      conversationId,
      history,
      admit,
      report,
      meters,
      trace,
    }
    const floor: Floor = new Floor(
      { ...shared, settings: () => socket.current, heardMs: () => socket.heardMs },
      clock,
    )
    const items = new RealtimeItems(tell, caller, scope, false, {
      add: floor.heardTurn,
      tellsTranscripts: () => socket.current.transcription !== null,
      transcribed: floor.transcribed,
      lasting: floor.lasting,
      foreseen: (id, transcript) => socket.foreseen(id, transcript),
      // A semantic end is judged by the transcript.
      lately: () => (socket.current.turns?.kind === "semantic_vad" ? {} : meters.lately),
      previewed: meters.previewed,
    })
    const socket: ConversationSocket = new ConversationSocket(
      {
        ...shared,
        facts,
        items,
        played,
        seat: followed(trace, seat),
        reseat: (next, replaced) =>
          Effect.map(takeSeat(models, next, outer, replaced), (taken) => followed(trace, taken)),
      },
      settings,
      floor,
    )
    yield* Effect.forkIn(guard(floor.preparation.run), scope, { startImmediately: true })
    yield* Effect.forkIn(guard(floor.warming.run), scope, { startImmediately: true })
    yield* socket.created
    const finished = Effect.andThen(Effect.ignore(items.finished), floor.finished)
    const ends = sessionEnd({ tell, accounts, drain, caller, limits, spending, finished })
    const close = yield* Effect.raceAllFirst([readUntilIdle(reader, socket), ends, crashed]).pipe(
      Effect.tapCauseIf(Cause.hasDies, () => {
        trace?.closed(1011)
        return tellCrash(tell, writer.write)
      }),
    )
    trace?.closed(close.code)
    yield* writer.write(close)
  }).pipe(
    Effect.scoped,
    Effect.catchIf(
      (error): error is SocketError => error._tag === "SocketError",
      () => Effect.void,
    ),
    drain.admit,
    spending === undefined
      ? (conversation) => conversation
      : (conversation) =>
          conversation.pipe(
            Effect.provideService(UsageLedger, spending.ledger(ledger)),
            Effect.provideService(CurrentSpendingLimit, spending),
          ),
  )
  yield* conversation
}, Effect.scoped)

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
