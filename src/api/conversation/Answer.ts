// One answer of a conversation, from `response.created` to `response.done`: what the language model writes is spoken or sent as
// text, and its calls of functions are sent at once. Writes the events of an answer in their order, each item once.
import { Cause, Effect, Fiber, type Scope } from "effect"
import type { SocketError } from "effect/socket/Socket"
import { Signal } from "#actors/live/Signal.ts"
import { G711_RATE_HZ, toG711 } from "#audio/G711.ts"
import { Resampler } from "#audio/Resampler.ts"
import { SPEECH_RATE_HZ, s16ToBytes, samplesToMs } from "#domain/audio/Audio.ts"
import {
  answerUsage,
  noCounts,
  type ResponseObject,
  type ResponseStatus,
  type StatusDetails,
} from "#domain/conversation/Answers.ts"
import { Clauses } from "#domain/conversation/Clauses.ts"
import type { History } from "#domain/conversation/History.ts"
import { answerItem, callItem, type Item } from "#domain/conversation/Items.ts"
import type { PlayClock } from "#domain/conversation/PlayClock.ts"
import { type ConversationSettings, outputOf } from "#domain/conversation/Settings.ts"
import { SpokenText } from "#domain/conversation/SpokenText.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import type { ChatRequest } from "#domain/wire/Chat.ts"
import { type EdgeError, errorType } from "#domain/wire/Failures.ts"
import type { TextDelta } from "#engines/protocol/Text.ts"
import { detailOf } from "#http/ErrorBody.ts"
import { CurrentRequest, RequestContext } from "#http/RequestContext.ts"
import { reportFailure } from "#services/AnswerFailures.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import type { Tell } from "../live/RealtimeItems.ts"
import { beginChat } from "../text/ChatCompletions.ts"
import type { Voice, VoiceServices } from "./Voice.ts"

export interface AnswerTerms {
  readonly tell: Tell
  readonly newId: () => string
  readonly caller: Principal
  /** The conversation that its items join; undefined for an answer outside of it. */
  readonly history: History | undefined
  readonly conversationId: string
  readonly clock: PlayClock
  readonly settings: Pick<
    ConversationSettings,
    "modality" | "maxOutputTokens" | "sounds" | "voice" | "speed" | "pacing"
  >
  readonly metadata: Readonly<Record<string, string>> | null
  /** What the model reads; shorter prompts follow where one does not fit into its context. */
  readonly prompts: ReadonlyArray<ChatRequest>
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
type Written =
  | { readonly is: "text"; readonly text: string }
  | { readonly is: "call"; readonly call: number; readonly name: string }
  | { readonly is: "arguments"; readonly call: number; readonly text: string }

const writtenOf = ({ detail, text }: TextDelta): Written | undefined => {
  const part = detail?.part
  if (part === undefined) return text === "" ? undefined : { is: "text", text }
  if (part.kind === "call") return { is: "call", call: part.call, name: part.name }
  return part.kind === "arguments" ? { is: "arguments", call: part.call, text } : undefined
}

export type AnswerServices = Effect.Services<ReturnType<typeof beginChat>> | VoiceServices

export class Answer {
  readonly id: string
  private readonly terms: AnswerTerms
  private readonly clauses = new Clauses()
  private readonly written: Array<Written> = []
  private readonly news = new Signal()
  private readonly calls = new Map<number, Call>()
  private message: Message | undefined
  private telephone: Resampler | undefined
  private readonly output: Array<Item> = []
  private counts = noCounts
  private hasWritten = false
  private hasFinished = false
  private fiber: Fiber.Fiber<void, SocketError> | undefined

  constructor(terms: AnswerTerms) {
    this.terms = terms
    this.id = `resp_${terms.newId()}`
  }

  /** Starts it; its events follow. */
  start(scope: Scope.Scope): Effect.Effect<void, never, AnswerServices> {
    return Effect.gen({ self: this }, function* (this: Answer) {
      this.fiber = yield* Effect.forkIn(this.life, scope, { startImmediately: true })
    })
  }

  /** Completes when its last event was sent. */
  get ended(): Effect.Effect<void> {
    return Effect.suspend(() =>
      this.fiber === undefined ? Effect.void : Effect.asVoid(Fiber.await(this.fiber)),
    )
  }

  /** Its message, once it has begun. */
  get messageId(): string | undefined {
    return this.message?.id
  }

  get isOver(): boolean {
    return this.hasFinished
  }

  /** The model has written everything; what is left is to be spoken. */
  get isDraining(): boolean {
    return this.hasWritten
  }

  /** Sends the rest of its audio at once, and ends. */
  readonly flush: Effect.Effect<void> = Effect.suspend(() => {
    this.terms.voice?.hurry()
    return this.ended
  })

