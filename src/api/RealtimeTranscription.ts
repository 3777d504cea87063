// GET /v1/realtime?intent=transcription: OpenAI's realtime protocol for transcription sessions, so that stock voice
// clients connect. 24 kHz PCM in base64 comes in, items with their transcripts go out; under it lie the same live
// sessions as under /v1/audio/transcriptions/ws. What the protocol can say beyond transcription gets an `error` event.
// In the order: admission, client events, the socket's life.
import { Cause, Clock, Effect, Exit, Option, Schema, Scope } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { CloseEvent, type Reader, type SocketError, type Writer } from "effect/socket/Socket"
import { Drain } from "#actors/Drain.ts"
import { idleMs } from "#actors/LiveSession.ts"
import { type LivePlace, LiveSessions } from "#actors/LiveSessions.ts"
import type { ModelRegistry } from "#actors/ModelRegistry.ts"
import { Downsampler } from "#audio/Downsampler.ts"
import { bytesToS16 } from "#domain/Audio.ts"
import { InvalidRequest } from "#domain/Errors.ts"
import { windowSeconds } from "#domain/LiveParameters.ts"
import type { ModelEntry } from "#domain/Model.ts"
import {
  Append,
  changeOf,
  defaultTurns,
  olderSessionObject,
  type RealtimeSettings,
  SessionUpdate,
  sessionObject,
  TranscriptionSessionUpdate,
  withChange,
} from "#domain/RealtimeProtocol.ts"
import { TurnFinder } from "#domain/Turns.ts"
import { Accounts } from "#store/Accounts.ts"
import { UsageLedger } from "#store/UsageLedger.ts"
import { type EdgeError, problemOf } from "./ErrorBody.ts"
import { NewId } from "./Ids.ts"
import { decodeJson } from "./JsonBody.ts"
import { identifyLive, liveModel, upgradeLive } from "./LiveAdmission.ts"
import { RealtimeItems, type Tell } from "./RealtimeItems.ts"

/** Items that may wait for their transcripts. A guess: whoever has more unanswered sends faster than anyone speaks. */
const maxWaiting = 16

const decodeAny = decodeJson(
  Schema.Struct({ type: Schema.String, event_id: Schema.optionalKey(Schema.String) }),
)
const decodeAppend = decodeJson(Append)
const decodeUpdate = decodeJson(SessionUpdate)
const decodeOlderUpdate = decodeJson(TranscriptionSessionUpdate)

const base64 = /^[A-Za-z0-9+/]*={0,2}$/

const pcmOf = (audio: string): Effect.Effect<Int16Array, InvalidRequest> => {
  const bytes = Buffer.from(audio, "base64")
  const isPcm = base64.test(audio) && audio.length % 4 === 0 && bytes.length % 2 === 0
  return isPcm
    ? Effect.succeed(bytesToS16(bytes))
    : Effect.fail(new InvalidRequest({ field: "audio", problem: "must be 16-bit PCM in base64" }))
}

// ---------------------------------------------------------------- one socket

type LiveServices = LiveSessions | ModelRegistry | UsageLedger

interface Seat {
  readonly entry: ModelEntry
  readonly place: LivePlace
  readonly leave: Effect.Effect<void>
}

class RealtimeSocket {
  private readonly id: string
  private readonly tell: Tell
  private readonly items: RealtimeItems
  private readonly older: boolean
  private settings: RealtimeSettings
  private seat: Seat
  private turns: TurnFinder | undefined
  private downsampler = new Downsampler()
  /** Opens a place for another model or language. */
  private readonly reseat: (settings: RealtimeSettings) => Effect.Effect<Seat, EdgeError, LiveServices>

  constructor(
    id: string,
    tell: Tell,
    items: RealtimeItems,
    settings: RealtimeSettings,
    seat: Seat,
    reseat: RealtimeSocket["reseat"],
    older: boolean,
  ) {
    this.older = older
    this.id = id
    this.tell = tell
    this.items = items
    this.settings = settings
    this.seat = seat
    this.reseat = reseat
    this.findTurns()
  }

  private findTurns(): void {
    const { turns } = this.settings
    this.turns = turns === null ? undefined : new TurnFinder(turns.silenceMs, turns.prefixMs)
  }

  readonly created = Effect.suspend(() =>
    this.older
      ? this.tell("transcription_session.created", { session: olderSessionObject(this.id, this.settings) })
      : this.tell("session.created", { session: sessionObject(this.id, this.settings) }),
  )

