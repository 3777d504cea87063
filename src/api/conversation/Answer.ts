// One answer of a conversation, from `response.created` to `response.done`: generates, speaks, and ends once, however it ends.
// AnswerItems writes the events of its items.
//
// An answer may be prepared before it is known that the user has finished: then it is held. It generates, and its first clause is
// spoken, but nothing of it is sent, joins the history or is charged before it is released.
import { Cause, Clock, Effect, Fiber, type Scope } from "effect"
import type { SocketError } from "effect/socket/Socket"
import {
  answerUsage,
  noCounts,
  type ResponseObject,
  type ResponseStatus,
  type StatusDetails,
} from "#domain/conversation/Answers.ts"
import type { AnswerStep, AnswerTimes } from "#domain/conversation/AnswerTimes.ts"
import { Clauses } from "#domain/conversation/Clauses.ts"
import { type ConversationSettings, outputOf } from "#domain/conversation/Settings.ts"
import { monotonicMs, monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { Signal } from "#domain/queues/Signal.ts"
import type { ChatRequest } from "#domain/wire/Chat.ts"
import { type EdgeError, errorType } from "#domain/wire/Failures.ts"
import { detailOf } from "#http/ErrorBody.ts"
import { CurrentRequest, RequestContext } from "#http/RequestContext.ts"
import type { TracedWork } from "#http/TracedWork.ts"
import { reportFailure } from "#services/AnswerFailures.ts"
import { beginChat } from "#services/chat/Chat.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import { type AnswerAccountTerms, accountFor } from "./AnswerAccount.ts"
import { AnswerItems, type AnswerItemsTerms, type Written, writtenOf } from "./AnswerItems.ts"
import type { ConversationReport } from "./ConversationSessions.ts"
import type { VoiceServices } from "./Voice.ts"

export interface AnswerTerms extends AnswerItemsTerms, AnswerAccountTerms {
  readonly caller: Principal
  readonly conversationId: string
  readonly settings: AnswerItemsTerms["settings"] &
    Pick<ConversationSettings, "modality" | "maxOutputTokens" | "voice" | "speed" | "pacing">
  readonly metadata: Readonly<Record<string, string>> | null
  readonly report: Pick<ConversationReport, "answered" | "writes">
  /** Whether it waits for its release. */
  readonly isHeld: boolean
}

/** Makes what the model reads. Shorter prompts follow where one does not fit into its context. */
export type Prompts = ReadonlyArray<() => ChatRequest>

export type AnswerServices = Effect.Services<ReturnType<typeof beginChat>> | VoiceServices

export class Answer {
  readonly id: string
  private readonly terms: AnswerTerms
  /** Empty once the model reads one of them: they hold items that may be deleted. */
  private prompts: Prompts
  private readonly items: AnswerItems
  private readonly clauses = new Clauses()
  private readonly released = new Signal()
  private isReleased: boolean
  private isCreated = false
  private hasText = false
  private readonly written: Array<Written> = []
  private readonly news = new Signal()
  private readonly work: TracedWork | undefined
  private counts = noCounts
  private hasWritten = false
  private hasFinished = false
  private fiber: Fiber.Fiber<void, SocketError> | undefined

  constructor(terms: AnswerTerms, prompts: Prompts) {
    this.terms = terms
    this.prompts = prompts
    this.id = `resp_${terms.newId()}`
    this.items = new AnswerItems(this.id, terms)
    this.work = terms.trace?.work.begin("answer")
    this.isReleased = !terms.isHeld
    if (this.isReleased) this.released.set()
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

  get isOver(): boolean {
    return this.hasFinished
  }

  get times(): AnswerTimes {
    return this.terms.times
  }

  /** From now on it is sent. False if it cannot be: it failed while it was held. */
  release(): boolean {
    if (this.hasFinished) return false
    this.isReleased = true
    this.released.set()
    return true
  }

  /** Ends an answer that is held, without an event. */
  readonly discard: Effect.Effect<void> = Effect.suspend(() => {
    this.hasFinished = true
    return this.fiber === undefined ? Effect.void : Fiber.interrupt(this.fiber)
  })

  /** The model has written everything; what is left is to be spoken. */
  get isDraining(): boolean {
    return this.hasWritten
  }

  /** Sends the rest of its audio at once, and ends. */
  hurry(): void {
    this.terms.voice?.hurry()
  }

  /** Ends it here. Its last events are sent before this completes. */
  cancel(reason: "turn_detected" | "client_cancelled"): Effect.Effect<void, SocketError> {
    return Effect.gen({ self: this }, function* (this: Answer) {
      if (this.hasFinished) return
      if (!this.isReleased) return yield* this.discard
      if (this.fiber !== undefined) yield* Fiber.interrupt(this.fiber)
      if (reason === "turn_detected") this.terms.clock.stopped(yield* monotonicMs)
      yield* this.finish("cancelled", { type: "cancelled", reason })
    })
  }

  private readonly life: Effect.Effect<void, SocketError, AnswerServices> = Effect.gen(
    { self: this },
    function* (this: Answer) {
      if (this.isReleased) yield* this.tellCreated
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
      Effect.sync(() => this.work?.notes ?? new RequestContext(undefined, this.terms.newId)),
    ),
  )

  private readonly tellCreated: Effect.Effect<void, SocketError> = Effect.suspend(() => {
    if (this.isCreated) return Effect.void
    this.isCreated = true
    return this.terms.tell("response.created", { response: this.object("in_progress", null) })
  })

  // ------------------------------------------------------------ writing

  private readonly answer = Effect.gen({ self: this }, function* (this: Answer) {
    const { voice } = this.terms
    const write = Effect.gen({ self: this }, function* (this: Answer) {
      const ended = this.terms.report.writes()
      const finish = yield* Effect.ensuring(this.generate, Effect.sync(ended))
      yield* this.items.endWriting
      this.hasWritten = true
      return finish
    })
    if (voice === undefined) return yield* write
    const speak = voice.speak(this.items)
    const [finish] = yield* Effect.all([write, speak], { concurrency: "unbounded" })
    return finish
  })

  /** Generates with the longest prompt that fits. Returns why the model stopped. */
  private readonly generate = Effect.gen({ self: this }, function* (this: Answer) {
    const { caller } = this.terms
    const [first, ...shorter] = this.prompts
    this.prompts = []
    const { isHeld, times, voice } = this.terms
    const clock = yield* Clock.Clock
    const reached = (step: AnswerStep) => times.reached(step, monotonicMsOf(clock))
    const terms = isHeld ? { chargedIf: () => this.isReleased && this.counts.outputTokens > 0 } : {}
    const begin = (prompt: () => ChatRequest) =>
      Effect.suspend(() => beginChat(caller, prompt(), "stream", { terms }))
    reached("asked")
    let begun = begin(first!)
    for (const prompt of shorter) {
      const next = begin(prompt)
      begun = Effect.catchTag(begun, "PromptTooLong", () => next)
    }
    const { generation } = yield* begun
    const { cachedTokens, imageTokens = 0, promptTokens } = generation.started
    this.counts = { ...this.counts, cachedTokens, imageTokens, inputTokens: promptTokens }
    // The model would only slow the voice down, on the same processor, while its first clause is waited for.
    let hasPaused = false
    const pauseOnce = () => {
      if (hasPaused || voice === undefined) return
      hasPaused = true
      generation.flow.pause()
      voice.whenSounding(generation.flow.resume)
    }
    generation.read({
      take: (delta) => {
        this.counts = { ...this.counts, outputTokens: delta.completionTokens }
        const written = writtenOf(delta)
        if (written === undefined) return
        reached("firstToken")
        if (written.is === "text" && this.say(written.text)) {
          reached("firstClause")
          pauseOnce()
        }
        this.written.push(written)
        this.news.set()
      },
    })
    let finish: string | undefined
    const ended = Effect.map(generation.end, (end) => {
      finish = end.finishReason
      const rest = this.clauses.end()
      if (rest.trim() !== "") {
        voice?.say(rest)
        reached("firstClause")
      }
      voice?.end()
      this.counts = { ...this.counts, outputTokens: end.completionTokens }
      this.news.set()
    })
    const take = Effect.gen({ self: this }, function* (this: Answer) {
      yield* this.released.wait
      yield* this.tellCreated
      for (;;) {
        const next = this.written.shift()
        if (next !== undefined) yield* this.items.take(next)
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

  /** Gives the voice what the model has written. True if that completed a clause. */
  private say(text: string): boolean {
    const { voice } = this.terms
    // White space before a call is no answer.
    if (voice === undefined || (!this.hasText && text.trim() === "")) return false
    this.hasText = true
    const clauses = this.clauses.push(text)
    for (const clause of clauses) voice.say(clause)
    return clauses.length > 0
  }

  // ------------------------------------------------------------ ends

  /** Writes the last events, once. */
  private finish(status: ResponseStatus, details: StatusDetails | null): Effect.Effect<void, SocketError> {
    return Effect.uninterruptible(
      Effect.gen({ self: this }, function* (this: Answer) {
        if (this.hasFinished) return
        this.hasFinished = true
        if (!this.isReleased) return
        const { inputTokens, outputTokens } = this.counts
        this.terms.report.answered(this.items.audioMs, outputTokens === 0 ? 0 : inputTokens)
        yield* this.tellCreated
        yield* this.items.endAll(status)
        yield* this.terms.tell("response.done", { response: this.object(status, details) })
        yield* accountFor(this.terms, { id: this.id, status, counts: this.counts, work: this.work })
      }),
    )
  }

  private object(status: ResponseStatus, details: StatusDetails | null): ResponseObject {
    const { conversationId, history, metadata, settings } = this.terms
    return {
      object: "realtime.response",
      id: this.id,
      status,
      status_details: details,
      output: this.items.output,
      conversation_id: history === undefined ? null : conversationId,
      output_modalities: [settings.modality],
      max_output_tokens: settings.maxOutputTokens,
      audio: { output: outputOf(settings) },
      metadata,
      usage: status === "in_progress" ? null : answerUsage({ ...this.counts, audioMs: this.items.audioMs }),
    }
  }
}