  /** Ends it here. Its last events are sent before this completes. */
  cancel(reason: "turn_detected" | "client_cancelled"): Effect.Effect<void, SocketError> {
    return Effect.gen({ self: this }, function* (this: Answer) {
      if (this.hasFinished) return
      if (this.fiber !== undefined) yield* Fiber.interrupt(this.fiber)
      if (reason === "turn_detected") this.terms.clock.stopped(yield* monotonicMs)
      yield* this.finish("cancelled", { type: "cancelled", reason })
    })
  }

  private readonly life: Effect.Effect<void, SocketError, AnswerServices> = Effect.gen(
    { self: this },
    function* (this: Answer) {
      yield* this.terms.tell("response.created", { response: this.object("in_progress", null) })
      const finish = yield* Effect.scoped(this.answer)
      if (finish === "length") {
        yield* this.finish("incomplete", { type: "incomplete", reason: "max_output_tokens" })
      } else yield* this.finish("completed", null)
    },
  ).pipe(
    Effect.catchIf(
      (error): error is Exclude<typeof error, SocketError> => error._tag !== "SocketError",
      (error: EdgeError) => {
        const failed = { type: errorType(error), code: error._tag, message: detailOf(error) }
        const told = this.finish("failed", { type: "failed", error: failed })
        return Effect.andThen(reportFailure(error, "/v1/realtime"), told)
      },
    ),
    Effect.catchCauseIf(Cause.hasDies, (cause) => {
      const error = { type: "server_error", code: "internal_error", message: "Internal server error" }
      const told = this.finish("failed", { type: "failed", error })
      return Effect.andThen(reportFailure(cause, "/v1/realtime"), told)
    }),
    // Its times count from its own beginning, not from the socket's.
    Effect.provideServiceEffect(
      CurrentRequest,
      Effect.sync(() => new RequestContext(undefined, this.terms.newId)),
    ),
  )

  // ------------------------------------------------------------ writing

  private readonly answer = Effect.gen({ self: this }, function* (this: Answer) {
    const { voice } = this.terms
    const write = Effect.gen({ self: this }, function* (this: Answer) {
      const finish = yield* this.generate
      yield* this.endCalls
      const rest = this.clauses.end()
      if (rest.trim() !== "") voice?.say(rest)
      this.hasWritten = true
      voice?.end()
      return finish
    })
    if (voice === undefined) return yield* write
    const speak = voice.speak({ began: this.began, sound: this.sound })
    const [finish] = yield* Effect.all([write, speak], { concurrency: "unbounded" })
    return finish
  })

  /** Generates with the longest prompt that fits. Returns why the model stopped. */
  private readonly generate = Effect.gen({ self: this }, function* (this: Answer) {
    const { caller, prompts } = this.terms
    const [first, ...shorter] = prompts
    const begin = (prompt: ChatRequest) => beginChat(caller, prompt, "stream")
    let begun = begin(first!)
    for (const prompt of shorter) {
      const next = begin(prompt)
      begun = Effect.catchTag(begun, "PromptTooLong", () => next)
    }
    const { generation } = yield* begun
    const { cachedTokens, imageTokens = 0, promptTokens } = generation.started
    this.counts = { ...this.counts, cachedTokens, imageTokens, inputTokens: promptTokens }
    generation.read({
      take: (delta) => {
        this.counts = { ...this.counts, outputTokens: delta.completionTokens }
        const written = writtenOf(delta)
        if (written === undefined) return
        this.written.push(written)
        this.news.set()
      },
    })
    let finish: string | undefined
    const ended = Effect.map(generation.end, (end) => {
      finish = end.finishReason
      this.counts = { ...this.counts, outputTokens: end.completionTokens }
      this.news.set()
    })
    const take = Effect.gen({ self: this }, function* (this: Answer) {
      for (;;) {
        const next = this.written.shift()
        if (next !== undefined) yield* this.takeWritten(next)
        else if (finish !== undefined) return finish
        else {
          this.news.clear()
          yield* this.news.wait
        }
      }
    })
    const [, why] = yield* Effect.all([ended, take], { concurrency: "unbounded" })
    return why
  })

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
    return Effect.gen({ self: this }, function* (this: Answer) {
      // White space before a call is no answer.
      if (this.message === undefined && text.trim() === "") return
      const message = this.message ?? (yield* this.beginMessage)
      message.text += text
      const { voice } = this.terms
      if (voice === undefined) {
        yield* this.terms.tell("response.output_text.delta", { ...this.part(message), delta: text })
        return
      }
      for (const piece of this.clauses.push(text)) voice.say(piece)
    })
  }

  // ------------------------------------------------------------ speech

