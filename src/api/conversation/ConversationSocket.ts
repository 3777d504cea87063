// Carries out the client's events of one conversation: session, audio, items, answers. Knows no transport.
import { Effect } from "effect"
import type { SocketError } from "effect/socket/Socket"
import type { SessionLease } from "#actors/live/SessionLease.ts"
import { g711RateHz } from "#audio/G711.ts"
import type { PlayedAudio } from "#domain/activity/PlayedAudio.ts"
import {
  ItemCreate,
  ItemNamed,
  ItemTruncate,
  ResponseCancel,
  ResponseCreate,
  SessionUpdate,
} from "#domain/conversation/ClientEvents.ts"
import { type Item, itemOf } from "#domain/conversation/Items.ts"
import {
  type ConversationSettings,
  conversationRateHz,
  type SessionFacts,
  sessionObject,
  type Turns,
  withChange,
} from "#domain/conversation/Settings.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import { RealtimeClientEvent } from "#domain/wire/events/RealtimeEvents.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { memoryOf } from "#domain/wire/Json.ts"
import { Append, noMemory } from "#domain/wire/RealtimeProtocol.ts"
import type { SessionDetection } from "#services/detection/DetectionModels.ts"
import { decodeValue } from "../http/JsonBody.ts"
import { appendCost, itemCost } from "../live/EventReader.ts"
import { Hearing, type LiveServices, type Seat, type TurnTerms } from "../live/Hearing.ts"
import type { SocketPace } from "../live/IntakePace.ts"
import type { RealtimeItems } from "../live/RealtimeItems.ts"
import { largeBytes } from "../live/SocketShare.ts"
import type { AnswerServices } from "./Answer.ts"
import type { Conversation } from "./Conversation.ts"
import { presetOf } from "./ConversationModels.ts"
import type { ConversationTerms } from "./ConversationTerms.ts"
import { HeardEnds } from "./HeardEnds.ts"
import { emptyCommit, noCall, noItem, ProtocolError, tellError } from "./ProtocolError.ts"
import { askModel, SemanticEnds } from "./SemanticEnds.ts"

const decodeAny = decodeValue(RealtimeClientEvent)
const decodeUpdate = decodeValue(SessionUpdate)
const decodeAppend = decodeValue(Append)
const decodeItem = decodeValue(ItemCreate)
const decodeNamed = decodeValue(ItemNamed)
const decodeTruncate = decodeValue(ItemTruncate)
const decodeCreate = decodeValue(ResponseCreate)
const decodeCancel = decodeValue(ResponseCancel)

/** Audio that a commit by hand must have, seconds. OpenAI's limit. */
const leastSeconds = 0.1

export type ConversationServices = AnswerServices | LiveServices

interface SocketTerms extends Omit<ConversationTerms, "settings" | "heardMs"> {
  readonly facts: SessionFacts
  readonly items: RealtimeItems
  readonly pace: SocketPace
  /** What the client plays, whose echo is no speech of the user. */
  readonly played: PlayedAudio
  readonly detection: SessionDetection
  readonly seat: Seat
  readonly reseat: (
    settings: ConversationSettings,
    replaced: SessionLease,
  ) => Effect.Effect<Seat, EdgeError, LiveServices>
}

const turnTerms = (turns: Turns | null): TurnTerms =>
  turns === null ? null : { ...turns, judges: turns.kind === "semantic_vad" }

const noAppend = new InvalidRequest({
  field: "type",
  problem: "is not for calls, whose audio comes beside the events",
})
const noPlayout = new InvalidRequest({ field: "type", problem: "is for calls only" })

/** The settings that decide which lease hears. */
const earsOf = ({ tellsLogprobs, transcription }: ConversationSettings): string => {
  const { keywords, language, languages, model, prompt } = transcription ?? {}
  return JSON.stringify([model, language, languages, prompt, keywords, tellsLogprobs])
}

/** What the client says that it speaks. */
const languageOf = ({ transcription }: ConversationSettings): string | undefined => {
  const { language, languages } = transcription ?? {}
  return language ?? (languages?.length === 1 ? languages[0] : undefined)
}

