// Carries out the client's events of one realtime socket: settings, audio into turns, items. Knows no accounts and no transport.
import { Effect } from "effect"
import type { SocketError } from "effect/socket/Socket"
import type { SessionLease } from "#actors/live/SessionLease.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
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
import { decodeValue } from "../http/JsonBody.ts"
import { appendCost } from "./EventReader.ts"
import { Hearing, type HearingTerms, type LiveServices, type Seat } from "./Hearing.ts"
import type { Tell } from "./RealtimeItems.ts"

const decodeAny = decodeValue(RealtimeClientEvent)
const decodeAppend = decodeValue(Append)
const decodeUpdate = decodeValue(SessionUpdate)
const decodeOlderUpdate = decodeValue(TranscriptionSessionUpdate)

/** What a socket hears with: leases are opened for its present settings. */
type SocketHearing = Omit<HearingTerms, "reseat"> & {
  readonly reseat: (
    settings: RealtimeSettings,
    replaced: SessionLease,
  ) => Effect.Effect<Seat, EdgeError, LiveServices>
}

export class RealtimeSocket {
  readonly #id: string
  readonly #tell: Tell
  readonly #hearing: Hearing
  readonly #older: boolean
  #settings: RealtimeSettings

  constructor(id: string, settings: RealtimeSettings, hears: SocketHearing, older: boolean) {
    const { reseat, ...terms } = hears
    this.#id = id
    this.#tell = terms.tell
    this.#settings = settings
    this.#older = older
    this.#hearing = new Hearing(
      { ...terms, reseat: (replaced) => reseat(this.#settings, replaced) },
      settings.turns,
    )
  }

  readonly created = Effect.suspend(() =>
    this.#older
      ? this.#tell("transcription_session.created", { session: olderSessionObject(this.#id, this.#settings) })
      : this.#tell("session.created", { session: sessionObject(this.#id, this.#settings) }),
  )

  /** Handles one event of the client. What it costs (EventReader). */
  readonly carryOut = (event: unknown): Effect.Effect<number, EdgeError | SocketError, LiveServices> =>
    Effect.gen({ self: this }, function* (this: RealtimeSocket) {
      const { type } = yield* decodeAny(event)
      if (type === "input_audio_buffer.append") {
        return appendCost(yield* this.#hearing.hear((yield* decodeAppend(event)).audio, "pcm"))
      }
      yield* this.#command(type, event)
      return 1
    })

  #command(type: string, event: unknown): Effect.Effect<void, EdgeError | SocketError, LiveServices> {
    return Effect.gen({ self: this }, function* (this: RealtimeSocket) {
      switch (type) {
        case "input_audio_buffer.commit":
          if (yield* this.#hearing.commit) return
          return yield* new InvalidRequest({ field: "input_audio_buffer", problem: "is empty" })
        case "input_audio_buffer.clear":
          yield* this.#hearing.clear
          return yield* this.#tell("input_audio_buffer.cleared")
        case "session.update": {
          const { audio, include } = (yield* decodeUpdate(event)).session
          const change = { ...audio?.input, ...(include === undefined ? {} : { include }) }
          yield* this.#change(withChange(this.#settings, change))
          return yield* this.#tell("session.updated", { session: sessionObject(this.#id, this.#settings) })
        }
        case "transcription_session.update": {
          const change = changeOf((yield* decodeOlderUpdate(event)).session)
          yield* this.#change(withChange(this.#settings, change))
          const session = olderSessionObject(this.#id, this.#settings)
          return yield* this.#tell("transcription_session.updated", { session })
        }
        default:
          return yield* new InvalidRequest({
            field: "type",
            problem: "is no event of a transcription session",
          })
      }
    })
  }

  readonly tellError = (error: EdgeError, eventId: string | null): Effect.Effect<void, SocketError> => {
    const param = error._tag === "InvalidRequest" ? error.field : null
    const told = this.#tell("error", {
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

  /** Another model, language, prompt or other keywords apply to the next item; a running one keeps its own. */
  readonly #change = Effect.fnUntraced(
    { self: this },
    function* (this: RealtimeSocket, asked: RealtimeSettings) {
      const before = this.#settings
      // Session events have the model's id, whichever alias was requested.
      const next = { ...asked, model: yield* modelId(asked.model) }
      this.#settings = next
      const isOther =
        next.model !== before.model ||
        next.language !== before.language ||
        next.prompt !== before.prompt ||
        next.keywords !== before.keywords ||
        next.logprobs !== before.logprobs
      if (isOther) {
        yield* Effect.tapError(this.#hearing.move, () =>
          Effect.sync(() => {
            this.#settings = before
          }),
        )
      }
      this.#hearing.setTurns(next.turns)
    },
  )
}
