// Handles the client's events of one realtime socket: settings, audio into turns, items. An invalid event is answered
// with an error event, and the socket stays open. Knows no accounts and no transport.
import { Effect, Option } from "effect"
import type { SocketError } from "effect/socket/Socket"
import type { LiveSessions, SessionLease } from "#actors/live/LiveSessions.ts"
import type { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { Downsampler } from "#audio/Downsampler.ts"
import { bytesToS16 } from "#domain/audio/Audio.ts"
import { TurnDetector } from "#domain/audio/TurnDetector.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { InvalidRequest, type RateLimited } from "#domain/wire/Errors.ts"
import { RealtimeClientEvent } from "#domain/wire/events/RealtimeEvents.ts"
import { type EdgeError, errorType } from "#domain/wire/Failures.ts"
import {
  Append,
  changeOf,
  olderSessionObject,
  type RealtimeSettings,
  SessionUpdate,
  sessionObject,
  TranscriptionSessionUpdate,
  withChange,
} from "#domain/wire/RealtimeProtocol.ts"
import { detailOf } from "#http/ErrorBody.ts"
import { reportFailure } from "#services/AnswerFailures.ts"
import { modelId } from "#services/ModelLookup.ts"
import type { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { decodeJson } from "../http/JsonBody.ts"
import type { RealtimeItems, Tell } from "./RealtimeItems.ts"

/** Most items without a transcript. A guess: more of them arrive only from a client that sends faster than speech. */
const maxWaiting = 16

const decodeAny = decodeJson(RealtimeClientEvent)
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

export type LiveServices = LiveSessions | ModelRegistry | UsageLedger

export interface Seat {
  readonly entry: ModelEntry
  readonly place: SessionLease
  readonly leave: Effect.Effect<void>
}

export class RealtimeSocket {
  private readonly id: string
  private readonly tell: Tell
  private readonly items: RealtimeItems
  private readonly older: boolean
  private settings: RealtimeSettings
  private seat: Seat
  private turns: TurnDetector | undefined
  private downsampler = new Downsampler()
  /** Opens a lease for another model or language; the present one is released afterwards. */
  private readonly reseat: (
    settings: RealtimeSettings,
    replaced: SessionLease,
  ) => Effect.Effect<Seat, EdgeError, LiveServices>

  /** Counts an item as a request of the caller. */
  private readonly admit: Effect.Effect<void, RateLimited>

  constructor(
    id: string,
    tell: Tell,
    items: RealtimeItems,
    settings: RealtimeSettings,
    seat: Seat,
    reseat: RealtimeSocket["reseat"],
    admit: RealtimeSocket["admit"],
    older: boolean,
  ) {
    this.admit = admit
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
    this.turns = turns === null ? undefined : new TurnDetector(turns.silenceMs, turns.prefixMs)
  }

  readonly created = Effect.suspend(() =>
    this.older
      ? this.tell("transcription_session.created", { session: olderSessionObject(this.id, this.settings) })
      : this.tell("session.created", { session: sessionObject(this.id, this.settings) }),
  )

  /** Handles one event of the client. An invalid one is answered with an error event. True if it was valid. */
  readonly take = (frame: string | Uint8Array): Effect.Effect<boolean, SocketError, LiveServices> =>
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
      Effect.as(true),
      Effect.catchIf(
        (error): error is Exclude<typeof error, SocketError> => error._tag !== "SocketError",
        (error) => Effect.as(this.tellError(error, frame), false),
      ),
    )

  private tellError(error: EdgeError, frame: string | Uint8Array): Effect.Effect<void, SocketError> {
    const param = error._tag === "InvalidRequest" ? error.field : null
    const asked = typeof frame === "string" ? Effect.runSync(Effect.option(decodeAny(frame))) : Option.none()
    const eventId = Option.isSome(asked) ? (asked.value.event_id ?? null) : null
    const told = this.tell("error", {
      error: {
        type: errorType(error),
        code: error._tag,
        message: detailOf(error),
        param,
        event_id: eventId,
      },
    })
    return Effect.andThen(reportFailure(error, "/v1/realtime"), told)
  }

  /** Changes the lease for the items to come; items that have begun end on the old one. */
  private readonly move = Effect.fnUntraced(
    { self: this },
    function* (this: RealtimeSocket, settings: RealtimeSettings) {
      const seat = yield* this.reseat(settings, this.seat.place)
      // Not awaited: an item that is still open ends with an event that comes after this one.
      yield* this.items.afterwards(this.seat.leave)
      this.seat = seat
    },
  )

  /** Another model, language or prompt applies to the next item; a running one keeps its own. */
  private readonly change = Effect.fnUntraced(
    { self: this },
    function* (this: RealtimeSocket, asked: RealtimeSettings) {
      const { language, model, prompt } = this.settings
      // Session events have the model's id, whichever alias was requested.
      const next = { ...asked, model: yield* modelId(asked.model) }
      if (next.model !== model || next.language !== language || next.prompt !== prompt) yield* this.move(next)
      const turnsChanged = JSON.stringify(next.turns) !== JSON.stringify(this.settings.turns)
      this.settings = next
      if (turnsChanged) this.findTurns()
    },
  )

  private readonly begin = Effect.gen({ self: this }, function* (this: RealtimeSocket) {
    if (this.items.waiting >= maxWaiting) {
      return yield* new InvalidRequest({ field: "audio", problem: "comes faster than it is transcribed" })
    }
    yield* this.admit
    // A reload of the catalog has replaced the model since the last item.
    if (!this.seat.place.isCurrent()) yield* this.move(this.settings)
    return yield* this.items.begin(this.seat.place, this.seat.entry)
  })

  private readonly hear = Effect.fnUntraced(
    { self: this },
    function* (this: RealtimeSocket, samples: Int16Array) {
      const downsampled = this.downsampler.push(samples)
      const nowMs = yield* monotonicMs
      if (this.turns === undefined) {
        if (downsampled.length === 0) return
        if (!this.items.isOpen) yield* this.begin
        return this.items.push(downsampled, nowMs)
      }
      for (const turn of this.turns.push(downsampled)) {
        if (turn.step === "ended") {
          yield* this.tell("input_audio_buffer.speech_stopped", {
            audio_end_ms: turn.audioMs,
            item_id: this.items.openId ?? null,
          })
          yield* this.items.commit
          continue
        }
        // An item that reached its limit is complete; further speech begins another.
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