  private readonly began = (text: string): Effect.Effect<void, SocketError> =>
    Effect.suspend(() => {
      const { message } = this
      if (message === undefined) return Effect.void
      const start_time = samplesToMs(message.spoken.samples, SPEECH_RATE_HZ) / 1000
      message.spoken.begin(text)
      return this.terms.tell("response.output_audio_transcript.delta", {
        ...this.part(message),
        delta: text,
        start_time,
      })
    })

  private readonly sound = (samples: Int16Array): Effect.Effect<void, SocketError> =>
    Effect.suspend(() => {
      const { message } = this
      if (message === undefined) return Effect.void
      message.spoken.add(samples.length)
      const audioMs = samplesToMs(message.spoken.samples, SPEECH_RATE_HZ)
      this.counts = { ...this.counts, audioMs }
      const bytes = this.encoded(samples)
      if (bytes.length === 0) return Effect.void
      const delta = Buffer.from(bytes).toString("base64")
      return this.terms.tell("response.output_audio.delta", { ...this.part(message), delta })
    })

  private encoded(samples: Int16Array): Uint8Array {
    const { sounds } = this.terms.settings
    if (sounds === "pcm") return s16ToBytes(samples)
    this.telephone ??= new Resampler(SPEECH_RATE_HZ, G711_RATE_HZ)
    return toG711(this.telephone.push(samples), sounds)
  }

  // ------------------------------------------------------------ items

  private readonly beginMessage: Effect.Effect<Message, SocketError> = Effect.gen(
    { self: this },
    function* (this: Answer) {
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
    return Effect.gen({ self: this }, function* (this: Answer) {
      const { history, tell } = this.terms
      this.output[index] = item
      const added = { response_id: this.id, output_index: index, item }
      yield* tell("response.output_item.added", added)
      if (history === undefined) return
      const previous = history.add(item, undefined, item.type === "message" ? spoken : undefined)
      const previous_item_id = typeof previous === "string" ? previous : null
      yield* tell("conversation.item.added", { previous_item_id, item })
    })
  }

  private endItem(index: number, item: Item): Effect.Effect<void, SocketError> {
    return Effect.gen({ self: this }, function* (this: Answer) {
      const { history, tell } = this.terms
      this.output[index] = item
      if (history !== undefined) {
        const previous_item_id = history.before(item.id)
        history.replace(item)
        yield* tell("conversation.item.done", { previous_item_id, item })
      }
      yield* tell("response.output_item.done", { response_id: this.id, output_index: index, item })
    })
  }

  /** The model has written all calls: they go out at once, whatever is still to be spoken. */
  private readonly endCalls: Effect.Effect<void, SocketError> = Effect.gen(
    { self: this },
    function* (this: Answer) {
      for (const [key, call] of this.calls) {
        this.calls.delete(key)
        // Clients parse the arguments as JSON.
        const args = call.arguments.trim() === "" ? "{}" : call.arguments
        const done = { ...this.about(call), call_id: call.callId, name: call.name, arguments: args }
        yield* this.terms.tell("response.function_call_arguments.done", done)
        yield* this.endItem(call.index, callItem(call.id, "completed", { ...call, arguments: args }))
      }
    },
  )

  // ------------------------------------------------------------ ends

  /** Writes the last events, once. */
  private finish(status: ResponseStatus, details: StatusDetails | null): Effect.Effect<void, SocketError> {
    return Effect.uninterruptible(
      Effect.gen({ self: this }, function* (this: Answer) {
        if (this.hasFinished) return
        this.hasFinished = true
        if (this.message !== undefined) yield* this.endMessage(this.message, status)
        for (const call of this.calls.values()) {
          yield* this.endItem(call.index, callItem(call.id, "incomplete", call))
        }
        yield* this.terms.tell("response.done", { response: this.object(status, details) })
      }),
    )
  }

  private endMessage(message: Message, status: ResponseStatus): Effect.Effect<void, SocketError> {
    return Effect.gen({ self: this }, function* (this: Answer) {
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
    return { response_id: this.id, item_id: id, output_index: index }
  }

  private part(message: Message) {
    return { ...this.about(message), content_index: 0 }
  }

  private object(status: ResponseStatus, details: StatusDetails | null): ResponseObject {
    const { conversationId, history, metadata, settings } = this.terms
    return {
      object: "realtime.response",
      id: this.id,
      status,
      status_details: details,
      output: this.output,
      conversation_id: history === undefined ? null : conversationId,
      output_modalities: [settings.modality],
      max_output_tokens: settings.maxOutputTokens,
      audio: { output: outputOf(settings) },
      metadata,
      usage: status === "in_progress" ? null : answerUsage(this.counts),
    }
  }
}
