// The items of one answer of a conversation: a message that is spoken or sent as text, and calls of functions, which are sent at once.
// Writes their events in order, each once. A step that writes several events is not interrupted between them.
import { Effect } from "effect"
import type { SocketError } from "effect/socket/Socket"
import { G711_RATE_HZ, toG711 } from "#audio/G711.ts"
import { Resampler } from "#audio/Resampler.ts"
import { SPEECH_RATE_HZ, s16ToBytes, samplesToMs } from "#domain/audio/Audio.ts"
import type { SpokenWord } from "#domain/audio/TimedWords.ts"
import type { ResponseStatus } from "#domain/conversation/Answers.ts"
import type { AnswerTimes } from "#domain/conversation/AnswerTimes.ts"
import type { History } from "#domain/conversation/History.ts"
import { answerItem, callItem, type Item } from "#domain/conversation/Items.ts"
import type { PlayClock } from "#domain/conversation/PlayClock.ts"
import type { ConversationSettings } from "#domain/conversation/Settings.ts"
import { type Caption, SpokenText } from "#domain/conversation/SpokenText.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import type { TextDelta } from "#engines/protocol/Text.ts"
import type { Tell } from "../live/RealtimeItems.ts"
import type { Voice, VoiceReader } from "./Voice.ts"

export interface AnswerItemsTerms {
  readonly tell: Tell
  readonly newId: () => string
  /** The conversation that the items join; undefined for an answer outside of it. */
  readonly history: History | undefined
  readonly clock: PlayClock
  readonly times: AnswerTimes
  readonly settings: Pick<ConversationSettings, "sounds">
  /** Undefined: the answer is written. */
  readonly voice: Voice | undefined
  /** Called with the id of its message. */
  readonly onMessage: (id: string) => void
}

interface Message {
  readonly id: string
  readonly index: number
  readonly spoken: SpokenText
  /** Written so far; what was spoken of it is in `spoken`. */
  text: string
}

interface Call {
  readonly id: string
  readonly index: number
  readonly callId: string
  readonly name: string
  arguments: string
}

/** Work of an answer's own fiber, in the order in which the model writes. */
export type Written =
  | { readonly is: "text"; readonly text: string }
  | { readonly is: "call"; readonly call: number; readonly name: string }
  | { readonly is: "arguments"; readonly call: number; readonly text: string }

export const writtenOf = ({ detail, text }: TextDelta): Written | undefined => {
  const part = detail?.part
  if (part === undefined) return text === "" ? undefined : { is: "text", text }
  if (part.kind === "call") return { is: "call", call: part.call, name: part.name }
  return part.kind === "arguments" ? { is: "arguments", call: part.call, text } : undefined
}

export class AnswerItems implements VoiceReader {
  readonly output: Array<Item> = []
  private readonly responseId: string
  private readonly terms: AnswerItemsTerms
  private readonly calls = new Map<number, Call>()
  private message: Message | undefined
  private telephone: Resampler | undefined

  constructor(responseId: string, terms: AnswerItemsTerms) {
    this.responseId = responseId
    this.terms = terms
  }

  /** Speech that was sent. */
  get audioMs(): number {
    return samplesToMs(this.message?.spoken.samples ?? 0, SPEECH_RATE_HZ)
  }

  /** What the model writes next. */
  take(written: Written): Effect.Effect<void, SocketError> {
    return Effect.uninterruptible(this.takeWritten(written))
  }

  private takeWritten(written: Written): Effect.Effect<void, SocketError> {
    if (written.is === "text") return this.takeText(written.text)
    if (written.is === "call") return this.beginCall(written.call, written.name)
    const call = this.calls.get(written.call)
    if (call === undefined || written.text === "") return Effect.void
    call.arguments += written.text
    return this.terms.tell("response.function_call_arguments.delta", {
      ...this.about(call),
      call_id: call.callId,
      delta: written.text,
    })
  }

  private takeText(text: string): Effect.Effect<void, SocketError> {
    return Effect.gen({ self: this }, function* (this: AnswerItems) {
      // White space before a call is no answer.
      if (this.message === undefined && text.trim() === "") return
      const message = this.message ?? (yield* this.beginMessage)
      message.text += text
      const { voice } = this.terms
      // Its events refer to the message.
      if (voice !== undefined) return voice.open()
      this.terms.times.reached("firstSent", yield* monotonicMs)
      yield* this.terms.tell("response.output_text.delta", { ...this.part(message), delta: text })
    })
  }

  /** The audio of a piece begins. */
  readonly began = (text: string): Effect.Effect<void, SocketError> =>
    Effect.sync(() => this.message?.spoken.begin(text))

  readonly sound = (
    samples: Int16Array,
    words: ReadonlyArray<SpokenWord>,
  ): Effect.Effect<void, SocketError> =>
    Effect.suspend(() => {
      const { message } = this
      if (message === undefined) return Effect.void
      const captions = this.tellCaptions(message, message.spoken.add(samples.length, words))
      const bytes = this.encoded(samples)
      if (bytes.length === 0) return captions
      const delta = Buffer.from(bytes).toString("base64")
      return Effect.andThen(
        captions,
        this.terms.tell("response.output_audio.delta", { ...this.part(message), delta }),
      )
    })

  /** All audio of a piece has been sent. */
  readonly ended: Effect.Effect<void, SocketError> = Effect.suspend(() => {
    const { message } = this
    return message === undefined ? Effect.void : this.tellCaptions(message, message.spoken.rest())
  })

