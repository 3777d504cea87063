// Carries out one answer of a conversation: tells AnswerGiving what happens, and does what it decides. The model writes and the voice speaks
// in fibers of their own; what is sent, and what the history is told, goes through one queue, in the order in which it was decided, and is
// never interrupted.
import { Cause, Clock, Context, Effect, Exit, Fiber, Scope } from "effect"
import type { SocketError } from "effect/socket/Socket"
import { g711RateHz, toG711 } from "#audio/G711.ts"
import { Resampler } from "#audio/Resampler.ts"
import { s16ToBytes, speechRateHz } from "#domain/audio/Audio.ts"
import {
  type AnswerCommand,
  type AnswerError,
  type AnswerEvent,
  type AnswerState,
  type AnswerTerms as Decided,
  decide,
  isCharged,
  phaseOf,
  unbegun,
  type Written,
} from "#domain/conversation/AnswerGiving.ts"
import type { AnswerTimes } from "#domain/conversation/AnswerTimes.ts"
import type { History } from "#domain/conversation/History.ts"
import type { PlayClock } from "#domain/conversation/PlayClock.ts"
import { type ConversationSettings, outputOf } from "#domain/conversation/Settings.ts"
import { monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { Signal } from "#domain/queues/Signal.ts"
import type { ChatRequest } from "#domain/wire/Chat.ts"
import { type EdgeError, errorType } from "#domain/wire/Failures.ts"
import type { TextDelta } from "#engines/protocol/Text.ts"
import { detailOf } from "#http/ErrorBody.ts"
import { CurrentRequest, RequestContext } from "#http/RequestContext.ts"
import type { TracedWork } from "#http/TracedWork.ts"
import { reportFailure } from "#services/AnswerFailures.ts"
import { beginChat } from "#services/chat/Chat.ts"
import type { Generation } from "#services/Generation.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import { type AnswerAccountTerms, accountFor } from "./AnswerAccount.ts"
import type { ConversationReport } from "./ConversationSessions.ts"
import type { Playout } from "./Playout.ts"
import type { Voice, VoiceServices } from "./Voice.ts"

export interface AnswerTerms extends AnswerAccountTerms {
  readonly newId: () => string
  readonly caller: Principal
  readonly conversationId: string
  /** The conversation that its items join; undefined for an answer outside of it. */
  readonly history: History | undefined
  readonly clock: PlayClock
  readonly settings: Pick<
    ConversationSettings,
    "maxOutputTokens" | "modality" | "pacing" | "sounds" | "speed" | "voice"
  >
  readonly metadata: Readonly<Record<string, string>> | null
  readonly report: Pick<ConversationReport, "answered" | "writes">
  /** Plays its audio; undefined: its audio is in events. */
  readonly playout: Playout | undefined
  /** Undefined: the answer is written. */
  readonly voice: Voice | undefined
  readonly isHeld: boolean
  /** Called with the id of its message, where that is spoken and joins the conversation. */
  readonly onMessage: (id: string) => void
}

/** Makes what the model reads. Shorter prompts follow where one does not fit into its context. */
export type Prompts = ReadonlyArray<() => ChatRequest>

export type AnswerServices = Effect.Services<ReturnType<typeof beginChat>> | VoiceServices

const decidedOf = (terms: AnswerTerms): Decided => {
  const { conversationId, history, isHeld, metadata, newId, settings, voice } = terms
  return {
    id: `resp_${newId()}`,
    messageId: `item_${newId()}`,
    isBeside: history === undefined,
    speaks: voice !== undefined,
    isPaced: settings.pacing === "realtime",
    isHeld,
    about: {
      conversation_id: history === undefined ? null : conversationId,
      output_modalities: [settings.modality],
      max_output_tokens: settings.maxOutputTokens,
      audio: { output: outputOf(settings) },
      metadata,
    },
  }
}

const internalError: AnswerError = {
  type: "server_error",
  code: "internal_error",
  message: "Internal server error",
}

export class Answer {
  readonly #terms: AnswerTerms
  /** Empty once the model reads one of them: they hold items that may be deleted. */
  #prompts: Prompts
  #state: AnswerState
  readonly #events: Array<AnswerEvent> = []
  #isDeciding = false
  /** Commands that go one after the other. */
  readonly #queue: Array<Effect.Effect<void, SocketError>> = []
  readonly #news = new Signal()
  /** Set while its audio may be sent. */
  readonly #mayPlay = new Signal()
  /** Speech of the user has ended it: no more of its audio is sent. */
  #isSilenced = false
  /** Audio that was decided before the cut and not sent any more. */
  #overtakenSamples = 0
  #isAtEnd = false
  readonly #work: TracedWork | undefined
  #context = Context.empty()
  #flow: Generation["flow"] | undefined
  #timer: Fiber.Fiber<void> | undefined
  #telephone: Resampler | undefined
  /** The model and the voice, and the scope of what they have begun. */
  readonly #workers: Array<Fiber.Fiber<void>> = []
  #scope: Scope.Closeable | undefined
  #fiber: Fiber.Fiber<void, SocketError> | undefined

  constructor(terms: AnswerTerms, prompts: Prompts) {
    this.#terms = terms
    this.#prompts = prompts
    this.#state = unbegun(decidedOf(terms))
    this.#work = terms.trace?.work.begin("answer")
    this.#mayPlay.set()
  }

  get id(): string {
    return this.#state.terms.id
  }

  get phase(): "writing" | "draining" | "over" {
    return phaseOf(this.#state)
  }

  get times(): AnswerTimes {
    return this.#terms.times
  }

  /** Starts it; its events follow. */
  start(scope: Scope.Scope): Effect.Effect<void, never, AnswerServices> {
    return Effect.gen({ self: this }, function* (this: Answer) {
      this.#fiber = yield* Effect.forkIn(this.#life, scope, { startImmediately: true })
    })
  }

  /** Completes when its last event was sent. */
  get ended(): Effect.Effect<void> {
    return Effect.suspend(() =>
      this.#fiber === undefined ? Effect.void : Effect.asVoid(Fiber.await(this.#fiber)),
    )
  }

  /** Sends no audio until it goes on, or is over: then what waits for its last event must not wait. */
  holdAudio(): void {
    if (this.phase !== "over") this.#mayPlay.clear()
  }

  goOn(): void {
    this.#mayPlay.set()
  }

  /** Something has happened to it. */
  happened(event: AnswerEvent): void {
    this.#events.push(event)
    if (this.#isDeciding) return
    this.#isDeciding = true
    try {
      for (let next = this.#events.shift(); next !== undefined; next = this.#events.shift()) {
        const { clock } = this.#terms
        const nowMs = this.#nowMs
        const [state, commands] = decide(this.#state, next, {
          nowMs,
          sentSamples: clock.sentSamples,
          playedSamples: clock.playedSamples(nowMs),
          playedUntilMs: clock.playedUntilMs,
        })
        this.#state = state
        for (const command of commands) this.#carryOut(command, nowMs)
      }
    } catch (defect) {
      // It ends the answer, and not the engine that has called.
      this.#enqueue(Effect.die(defect))
    } finally {
      this.#isDeciding = false
      if (this.phase === "over") this.goOn()
    }
  }

  get #nowMs(): number {
    return monotonicMsOf(Context.get(this.#context, Clock.Clock))
  }

  readonly #life: Effect.Effect<void, SocketError, AnswerServices> = Effect.gen(
    { self: this },
    function* (this: Answer) {
      const { voice } = this.#terms
      this.#context = yield* Effect.context<never>()
      const scope = yield* Scope.fork(yield* Effect.scope)
      this.#scope = scope
      const apart = (
        work: Effect.Effect<void, EdgeError, AnswerServices | Scope.Scope>,
        is: "failed" | "voice failed",
      ) =>
        Effect.map(
          Effect.forkIn(Scope.provide(this.#telling(work, is), scope), scope, { startImmediately: true }),
          (fiber) => this.#workers.push(fiber),
        )
      this.happened({ is: "began" })
      // The model is asked after `response.created`, which it would delay.
      yield* this.#sendQueued
      yield* apart(this.#write, "failed")
      if (voice !== undefined) yield* apart(voice.run(this), "voice failed")
      yield* this.#untilEnd
    },
  ).pipe(
    Effect.catchCauseIf(Cause.hasDies, (cause) => {
      this.happened({ is: "failed", error: internalError })
      return Effect.andThen(reportFailure(cause, "/v1/realtime"), this.#untilEnd)
    }),
    Effect.scoped,
    Effect.ensuring(Effect.sync(() => this.#timer?.interruptUnsafe())),
    // Its times count from its own beginning, not from the socket's.
    Effect.provideServiceEffect(
      CurrentRequest,
      Effect.sync(() => this.#work?.notes ?? new RequestContext(undefined, this.#terms.newId)),
    ),
  )

  /** Carries out what is queued. */
  get #sendQueued(): Effect.Effect<void, SocketError> {
    return Effect.gen({ self: this }, function* (this: Answer) {
      for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) yield* next
    })
  }

  /** Carries out what is queued, until the last command. */
  get #untilEnd(): Effect.Effect<void, SocketError> {
    return Effect.gen({ self: this }, function* (this: Answer) {
      for (;;) {
        yield* this.#sendQueued
        if (this.#isAtEnd) return
        this.#news.clear()
        yield* this.#news.wait
      }
    })
  }

  /** Work whose failure is an event. */
  #telling<A, R>(
    work: Effect.Effect<A, EdgeError, R>,
    is: "failed" | "voice failed",
  ): Effect.Effect<void, never, R> {
    const failed = (cause: Parameters<typeof reportFailure>[0], error: AnswerError) =>
      Effect.andThen(
        reportFailure(cause, "/v1/realtime"),
        Effect.sync(() => this.happened({ is, error })),
      )
    return Effect.asVoid(work).pipe(
      Effect.catch((error: EdgeError) =>
        failed(error, { type: errorType(error), code: error._tag, message: detailOf(error) }),
      ),
      Effect.catchCauseIf(Cause.hasDies, (cause) => failed(cause, internalError)),
    )
  }

  // ------------------------------------------------------------ what is done

  #carryOut(command: AnswerCommand, nowMs: number): void {
    const { clock, history, onMessage, report, tell, times, voice } = this.#terms
    switch (command.do) {
      case "send": {
        const { type, ...message } = command.message
        if (type === "response.output_text.delta") times.reached("firstSent", nowMs)
        return this.#enqueue(tell(type, message))
      }
      case "send audio":
        return this.#enqueue(
          Effect.andThen(
            this.#mayPlay.wait,
            Effect.suspend(() => this.#sendAudio(command)),
          ),
        )
      case "call":
        return this.#enqueue(Effect.sync(() => this.happened({ is: "free" })))
      case "join":
        return this.#enqueue(
          Effect.suspend(() => {
            const { item, spoken } = command
            const previous = history?.add(item, "own", spoken === undefined ? {} : { spoken })
            return tell("conversation.item.added", {
              previous_item_id: typeof previous === "string" ? previous : null,
              item,
            })
          }),
        )
      case "complete":
        return this.#enqueue(
          Effect.suspend(() => {
            const { item, spoken: decided } = command
            const overtaken = this.#overtakenSamples
            const spoken = overtaken === 0 ? decided : decided?.cut(decided.samples - overtaken)
            const previous_item_id = history?.before(item.id) ?? null
            history?.replace(item, spoken)
            return tell("conversation.item.done", { previous_item_id, item })
          }),
        )
      case "message began":
        return onMessage(command.itemId)
      case "speak":
        times.reached("firstClause", nowMs)
        return voice?.speak(command.piece, command.text)
      case "play": {
        const { samples } = command
        clock.sent(samples.length, nowMs, samples)
        return times.reached("firstSent", nowMs)
      }
      case "await":
        return this.#await(command)
      case "pause model":
        return this.#flow?.pause()
      case "resume model":
        return this.#flow?.resume()
      case "play no more":
        this.#isSilenced = true
        return clock.stopped(nowMs)
      case "stop":
        for (const fiber of [this.#timer, ...this.#workers]) fiber?.interruptUnsafe()
        return this.#enqueue(
          Effect.suspend(() =>
            this.#scope === undefined ? Effect.void : Scope.close(this.#scope, Exit.void),
          ),
        )
      case "account": {
        const { counts, status } = command
        report.answered(counts.audioMs, counts.outputTokens === 0 ? 0 : counts.inputTokens)
        return this.#enqueue(accountFor(this.#terms, { id: this.id, status, counts, work: this.#work }))
      }
      case "end":
        this.#enqueue(Effect.sync(() => this.#terms.playout?.complete(this.id)))
        this.#isAtEnd = true
        this.#news.set()
    }
  }

  #enqueue(work: Effect.Effect<void, SocketError>): void {
    this.#queue.push(work)
    this.#news.set()
  }

  #sendAudio({
    part,
    piece,
    samples,
  }: Extract<AnswerCommand, { readonly do: "send audio" }>): Effect.Effect<void, SocketError> {
    if (this.#isSilenced) {
      this.#overtakenSamples += samples.length
      return Effect.void
    }
    const { playout, tell, voice } = this.#terms
    voice?.delivered(piece, samples.length)
    if (playout !== undefined) return playout.play(this.id, samples)
    const bytes = this.#encoded(samples)
    const delta = Buffer.from(bytes).toString("base64")
    return bytes.length === 0 ? Effect.void : tell("response.output_audio.delta", { ...part, delta })
  }

  #encoded(samples: Int16Array): Uint8Array {
    const { sounds } = this.#terms.settings
    if (sounds === "pcm") return s16ToBytes(samples)
    this.#telephone ??= new Resampler(speechRateHz, g711RateHz)
    return toG711(this.#telephone.push(samples), sounds)
  }

  #await({ ms }: Extract<AnswerCommand, { readonly do: "await" }>): void {
    const due = Effect.sync(() => this.happened({ is: "due" }))
    this.#timer = Effect.runForkWith(this.#context)(Effect.delay(due, ms))
  }

  // ------------------------------------------------------------ the model and the voice

  /** The model writes, with the longest prompt that fits. */
  readonly #write: Effect.Effect<void, EdgeError, AnswerServices | Scope.Scope> = Effect.suspend(() => {
    const ended = this.#terms.report.writes()
    return Effect.ensuring(this.#generate, Effect.sync(ended))
  })

  readonly #generate: Effect.Effect<void, EdgeError, AnswerServices | Scope.Scope> = Effect.gen(
    { self: this },
    function* (this: Answer) {
      const { caller, isHeld, times } = this.#terms
      const [first, ...shorter] = this.#prompts
      this.#prompts = []
      const terms = isHeld ? { chargedIf: () => isCharged(this.#state) } : {}
      const begin = (prompt: () => ChatRequest) =>
        Effect.suspend(() => beginChat(caller, prompt(), "stream", { terms }))
      times.reached("asked", this.#nowMs)
      let begun = begin(first!)
      for (const prompt of shorter) {
        const next = begin(prompt)
        begun = Effect.catchTag(begun, "PromptTooLong", () => next)
      }
      const { generation } = yield* begun
      this.#flow = generation.flow
      const { cachedTokens, imageTokens = 0, promptTokens } = generation.started
      this.happened({ is: "prompt read", counts: { cachedTokens, imageTokens, inputTokens: promptTokens } })
      generation.read({
        take: (delta) => {
          const written = this.#writtenOf(delta)
          if (written !== undefined) times.reached("firstToken", this.#nowMs)
          this.happened({ is: "wrote", written, outputTokens: delta.completionTokens })
        },
      })
      const { completionTokens, finishReason } = yield* generation.end
      const isCut = finishReason === "length"
      this.happened({ is: "all written", outputTokens: completionTokens, isCut })
    },
  )

  #writtenOf({ detail, text }: TextDelta): Written | undefined {
    const part = detail?.part
    if (part === undefined) return text === "" ? undefined : { is: "text", text }
    const { newId } = this.#terms
    if (part.kind === "call") {
      const { call, name } = part
      return { is: "call", call, name, id: `item_${newId()}`, callId: `call_${newId()}` }
    }
    return part.kind === "arguments" ? { is: "arguments", call: part.call, text } : undefined
  }

  /** The voice has made audio. */
  readonly sounded = (
    samples: Int16Array,
    words: Extract<AnswerEvent, { readonly is: "sounded" }>["words"],
  ): void => {
    this.#terms.times.reached("firstSamples", this.#nowMs)
    this.happened({ is: "sounded", samples, words })
  }

  readonly pieceSpoken = (): void => this.happened({ is: "piece spoken" })
}