  /** One event of the client. What is wrong with it is told, and the socket goes on. */
  readonly take = (frame: string | Uint8Array): Effect.Effect<void, SocketError, LiveServices> =>
    Effect.gen({ self: this }, function* (this: RealtimeSocket) {
      if (typeof frame !== "string") {
        return yield* new InvalidRequest({ field: "event", problem: "must be a text frame" })
      }
      const { type } = yield* decodeAny(frame)
      switch (type) {
        case "input_audio_buffer.append":
          return yield* this.hear(yield* pcmOf((yield* decodeAppend(frame)).audio))
        case "input_audio_buffer.commit":
          if (yield* this.items.commit) return
          return yield* new InvalidRequest({ field: "input_audio_buffer", problem: "is empty" })
        case "input_audio_buffer.clear":
          yield* this.items.clear
          this.downsampler = new Downsampler()
          this.findTurns()
          return yield* this.tell("input_audio_buffer.cleared")
        case "session.update": {
          const change = (yield* decodeUpdate(frame)).session.audio?.input ?? {}
          yield* this.change(withChange(this.settings, change))
          return yield* this.tell("session.updated", { session: sessionObject(this.id, this.settings) })
        }
        case "transcription_session.update": {
          const change = changeOf((yield* decodeOlderUpdate(frame)).session)
          yield* this.change(withChange(this.settings, change))
          const session = olderSessionObject(this.id, this.settings)
          return yield* this.tell("transcription_session.updated", { session })
        }
        default:
          return yield* new InvalidRequest({
            field: "type",
            problem: "is no event of a transcription session",
          })
      }
    }).pipe(
      Effect.catchIf(
        (error): error is Exclude<typeof error, SocketError> => error._tag !== "SocketError",
        (error) => this.tellError(error, frame),
      ),
    )

  private tellError(error: EdgeError, frame: string | Uint8Array): Effect.Effect<void, SocketError> {
    const { detail, status } = problemOf(error)
    const param = error._tag === "InvalidRequest" ? error.field : null
    const asked = typeof frame === "string" ? Effect.runSync(Effect.option(decodeAny(frame))) : Option.none()
    const eventId = Option.isSome(asked) ? (asked.value.event_id ?? null) : null
    const type = status < 500 ? "invalid_request_error" : "server_error"
    return this.tell("error", {
      error: { type, code: error._tag, message: detail, param, event_id: eventId },
    })
  }

  /** Another model, language or prompt is for the next item; a running one keeps its own. */
  private readonly change = Effect.fnUntraced(
    { self: this },
    function* (this: RealtimeSocket, next: RealtimeSettings) {
      const { language, model, prompt } = this.settings
      if (next.model !== model || next.language !== language || next.prompt !== prompt) {
        const seat = yield* this.reseat(next)
        yield* this.items.finished
        yield* this.seat.leave
        this.seat = seat
      }
      const turnsChanged = JSON.stringify(next.turns) !== JSON.stringify(this.settings.turns)
      this.settings = next
      if (turnsChanged) this.findTurns()
    },
  )

  private readonly begin = Effect.suspend(() =>
    this.items.waiting < maxWaiting
      ? this.items.begin(this.seat.place, this.seat.entry)
      : Effect.fail(new InvalidRequest({ field: "audio", problem: "comes faster than it is transcribed" })),
  )

  private readonly hear = Effect.fnUntraced(
    { self: this },
    function* (this: RealtimeSocket, samples: Int16Array) {
      const heard = this.downsampler.push(samples)
      const nowMs = yield* Clock.currentTimeMillis
      if (this.turns === undefined) {
        if (heard.length === 0) return
        if (!this.items.isOpen) yield* this.begin
        return this.items.push(heard, nowMs)
      }
      for (const turn of this.turns.push(heard)) {
        if (turn.step === "ended") {
          yield* this.tell("input_audio_buffer.speech_stopped", {
            audio_end_ms: turn.audioMs,
            item_id: this.items.openId ?? null,
          })
          yield* this.items.commit
          continue
        }
        // An item that reached its limit is complete; who speaks on begins another.
        if (!this.items.isOpen) {
          const item_id = yield* this.begin
          if (turn.step === "started") {
            yield* this.tell("input_audio_buffer.speech_started", { audio_start_ms: turn.audioMs, item_id })
          }
        }
        this.items.push(turn.samples, nowMs)
      }
    },
  )
}

