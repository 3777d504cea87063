// Reads the events of a realtime socket's client: one after the other, bounded in number by what each costs, and in bytes by the
// share of its socket. An event that cannot be carried out is answered with an error event, and the socket goes on.
import { type Duration, Effect, Option } from "effect"
import { CloseEvent, type Reader, type SocketError } from "effect/socket/Socket"
import { TokenBucket } from "#domain/access/TokenBucket.ts"
import { freeMemory } from "#domain/queues/FreeMemory.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import { maxEventIdCharacters } from "#domain/wire/events/RealtimeEvents.ts"
import { keepsAudio, maxEventBytes } from "#domain/wire/RealtimeProtocol.ts"
import { isObject } from "#domain/wire/text/Fields.ts"
import { betweenParts } from "#http/InSlices.ts"
import { AudioFrame, CutFrame, type MessageSize, TextFrame } from "#http/SocketFrames.ts"
import { parseEvent } from "../http/JsonBody.ts"
import type { SocketPace } from "./IntakePace.ts"
import type { Tell } from "./RealtimeItems.ts"
import type { SocketShare } from "./SocketShare.ts"

/** Events of one socket. Each costs 1, audio and new items less, see below. A guess: texts and commands are a few a second. */
export const smallEvents = { burst: 500, perSecond: 50 }

/** Audio of an event that costs nothing, milliseconds: the shortest pieces that clients send. Its bytes are bounded as audio. */
export const freeAudioMs = 10

/** What a new item costs: a conversation of 2,000 items can be restored at once. */
export const itemCost = 1 / 4

/** What an event costs that is too large to be read: it was received, and took the thread about 10 ms. */
export const tooLargeCost = 50

/** What an event with so much audio costs. */
export const appendCost = (audioMs: number): number => Math.max(0, 1 - audioMs / freeAudioMs)

const tooMany = {
  type: "invalid_request_error",
  code: "too_many_events",
  message: `Too many events: ${smallEvents.burst} at once, then ${smallEvents.perSecond} a second. An event with ${freeAudioMs} ms of audio and more is not counted, one with less in proportion, a new item as a quarter, and one that is larger than ${maxEventBytes} bytes as ${tooLargeCost}.`,
  param: null,
  event_id: null,
}

/** Characters at either end of an event that is not read, in which its id is looked for. */
const searched = 2_048
const eventIdPattern = new RegExp(`"event_id"\\s*:\\s*"([^"\\\\]{1,${maxEventIdCharacters}})"`)

type Event = string | TextFrame

/** The first characters of an event, or the last ones where `from` is negative. */
const part = (event: Event, from: number, to?: number): string =>
  typeof event === "string" ? event.slice(from, to) : new TextDecoder().decode(event.subarray(from, to))

const beginning = (event: Event): string => part(event, 0, searched)
const ending = (event: Event): string => part(event, -searched)

/** The id of an event that is not read, for example because it is too large; null if it is not near its beginning or its end. */
const unreadId = (event: Event): string | null =>
  (eventIdPattern.exec(beginning(event)) ?? eventIdPattern.exec(ending(event)))?.[1] ?? null

const eventIdOf = (event: unknown): string | null => {
  const id = isObject(event) ? event.event_id : undefined
  return typeof id === "string" && id.length <= maxEventIdCharacters ? id : null
}

/** `E`: why an event cannot be carried out. */
interface EventTerms<E, R> {
  readonly tell: Tell
  readonly share: SocketShare
  readonly pace: SocketPace
  /** Carries out an event, and gives what it costs: 1, `itemCost` or `appendCost`. */
  readonly carryOut: (event: unknown) => Effect.Effect<number, E | SocketError, R>
  /** Takes audio that came beside the events, and gives what it costs. Absent where audio is in the events. */
  readonly hear?: (samples: Int16Array) => Effect.Effect<number, E | SocketError, R>
  /** Writes the error event. `eventId`: the client's, if it has one. */
  readonly tellError: (error: E | InvalidRequest, eventId: string | null) => Effect.Effect<void, SocketError>
}

const isSocketError = <E>(error: E | SocketError): error is SocketError =>
  isObject(error) && error._tag === "SocketError"

/** Whether an event's bytes are to be paid once it is known how much of it is audio. */
const looksLikeAudio = (event: Event): boolean =>
  beginning(event).includes("input_audio_buffer.append") ||
  ending(event).includes("input_audio_buffer.append")

