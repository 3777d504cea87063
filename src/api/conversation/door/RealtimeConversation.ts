// GET /v1/realtime?model=…: OpenAI's realtime protocol for a conversation. Holds admission and the life of the socket;
// ConversationSocket handles events. Sockets for transcription alone go to RealtimeTranscription.
import { Cause, Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { SocketError } from "effect/socket/Socket"
import { Drain } from "#actors/Drain.ts"
import { Resampler } from "#audio/Resampler.ts"
import { looksLikeSecret } from "#domain/access/ClientSecret.ts"
import { PlayedAudio } from "#domain/activity/PlayedAudio.ts"
import { listenRateHz, speechRateHz } from "#domain/audio/Audio.ts"
import { History } from "#domain/conversation/History.ts"
import { PlayClock } from "#domain/conversation/PlayClock.ts"
import { type ConversationSettings, withChange } from "#domain/conversation/Settings.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { NewId } from "#http/Ids.ts"
import { CurrentNodeMeters } from "#http/NodeMeters.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { CurrentSpendingLimit } from "#store/ledger/SpendingLimit.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { RateLimit } from "../../access/RateLimit.ts"
import { ownedBy, refuseDropped } from "../../live/DroppedBytes.ts"
import { EventReader, eventSize } from "../../live/EventReader.ts"
import { IntakePace } from "../../live/IntakePace.ts"
import { identifyLive, isWebSocket, liveCredential, upgradeLive } from "../../live/LiveAdmission.ts"
import { RealtimeItems, type Tell } from "../../live/RealtimeItems.ts"
import { followed, realtimeTranscription } from "../../live/RealtimeTranscription.ts"
import { socketShare } from "../../live/SocketShare.ts"
import { eventWriter } from "../../live/WriteEvent.ts"
import { traceSession } from "../../tracing/SessionTrace.ts"
import { Conversation } from "../Conversation.ts"
import { conversationModels, converses, firstSettings, presetOf } from "../ConversationModels.ts"
import { ConversationSessions } from "../ConversationSessions.ts"
import { type ConversationServices, ConversationSocket } from "../ConversationSocket.ts"
import { crashGuard, tellCrash } from "../Guard.ts"
import type { ProtocolError } from "../ProtocolError.ts"
import { identifySecret, modelsOfSecret } from "./ClientSecret.ts"
import { takeSeat } from "./ConversationAdmission.ts"
import { SecretSessions } from "./SecretSessions.ts"
import { secondsOf, sessionEnd } from "./SessionEnds.ts"

/** Minutes after which a client that sends nothing has gone. Audio comes all the time, and texts between thoughts. A guess. */
export const idleMinutes = 15

/** Who opens a conversation, and what it begins with: a caller with a key, or with a client secret, whose terms are bound to it. */
const openerOf = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, url: URL) {
  const asked = url.searchParams.get("model")
  const credential = liveCredential(request, url)
  if (!looksLikeSecret(credential)) {
    const caller = yield* identifyLive(request, url)
    const models = yield* conversationModels(asked ?? "")
    const admit = (yield* RateLimit).admit(caller.userId)
    return { caller, models, session: { type: "realtime" as const }, limits: {}, admit, secret: undefined }
  }
  const { admit, caller, secret, terms } = yield* identifySecret(credential)
  if (url.searchParams.get("intent") !== null) {
    return yield* new InvalidRequest({ field: "intent", problem: "must be absent with a client secret" })
  }
  const models = yield* modelsOfSecret(terms, asked)
  return { caller, models, session: terms.session, limits: terms.limits, admit, secret }
})