// ---------------------------------------------------------------- admission, and the socket's life

const settingsOf = (
  url: URL,
): Effect.Effect<RealtimeSettings & { readonly asked: string | undefined }, InvalidRequest> => {
  const intent = url.searchParams.get("intent") ?? "transcription"
  if (intent !== "transcription") {
    return Effect.fail(new InvalidRequest({ field: "intent", problem: "must be transcription" }))
  }
  const asked = url.searchParams.get("model") ?? undefined
  return Effect.succeed({ asked, model: "", language: undefined, prompt: "", turns: defaultTurns })
}

/** Clients of the protocol's first spelling say so, in a header or, from a browser, as a subprotocol. */
const isOlder = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  (headers["openai-beta"] ?? "").includes("realtime=v1") ||
  (headers["sec-websocket-protocol"] ?? "").includes("openai-beta.realtime-v1")

/** A place of its own scope, so that it can be changed for another. */
const takeSeat = Effect.fnUntraced(function* (
  model: string | undefined,
  settings: RealtimeSettings,
  outer: Scope.Scope,
) {
  const entry = yield* liveModel(model, settings.language)
  const scope = yield* Scope.fork(outer)
  const request = {
    model: entry.id,
    language: settings.language ?? entry.transcription?.defaultLanguage,
    prompt: settings.prompt,
    windowSeconds: windowSeconds.default,
    fromScratch: false,
  }
  const place = yield* (yield* LiveSessions).open(request).pipe(
    Scope.provide(scope),
    Effect.onError(() => Scope.close(scope, Exit.void)),
  )
  return { entry, place, leave: Scope.close(scope, Exit.void) } satisfies Seat
})

/** Reads until the client is silent for too long. */
const readUntilIdle = (
  reader: Reader,
  socket: RealtimeSocket,
): Effect.Effect<CloseEvent, SocketError, LiveServices> =>
  Effect.gen(function* () {
    for (;;) {
      const frames = yield* Effect.timeoutOption(reader.pull, idleMs)
      if (Option.isNone(frames)) return new CloseEvent(1000, "idle")
      for (const frame of frames.value) yield* socket.take(frame)
    }
  })

const tellOn =
  (writer: Writer, newId: () => string): Tell =>
  (type, event = {}) =>
    writer.write(JSON.stringify({ type, event_id: `event_${newId()}`, ...event }))

const serve = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const url = new URL(request.url, "http://edge")
  const caller = yield* identifyLive(request, url)
  const { asked, ...initial } = yield* settingsOf(url)
  const accounts = yield* Accounts
  const drain = yield* Drain
  const newId = yield* NewId
  // Nothing is set aside before something is said; who cannot pay for anything hears it before the upgrade.
  yield* Effect.scoped((yield* UsageLedger).reserve(caller, 0))
  const scope = yield* Effect.scope
  const seat = yield* takeSeat(asked, initial, scope)
  const settings = { ...initial, model: seat.entry.id }
  yield* Effect.gen(function* () {
    const connection = yield* upgradeLive(request)
    const reader = yield* connection.reader
    const writer = yield* connection.writer
    const tell = tellOn(writer, newId)
    const older = isOlder(request)
    const items = new RealtimeItems(tell, caller, yield* Effect.scope, older)
    const reseat = (next: RealtimeSettings) => takeSeat(next.model, next, scope)
    const socket = new RealtimeSocket(`sess_${newId()}`, tell, items, settings, seat, reseat, older)
    yield* socket.created
    const gone = new CloseEvent(1001, "server is shutting down")
    const drained = Effect.andThen(drain.closing, Effect.as(items.finished, gone))
    const locked = Effect.as(accounts.revoked(caller), new CloseEvent(1008, "credential revoked"))
    const close = yield* Effect.raceAllFirst([readUntilIdle(reader, socket), drained, locked]).pipe(
      Effect.catchCauseIf(Cause.hasDies, (cause) =>
        Effect.as(Effect.logError("realtime session failed", cause), new CloseEvent(1011, "failed")),
      ),
    )
    yield* writer.write(close)
  }).pipe(
    Effect.catchIf(
      (error): error is SocketError => error._tag === "SocketError",
      () => Effect.void,
    ),
    drain.admit,
  )
}, Effect.scoped)

/** Refused before the upgrade like any request; after it, failures are events. */
export const realtimeTranscription = (request: HttpServerRequest.HttpServerRequest) =>
  Effect.as(serve(request), HttpServerResponse.empty())