/** Audio in an event, which is bounded as audio. What stands around it is not. */
const audioCharacters = (event: unknown): number => {
  const isAudio = isObject(event) && event.type === "input_audio_buffer.append"
  const { audio } = isAudio ? event : {}
  return typeof audio === "string" || audio instanceof Uint8Array ? audio.length : 0
}

/** Of a realtime socket's messages: a larger event is refused by an error event. */
export const eventSize: MessageSize = { mostBytes: maxEventBytes, cuts: true }

const tooLarge = new InvalidRequest({ field: "event", problem: `is larger than ${maxEventBytes} bytes` })

export class EventReader<E, R> {
  readonly #terms: EventTerms<E, R>

  constructor(terms: EventTerms<E, R>) {
    this.#terms = terms
  }

  /** Handles one event of the client. What it costs. */
  readonly take = (frame: string | Uint8Array): Effect.Effect<number, SocketError, R> => {
    const { hear } = this.#terms
    if (frame instanceof AudioFrame && hear !== undefined) return this.#answered(hear(frame.samples), null)
    if (frame instanceof CutFrame) return Effect.as(this.#refuse(tooLarge, unreadId(frame)), tooLargeCost)
    return typeof frame === "string" || frame instanceof TextFrame
      ? this.#takeText(frame)
      : this.#refuse(new InvalidRequest({ field: "event", problem: "must be a text frame" }), null)
  }

  #takeText(frame: Event): Effect.Effect<number, SocketError, R> {
    const taken = Effect.catchIf(
      this.#terms.share.hold("event", frame.length, this.#read(frame)),
      (error): error is InvalidRequest => error._tag === "InvalidRequest",
      (error) => this.#refuse(error, unreadId(frame)),
    )
    // Nothing of it is needed any more: texts were copied out of it, and audio was taken in.
    return typeof frame === "string"
      ? taken
      : Effect.ensuring(
          taken,
          Effect.sync(() => freeMemory(frame)),
        )
  }

  #read(frame: Event): Effect.Effect<number, SocketError, R> {
    return Effect.gen({ self: this }, function* (this: EventReader<E, R>) {
      const { carryOut, share } = this.#terms
      const paid = looksLikeAudio(frame) ? 0 : frame.length
      yield* share.pay(paid)
      const parsed = yield* Effect.result(parseEvent(frame, keepsAudio))
      if (parsed._tag === "Failure") {
        yield* share.pay(frame.length - paid)
        const { failure } = parsed
        const problem =
          failure._tag === "BodyTooLarge" ? `is larger than ${failure.limitBytes} bytes` : failure.problem
        return yield* this.#refuse(new InvalidRequest({ field: "event", problem }), unreadId(frame))
      }
      const event = parsed.success
      yield* share.pay(frame.length - paid - audioCharacters(event))
      return yield* this.#answered(carryOut(event), eventIdOf(event))
    })
  }

  /** What cannot be carried out is answered with an error event. */
  #answered(
    work: Effect.Effect<number, E | SocketError, R>,
    eventId: string | null,
  ): Effect.Effect<number, SocketError, R> {
    return Effect.matchEffect(work, {
      onSuccess: Effect.succeed,
      onFailure: (error) => (isSocketError(error) ? Effect.fail(error) : this.#refuse(error, eventId)),
    })
  }

  #refuse(error: E | InvalidRequest, eventId: string | null): Effect.Effect<number, SocketError> {
    return Effect.as(this.#terms.tellError(error, eventId), 1)
  }

  /** Reads until the client sends nothing for so long, or too many events. `onEvents` runs each time that some have come. */
  readUntilIdle(
    reader: Reader,
    idle: Duration.Input,
    onEvents?: () => void,
  ): Effect.Effect<CloseEvent, SocketError, R> {
    return Effect.gen({ self: this }, function* (this: EventReader<E, R>) {
      const allowance = new TokenBucket(smallEvents, yield* monotonicMs)
      for (;;) {
        const frames = yield* Effect.timeoutOption(reader.pull, idle)
        if (Option.isNone(frames)) return new CloseEvent(1000, "idle")
        onEvents?.()
        for (const frame of frames.value) {
          yield* betweenParts
          const cost = yield* this.take(frame)
          if (cost === 0) continue
          if (allowance.spend(cost, yield* monotonicMs)) {
            yield* this.#terms.pace.event(cost)
            continue
          }
          yield* this.#terms.tell("error", { error: tooMany })
          return new CloseEvent(1008, "too many events")
        }
      }
    })
  }
}