export class ConversationSocket {
  readonly #terms: SocketTerms
  readonly #hearing: Hearing
  readonly #conversation: Conversation
  /** Judges the silences of `semantic_vad`. */
  readonly ends: SemanticEnds
  /** The same, where a model hears the ends of turns. */
  readonly heardEnds: HeardEnds | undefined
  #settings: ConversationSettings

  constructor(terms: SocketTerms, settings: ConversationSettings, conversation: Conversation) {
    const { admit, detection, items, pace, played, reseat, seat, tell } = terms
    this.#terms = terms
    this.#settings = settings
    this.#conversation = conversation
    const { turnEnds } = detection
    this.heardEnds =
      turnEnds === undefined
        ? undefined
        : new HeardEnds({ model: turnEnds, eagerness: () => this.#settings.turns?.eagerness ?? "auto" })
    this.#hearing = new Hearing(
      {
        tell,
        items,
        pace,
        played,
        detection,
        seat,
        admit,
        reseat: (replaced) => reseat(this.#settings, replaced),
        onSpeech: conversation.speechStarted,
        onTurn: conversation.turnEnded,
        ...(this.heardEnds === undefined ? {} : { onSilence: this.heardEnds.paused }),
      },
      turnTerms(settings.turns),
    )
    this.#hearing.setRate(this.#rateOf(settings))
    terms.share.held.keep(memoryOf(settings))
    const judging = { ...terms, settings: () => this.#settings }
    this.ends = new SemanticEnds({
      ...judging,
      ask: askModel(judging),
      openId: () => items.openId,
      language: () => languageOf(this.#settings) ?? seat.entry.transcription?.defaultLanguage,
      isJudged: () => this.#hearing.hearsEnds,
      judge: (silenceOf) => this.#hearing.judge(silenceOf),
      leftMs: () => this.#hearing.leftMs,
      judged: conversation.foreseen,
    })
  }

  /** Of the audio that comes in: a call has its own. */
  #rateOf({ hears }: ConversationSettings): number {
    return this.#terms.playout?.rateHz ?? (hears === "pcm" ? conversationRateHz : g711RateHz)
  }

  get heardMs(): number {
    return this.#hearing.heardMs
  }

  get current(): ConversationSettings {
    return this.#settings
  }

  readonly created: Effect.Effect<void, SocketError> = Effect.suspend(() =>
    this.#terms.tell("session.created", { session: sessionObject(this.#terms.facts, this.#settings) }),
  )

  /** Carries out one event of the client. What it costs (EventReader). */
  readonly carryOut = (
    event: unknown,
  ): Effect.Effect<number, EdgeError | ProtocolError | SocketError, ConversationServices> =>
    Effect.gen({ self: this }, function* (this: ConversationSocket) {
      const { type } = yield* decodeAny(event)
      if (type === "input_audio_buffer.append") {
        if (this.#terms.playout !== undefined) return yield* noAppend
        return appendCost(yield* this.#hearing.hear((yield* decodeAppend(event)).audio, this.#settings.hears))
      }
      yield* this.#command(type, event)
      return type === "conversation.item.create" ? itemCost : 1
    })

  /** Takes audio of a call, which comes beside the events. What it costs. */
  readonly hear = (
    samples: Int16Array,
  ): Effect.Effect<number, EdgeError | ProtocolError | SocketError, ConversationServices> =>
    Effect.map(this.#hearing.hearSamples(samples), appendCost)

  #command(
    type: string,
    event: unknown,
  ): Effect.Effect<void, EdgeError | ProtocolError | SocketError, ConversationServices> {
    return Effect.gen({ self: this }, function* (this: ConversationSocket) {
      const { history, newId, share, tell } = this.#terms
      switch (type) {
        case "session.update": {
          const next = withChange(this.#settings, (yield* decodeUpdate(event)).session)
          const updated = Effect.gen({ self: this }, function* (this: ConversationSocket) {
            yield* this.#update(next)
            yield* this.#conversation.settingsChanged
            yield* tell("session.updated", { session: sessionObject(this.#terms.facts, this.#settings) })
          })
          return yield* share.write("session", memoryOf(next), updated)
        }
        case "input_audio_buffer.commit": {
          const { openSeconds } = this.#terms.items
          if (openSeconds < leastSeconds) return yield* emptyCommit(openSeconds * 1000)
          yield* this.#hearing.commit
          return
        }
        case "input_audio_buffer.clear":
          yield* this.#hearing.clear
          return yield* tell("input_audio_buffer.cleared")
        case "conversation.item.create": {
          const { item: given, previous_item_id: after } = yield* decodeItem(event)
          const item = itemOf(given, newId)
          if (item.type === "function_call_output" && !history.hasCall(item.call_id)) {
            return yield* noCall(item.call_id)
          }
          yield* share.pay(2 * memoryOf(item))
          const previous_item_id = history.add(item, "client", { after })
          if (previous_item_id instanceof InvalidRequest) return yield* previous_item_id
          yield* tell("conversation.item.added", { previous_item_id, item })
          // A large item takes milliseconds to write.
          yield* Effect.yieldNow
          return yield* tell("conversation.item.done", { previous_item_id, item })
        }
        case "conversation.item.retrieve": {
          const { item_id } = yield* decodeNamed(event)
          const item = yield* this.#known("retrieve", item_id)
          return yield* share.write("item_id", memoryOf(item), tell("conversation.item.retrieved", { item }))
        }
        case "conversation.item.delete": {
          const { item_id } = yield* decodeNamed(event)
          yield* this.#known("delete", item_id)
          history.delete(item_id)
          return yield* tell("conversation.item.deleted", { item_id })
        }
        case "conversation.item.truncate": {
          const { audio_end_ms, content_index, item_id } = yield* decodeTruncate(event)
          const cutMs = yield* this.#conversation.truncate(item_id, audio_end_ms)
          return yield* tell("conversation.item.truncated", { item_id, content_index, audio_end_ms: cutMs })
        }
        case "output_audio_buffer.clear":
          if (this.#terms.playout === undefined) return yield* noPlayout
          return yield* this.#conversation.stopPlaying
        case "response.create":
          return yield* this.#conversation.create((yield* decodeCreate(event)).response ?? {})
        case "response.cancel":
          return yield* this.#conversation.cancel((yield* decodeCancel(event)).response_id)
        default:
          return yield* new InvalidRequest({ field: "type", problem: "is no event of a conversation" })
      }
    })
  }

  #known(verb: "retrieve" | "delete", id: string): Effect.Effect<Item, ProtocolError> {
    const item = this.#terms.history.item(id)
    return item === undefined ? Effect.fail(noItem(verb, id)) : Effect.succeed(item)
  }

  readonly #update = Effect.fnUntraced(
    { self: this },
    function* (this: ConversationSocket, next: ConversationSettings) {
      const before = this.#settings
      if (next.voice !== before.voice) {
        yield* presetOf(this.#terms.models.speaks, next.voice)
        if (this.#conversation.hasSpoken) {
          return yield* new ProtocolError({
            code: "cannot_update_voice",
            message: "Cannot update a conversation's voice if assistant audio is present.",
            param: "session.audio.output.voice",
          })
        }
      }
      const { held } = this.#terms.share
      const bytes = memoryOf(next)
      const grown = bytes - memoryOf(before)
      if (bytes <= largeBytes) held.keep(grown)
      else if (!held.take(grown)) return yield* noMemory("session", held)
      this.#settings = next
      if (earsOf(next) !== earsOf(before)) {
        yield* Effect.tapError(this.#hearing.move, () =>
          Effect.sync(() => {
            this.#settings = before
            held.giveBack(grown)
          }),
        )
      }
      this.#hearing.setTurns(turnTerms(next.turns))
      this.#hearing.setRate(this.#rateOf(next))
    },
  )

  readonly tellError = (
    error: EdgeError | ProtocolError,
    eventId: string | null,
  ): Effect.Effect<void, SocketError> => tellError(this.#terms.tell, error, eventId)
}