const serve = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, url: URL) {
  const opener = yield* openerOf(request, url)
  const { caller, models, secret, session } = opener
  yield* refuseDropped(secret?.id ?? caller.userId)
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
  { admit, caller, limits, models, secret }: Effect.Success<ReturnType<typeof openerOf>>,
  settings: ConversationSettings,
) {
  const accounts = yield* Accounts
  const drain = yield* Drain
  const newId = yield* NewId
  const outer = yield* Effect.scope
  const ofSecret = secret === undefined ? undefined : yield* (yield* SecretSessions).enter(secret, limits)
  const spending = ofSecret?.spending
  const share = yield* socketShare(caller.userId)
  const seat = yield* takeSeat(models, settings, caller.orgId, outer)
  const parts = { hears: seat.entry.id, writes: models.writes.entry.id, speaks: models.speaks.entry.id }
  const report = yield* (yield* ConversationSessions).enter(models.asked, parts, caller)
  const ledger = yield* UsageLedger
  const expiresAt = Math.floor(Date.now() / 1000) + secondsOf(limits)
  const facts = { id: `sess_${newId()}`, model: models.asked, expiresAt }
  const life = Effect.gen(function* () {
    const connection = yield* ownedBy(secret?.id ?? caller.userId, upgradeLive(request, eventSize))
    const reader = yield* connection.reader
    const writer = yield* connection.writer
    const scope = yield* Effect.scope
    const tell: Tell = eventWriter(writer, newId)
    const history = new History(share.held)
    const played = new PlayedAudio()
    const toListenRate = new Resampler(speechRateHz, listenRateHz)
    const clock = new PlayClock(speechRateHz, {
      sent: (samples, startMs, sentMs) => played.sent(toListenRate.push(samples), startMs, sentMs),
      stopped: (stoppedMs) => played.stopped(stoppedMs),
    })
    const conversationId = `conv_${newId()}`
    const trace = yield* traceSession("conversation", (ended) => ({
      ...ended.hearing(),
      ...ended.generating(),
      "edgewise.message_ends": ended.messageEnds,
    }))
    const meters = (yield* CurrentNodeMeters).conversations
    const pace = yield* (yield* IntakePace).open(caller.userId)
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
      share,
    }
    const conversation: Conversation = new Conversation(
      { ...shared, settings: () => socket.current, heardMs: () => socket.heardMs },
      clock,
    )
    const items = new RealtimeItems(
      { tell, caller, scope, held: share.held, older: false },
      {
        add: conversation.turnTaken,
        tellsTranscripts: () => socket.current.transcription !== null,
        transcribed: conversation.transcribed,
        lasting: conversation.lasting,
        foreseen: (id, transcript) => socket.ends.foresee(id, transcript),
        // A semantic end is judged by the transcript.
        lately: () => (socket.current.turns?.kind === "semantic_vad" ? {} : meters.lately),
        previewed: meters.previewed,
      },
    )
    const socket: ConversationSocket = new ConversationSocket(
      {
        ...shared,
        facts,
        items,
        pace,
        played,
        seat: followed(trace, seat),
        reseat: (next, replaced) =>
          Effect.map(takeSeat(models, next, caller.orgId, outer, replaced), (taken) =>
            followed(trace, taken),
          ),
      },
      settings,
      conversation,
    )
    yield* conversation.start
    yield* Effect.forkIn(guard(socket.ends.run), scope, { startImmediately: true })
    const events = new EventReader<EdgeError | ProtocolError, ConversationServices>({
      tell,
      share,
      pace,
      carryOut: socket.carryOut,
      tellError: socket.tellError,
    })
    yield* socket.created
    const finished = Effect.andThen(Effect.ignore(items.finished), conversation.finished)
    const ends = sessionEnd({ tell, accounts, drain, caller, limits, ofSecret, finished })
    const reads = events.readUntilIdle(reader, `${idleMinutes} minutes`, ofSecret?.heard)
    const close = yield* Effect.raceAllFirst([reads, ends, crashed]).pipe(
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
      ? (life) => life
      : (life) =>
          life.pipe(
            Effect.provideService(UsageLedger, spending.ledger(ledger)),
            Effect.provideService(CurrentSpendingLimit, spending),
          ),
  )
  yield* life
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