  private tellCaptions(message: Message, captions: ReadonlyArray<Caption>): Effect.Effect<void, SocketError> {
    return Effect.forEach(
      captions,
      ({ start, text }) =>
        this.terms.tell("response.output_audio_transcript.delta", {
          ...this.part(message),
          delta: text,
          start_time: samplesToMs(start, SPEECH_RATE_HZ) / 1000,
        }),
      { discard: true },
    )
  }

  private encoded(samples: Int16Array): Uint8Array {
    const { sounds } = this.terms.settings
    if (sounds === "pcm") return s16ToBytes(samples)
    this.telephone ??= new Resampler(SPEECH_RATE_HZ, G711_RATE_HZ)
    return toG711(this.telephone.push(samples), sounds)
  }

  private readonly beginMessage: Effect.Effect<Message, SocketError> = Effect.gen(
    { self: this },
    function* (this: AnswerItems) {
      const { clock, newId, voice } = this.terms
      const message: Message = {
        id: `item_${newId()}`,
        index: this.nextIndex(),
        // Nothing else of the conversation is sent before it has been spoken.
        spoken: new SpokenText(clock.sentSamples),
        text: "",
      }
      this.message = message
      this.terms.onMessage(message.id)
      yield* this.addItem(message.index, answerItem(message.id, "in_progress", []), message.spoken)
      const part = voice === undefined ? { type: "text", text: "" } : { type: "audio", transcript: "" }
      yield* this.terms.tell("response.content_part.added", { ...this.part(message), part })
      return message
    },
  )

  private beginCall(call: number, name: string): Effect.Effect<void, SocketError> {
    return Effect.suspend(() => {
      const { newId } = this.terms
      const begun: Call = {
        id: `item_${newId()}`,
        index: this.nextIndex(),
        callId: `call_${newId()}`,
        name,
        arguments: "",
      }
      this.calls.set(call, begun)
      return this.addItem(begun.index, callItem(begun.id, "in_progress", begun))
    })
  }

  private indexes = 0
  private nextIndex(): number {
    return this.indexes++
  }

  private addItem(index: number, item: Item, spoken?: SpokenText): Effect.Effect<void, SocketError> {
    return Effect.gen({ self: this }, function* (this: AnswerItems) {
      const { history, tell, voice } = this.terms
      this.output[index] = item
      const added = { response_id: this.responseId, output_index: index, item }
      yield* tell("response.output_item.added", added)
      if (history === undefined) return
      const previous = history.add(item, "own", voice === undefined ? {} : { spoken })
      const previous_item_id = typeof previous === "string" ? previous : null
      yield* tell("conversation.item.added", { previous_item_id, item })
    })
  }

  private endItem(index: number, item: Item): Effect.Effect<void, SocketError> {
    return Effect.gen({ self: this }, function* (this: AnswerItems) {
      const { history, tell } = this.terms
      this.output[index] = item
      if (history !== undefined) {
        const previous_item_id = history.before(item.id)
        history.replace(item)
        yield* tell("conversation.item.done", { previous_item_id, item })
      }
      yield* tell("response.output_item.done", { response_id: this.responseId, output_index: index, item })
    })
  }

  /** The model has written everything: calls go out at once, whatever is still to be spoken. */
  readonly endWriting: Effect.Effect<void, SocketError> = Effect.uninterruptible(
    Effect.gen({ self: this }, function* (this: AnswerItems) {
      for (const [key, call] of this.calls) {
        this.calls.delete(key)
        // Clients parse the arguments as JSON.
        const args = call.arguments.trim() === "" ? "{}" : call.arguments
        const done = { ...this.about(call), call_id: call.callId, name: call.name, arguments: args }
        yield* this.terms.tell("response.function_call_arguments.done", done)
        yield* this.endItem(call.index, callItem(call.id, "completed", { ...call, arguments: args }))
      }
    }),
  )

  /** Ends what is open. `status` is that of the answer. */
  endAll(status: ResponseStatus): Effect.Effect<void, SocketError> {
    return Effect.gen({ self: this }, function* (this: AnswerItems) {
      if (this.message !== undefined) yield* this.endMessage(this.message, status)
      for (const call of this.calls.values()) {
        yield* this.endItem(call.index, callItem(call.id, "incomplete", call))
      }
    })
  }

  private endMessage(message: Message, status: ResponseStatus): Effect.Effect<void, SocketError> {
    return Effect.gen({ self: this }, function* (this: AnswerItems) {
      const { clock, tell, voice } = this.terms
      const isWhole = status === "completed"
      const itemStatus = isWhole ? "completed" : "incomplete"
      const part = this.part(message)
      if (voice === undefined) {
        yield* tell("response.output_text.done", { ...part, text: message.text })
        yield* tell("response.content_part.done", { ...part, part: { type: "text", text: message.text } })
        const content = [{ type: "output_text" as const, text: message.text }]
        return yield* this.endItem(message.index, answerItem(message.id, itemStatus, content))
      }
      const { spoken } = message
      const playedSamples = clock.playedSamples(yield* monotonicMs) - spoken.startsAt
      const isCut = status === "cancelled"
      const transcript = isCut ? spoken.heard(playedSamples, false) : spoken.text
      yield* tell("response.output_audio.done", part)
      yield* tell("response.output_audio_transcript.done", { ...part, transcript })
      yield* tell("response.content_part.done", { ...part, part: { type: "audio", transcript } })
      const content = [{ type: "output_audio" as const, transcript }]
      yield* this.endItem(message.index, answerItem(message.id, itemStatus, content))
    })
  }

  private about({ id, index }: { readonly id: string; readonly index: number }) {
    return { response_id: this.responseId, item_id: id, output_index: index }
  }

  private part(message: Message) {
    return { ...this.about(message), content_index: 0 }
  }
}
