// A conversation from its admission to its end, over a line of any kind: a WebSocket or a call. Who opens it, and how its line is opened, is
// decided before.
import { Cause, Effect, type Scope } from "effect"
import type { SocketError } from "effect/socket/Socket"
import { Drain } from "#actors/Drain.ts"
import { Resampler } from "#audio/Resampler.ts"
import { PlayedAudio } from "#domain/activity/PlayedAudio.ts"
import { listenRateHz, speechRateHz } from "#domain/audio/Audio.ts"
import { History } from "#domain/conversation/History.ts"
import { PlayClock } from "#domain/conversation/PlayClock.ts"
import { type ConversationSettings, withChange } from "#domain/conversation/Settings.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { NewId } from "#http/Ids.ts"
import { CurrentNodeMeters } from "#http/NodeMeters.ts"
import { DetectionModels } from "#services/detection/DetectionModels.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { CurrentSpendingLimit } from "#store/ledger/SpendingLimit.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { refuseDropped } from "../../live/DroppedBytes.ts"
import { EventReader } from "../../live/EventReader.ts"
import { IntakePace } from "../../live/IntakePace.ts"
import { RealtimeItems, type Tell } from "../../live/RealtimeItems.ts"
import { followed } from "../../live/RealtimeTranscription.ts"
import { socketShare } from "../../live/SocketShare.ts"
import { eventWriter } from "../../live/WriteEvent.ts"
import { traceSession } from "../../tracing/SessionTrace.ts"
import { Conversation } from "../Conversation.ts"
import { firstSettings, presetOf } from "../ConversationModels.ts"
import { ConversationSessions } from "../ConversationSessions.ts"
import { type ConversationServices, ConversationSocket } from "../ConversationSocket.ts"
import { crashGuard, tellCrash } from "../Guard.ts"
import type { Line } from "../Line.ts"
import { Playout } from "../Playout.ts"
import type { ProtocolError } from "../ProtocolError.ts"
import { takeSeat } from "./ConversationAdmission.ts"
import type { Opener } from "./Opener.ts"
import { SecretSessions } from "./SecretSessions.ts"
import { secondsOf, sessionEnd } from "./SessionEnds.ts"

/** Minutes after which a client that sends nothing has gone. Audio comes all the time, and texts between thoughts. A guess. */
export const idleMinutes = 15

/** Why a line cannot be opened. */
type Refusal = EdgeError | SocketError

/** Opens the line once the conversation is admitted; what cannot be opened is a refusal. */
type OpenLine<E, R> = Effect.Effect<Line, E, R | Scope.Scope>

/** Admits a conversation, opens its line and runs it to its end. A refusal fails before the line is opened. */
export const holdConversation = Effect.fnUntraced(function* <E extends Refusal, R>(
  opener: Opener,
  openLine: OpenLine<E, R>,
) {
  const { caller, models, secret, session } = opener
  yield* refuseDropped(secret?.id ?? caller.userId)
  // No money is reserved before audio arrives; a caller without money is refused before the line is opened.
  yield* Effect.scoped((yield* UsageLedger).reserve(caller, 0))
  const settings = session.reduce(withChange, firstSettings(models))
  // A voice that the engine lacks, though the catalog names it.
  yield* presetOf(models.speaks, settings.voice)
  yield* (yield* ConversationSessions).run(models.asked, converse(opener, settings, openLine))
}, Effect.scoped)

/** From the admission to the end of the line. */
const converse = Effect.fnUntraced(function* <E extends Refusal, R>(
  { admit, caller, limits, models, secret }: Opener,
  settings: ConversationSettings,
  openLine: OpenLine<E, R>,
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
  const detection = yield* (yield* DetectionModels).open
  const report = yield* (yield* ConversationSessions).enter(models.asked, parts, caller)
  const ledger = yield* UsageLedger
  const expiresAt = Math.floor(Date.now() / 1000) + secondsOf(limits)
  const facts = { id: `sess_${newId()}`, model: models.asked, expiresAt }
  const life = Effect.gen(function* () {
    const { reader, sound, writer } = yield* openLine
    const scope = yield* Effect.scope
    const tell: Tell = eventWriter(writer, newId)
    const history = new History(share.held)
    const played = new PlayedAudio()
    const toListenRate = new Resampler(speechRateHz, listenRateHz)
    const playout = sound === undefined ? undefined : new Playout(tell, sound, () => clock)
    const clock: PlayClock = new PlayClock(
      speechRateHz,
      {
        sent: (samples, startMs, sentMs) => played.sent(toListenRate.push(samples), startMs, sentMs),
        stopped: (stoppedMs) => {
          played.stopped(stoppedMs)
          playout?.stopped()
        },
      },
      sound?.delayMs,
    )
    sound?.follow?.(clock)
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
      playout,
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
        detection,
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
    if (socket.heardEnds !== undefined)
      yield* Effect.forkIn(guard(socket.heardEnds.run), scope, { startImmediately: true })
    if (playout !== undefined) yield* Effect.forkIn(guard(playout.run), scope, { startImmediately: true })
    const events = new EventReader<EdgeError | ProtocolError, ConversationServices>({
      tell,
      share,
      pace,
      carryOut: socket.carryOut,
      hear: socket.hear,
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
    Effect.catchTag("SocketError", () => Effect.void),
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
