// Who has the floor in a conversation: at most one answer at a time, which speech of the user ends. Starts answers, and cuts what was
// not heard out of the history.
import { Deferred, Effect, Fiber, type Scope } from "effect"
import type { SocketError } from "effect/socket/Socket"
import { SPEECH_RATE_HZ } from "#domain/audio/Audio.ts"
import { type AnswerCause, AnswerTimes } from "#domain/conversation/AnswerTimes.ts"
import type { ResponseCreate } from "#domain/conversation/ClientEvents.ts"
import type { ConversationMeters } from "#domain/conversation/ConversationMeters.ts"
import type { History } from "#domain/conversation/History.ts"
import { answerItem, type Item, itemOf, spokenItem } from "#domain/conversation/Items.ts"
import type { PlayClock } from "#domain/conversation/PlayClock.ts"
import type { ConversationSettings } from "#domain/conversation/Settings.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { InvalidRequest, type RateLimited } from "#domain/wire/Errors.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { memoryOf } from "#domain/wire/Json.ts"
import { noMemory } from "#domain/wire/RealtimeProtocol.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import type { Tell } from "../live/RealtimeItems.ts"
import { largeBytes, type SocketShare } from "../live/SocketShare.ts"
import type { SessionTrace } from "../tracing/SessionTrace.ts"
import type { Answer, AnswerServices } from "./Answer.ts"
import type { ConversationModels } from "./ConversationModels.ts"
import type { ConversationReport } from "./ConversationSessions.ts"
import type { Guard } from "./Guard.ts"
import { newAnswer } from "./NewAnswer.ts"
import { Preparation } from "./Preparation.ts"
import { answerIsActive, noActiveAnswer, noItem, type ProtocolError, tellError } from "./ProtocolError.ts"
import { Warming } from "./Warming.ts"

/** Answers outside of the conversation at a time. A guess. */
export const mostBeside = 4

export interface FloorTerms {
  readonly tell: Tell
  readonly newId: () => string
  readonly caller: Principal
  readonly scope: Scope.Scope
  readonly guard: Guard
  readonly models: ConversationModels
  readonly conversationId: string
  readonly history: History
  readonly settings: () => ConversationSettings
  readonly meters: ConversationMeters
  /** Undefined where no traces are exported. */
  readonly trace: SessionTrace | undefined
  /** Audio of the user so far, milliseconds. */
  readonly heardMs: () => number
  /** Counts an answer as a request of the caller. */
  readonly admit: Effect.Effect<void, RateLimited>
  readonly report: ConversationReport
  readonly share: SocketShare
}

export class Floor {
  private readonly terms: FloorTerms
  private readonly clock: PlayClock
  readonly preparation: Preparation
  readonly warming: Warming
  private active: Answer | undefined
  private readonly beside = new Set<Answer>()
  /** The answer in the conversation whose speech was sent last. */
  private lastSpoken: string | undefined
  /** Transcripts of the user's turns that are being made. */
  private readonly transcripts = new Map<string, Deferred.Deferred<string | undefined>>()
  /** Answers the newest turn that has ended, once it is understood. */
  private waiting: Fiber.Fiber<void, SocketError> | undefined
  /** Waits for the user to say something after an answer. */
  private silence: Fiber.Fiber<void, unknown> | undefined

  constructor(terms: FloorTerms, clock: PlayClock) {
    this.terms = terms
    this.clock = clock
    const { history, meters, settings } = terms
    this.warming = new Warming(terms)
    this.preparation = new Preparation({
      history,
      settings,
      meters,
      isFree: () => settings().turns?.creates === true && !this.isTaken && this.transcripts.size === 0,
      start: (items) =>
        Effect.gen({ self: this }, function* (this: Floor) {
          const times = new AnswerTimes({ atMs: yield* monotonicMs, silenceMs: undefined })
          const letGo = yield* this.hold({})
          const answer = yield* Effect.onError(this.made({}, items, times, true), () => Effect.sync(letGo))
          yield* this.begin(answer, letGo)
          return answer
        }),
    })
  }

  /** Whether an answer of the conversation was spoken. */
  get hasSpoken(): boolean {
    return this.lastSpoken !== undefined
  }

  // ------------------------------------------------------------ the user's turns

  /** The user speaks, or an answer begins: a silence of the user ends. */
  readonly stirred = (): void => {
    this.terms.report.hears()
    this.silence?.interruptUnsafe()
    this.silence = undefined
  }

  /** A turn of the user gets its place; the id of the item before it. */
  readonly heardTurn = (id: string): string | null => {
    this.stirred()
    this.transcripts.set(id, Deferred.makeUnsafe())
    const previous = this.terms.history.add(spokenItem(id, null), "own")
    return typeof previous === "string" ? previous : null
  }

  readonly transcribed = (id: string, transcript: string | undefined): void => {
    this.terms.history.replace(spokenItem(id, transcript ?? ""))
    const waiting = this.transcripts.get(id)
    this.transcripts.delete(id)
    if (waiting !== undefined) Deferred.doneUnsafe(waiting, Effect.succeed(transcript))
  }

  /** Words of the open turn that stay as they are. */
  readonly lasting = (id: string, text: string): void => {
    const { history, settings } = this.terms
    if (settings().turns?.creates !== true || this.isTaken) return
    this.warming.expect([...history.items, spokenItem(id, text)])
  }

  /** Completes when each turn so far has its transcript. */
  private readonly understood = Effect.suspend(() =>
    Effect.forEach([...this.transcripts.values()], (waiting) => Deferred.await(waiting), { discard: true }),
  )

  /** Stops the answer at speech of the user: the history keeps the words of it that were played. */
  readonly interrupt: Effect.Effect<void, SocketError> = Effect.gen({ self: this }, function* (this: Floor) {
    if (this.waiting !== undefined) yield* Fiber.interrupt(this.waiting)
    this.waiting = undefined
    yield* this.preparation.discard
    const { active } = this
    if (active !== undefined && !active.isOver) {
      this.active = undefined
      return yield* active.cancel("turn_detected")
    }
    const nowMs = yield* monotonicMs
    if (!this.clock.isPlaying(nowMs) || this.lastSpoken === undefined) return
    const spoken = this.terms.history.spoken(this.lastSpoken)
    const playedSamples = this.clock.playedSamples(nowMs)
    this.clock.stopped(nowMs)
    if (spoken !== undefined) this.cut(this.lastSpoken, playedSamples - spoken.startsAt)
  })

  /** A silence of this length has ended the user's turn: it is answered once it is understood, unless nothing was understood. */
  readonly answerTurn = (id: string, silenceMs: number): Effect.Effect<void, SocketError, AnswerServices> =>
    Effect.gen({ self: this }, function* (this: Floor) {
      if (this.isTaken) return
      const earlier = this.waiting
      const cause = { atMs: yield* monotonicMs, silenceMs }
      const transcript = this.transcripts.get(id)
      const start = Effect.gen({ self: this }, function* (this: Floor) {
        const text = transcript === undefined ? undefined : yield* Deferred.await(transcript)
        if (text === undefined || text.trim() === "") return yield* this.preparation.discard
        yield* this.understood
        // The turn before this one, which did not interrupt it, is answered first.
        if (earlier !== undefined) yield* Fiber.await(earlier)
        if (this.isTaken) return
        const prepared = this.preparation.take(id, text)
        if (prepared !== undefined && (yield* this.release(prepared, cause))) return
        yield* this.preparation.discard
        yield* this.start({}, cause)
      }).pipe(Effect.catch((error) => tellError(this.terms.tell, error, null)))
      const waiting = yield* Effect.forkIn(this.terms.guard(start), this.terms.scope, {
        startImmediately: true,
      })
      this.waiting = waiting
      waiting.addObserver(() => {
        if (this.waiting === waiting) this.waiting = undefined
      })
    })

  private get isTaken(): boolean {
    return this.active !== undefined && !this.active.isOver
  }

  /** Sends an answer that was prepared. False if it has failed meanwhile. */
  private release(answer: Answer, cause: AnswerCause): Effect.Effect<boolean, RateLimited, AnswerServices> {
    return Effect.gen({ self: this }, function* (this: Floor) {
      yield* Effect.onError(this.terms.admit, () => answer.discard)
      const { times } = answer
      times.confirmed(cause)
      times.understood(yield* monotonicMs)
      if (!answer.release()) return false
      yield* this.takeFloor(answer)
      return true
    })
  }

  /** Runs until no answer is being given. */
  readonly finished: Effect.Effect<void> = Effect.suspend(() => this.active?.ended ?? Effect.void)

  // ------------------------------------------------------------ answers

  /** `response.create` */
  readonly create = (given: ResponseCreate): Effect.Effect<void, EdgeError | ProtocolError, AnswerServices> =>
    Effect.gen({ self: this }, function* (this: Floor) {
      const isBeside = given.conversation === "none"
      if (isBeside && this.beside.size >= mostBeside) {
        return yield* new InvalidRequest({
          field: "response.conversation",
          problem: `must be at most ${mostBeside} answers outside of the conversation at a time`,
        })
      }
      // A turn that has ended is answered by itself, as soon as it is understood.
      if (!isBeside && this.waiting !== undefined) yield* Fiber.await(this.waiting)
      const { active } = this
      if (!isBeside && active !== undefined && !active.isOver) {
        if (!active.isDraining) return yield* answerIsActive(active.id)
        // All of it is written: what is left of its speech goes out at once.
        yield* active.flush
      }
      const cause = { atMs: yield* monotonicMs, silenceMs: undefined }
      yield* this.understood
      yield* this.preparation.discard
      yield* this.start(given, cause)
    })

  private readonly start = (
    given: ResponseCreate,
    cause: AnswerCause,
  ): Effect.Effect<void, EdgeError, AnswerServices> =>
    Effect.gen({ self: this }, function* (this: Floor) {
      const { admit } = this.terms
      const times = new AnswerTimes(cause)
      times.understood(yield* monotonicMs)
      const items = yield* this.inputOf(given)
      const letGo = yield* this.hold(given)
      const made = Effect.andThen(admit, this.made(given, items, times, false))
      const answer = yield* Effect.onError(made, () => Effect.sync(letGo))
      if (given.conversation !== "none") {
        this.active = answer
        yield* this.begin(answer, letGo)
        return yield* this.takeFloor(answer)
      }
      this.beside.add(answer)
      yield* this.begin(answer, () => {
        letGo()
        this.beside.delete(answer)
      })
    })

  /**
   * Holds what an answer has besides the conversation's items, with the session that it begins with, and those items: what is
   * deleted of them stays in memory until the answer has ended. The returned function lets all of it go.
   */
  private hold(given: ResponseCreate): Effect.Effect<() => void, InvalidRequest> {
    return Effect.suspend(() => {
      const { history, settings, share } = this.terms
      const { overflow } = history
      if (overflow !== undefined) return Effect.fail(overflow)
      const own = memoryOf(given)
      if (own > largeBytes && own > share.held.left) return Effect.fail(noMemory("response", share.held))
      const bytes = own + memoryOf(settings())
      share.held.keep(bytes)
      const ended = history.read()
      return Effect.succeed(() => {
        ended()
        share.held.giveBack(bytes)
      })
    })
  }

  /** Starts an answer. `ended` is called when it has ended. */
  private begin(answer: Answer, ended: () => void): Effect.Effect<void, never, AnswerServices> {
    const { scope } = this.terms
    return Effect.andThen(
      answer.start(scope),
      Effect.forkIn(Effect.andThen(answer.ended, Effect.sync(ended)), scope, { startImmediately: true }),
    )
  }

  private made(given: ResponseCreate, items: ReadonlyArray<Item>, times: AnswerTimes, isHeld: boolean) {
    return newAnswer({
      floor: this.terms,
      clock: this.clock,
      given,
      items,
      times,
      isHeld,
      onMessage: (id) => {
        this.lastSpoken = id
      },
    })
  }

  /** This is the answer that is being given. */
  private takeFloor(answer: Answer): Effect.Effect<void, never, AnswerServices> {
    return Effect.gen({ self: this }, function* (this: Floor) {
      this.active = answer
      this.stirred()
      this.terms.report.answers()
      const afterwards = Effect.andThen(answer.ended, this.awaitSilence(answer))
      this.silence = yield* Effect.forkIn(this.terms.guard(afterwards), this.terms.scope, {
        startImmediately: true,
      })
    })
  }

  /** After an answer has been played: where the user says nothing for the time of the session, the model says more. */
  private awaitSilence(answer: Answer): Effect.Effect<void, EdgeError | SocketError, AnswerServices> {
    return Effect.gen({ self: this }, function* (this: Floor) {
      const idleMs = this.terms.settings().turns?.idleTimeoutMs ?? null
      if (idleMs === null || this.active !== answer) return
      const fromMs = this.terms.heardMs()
      const playingMs = Math.max(0, this.clock.playedUntilMs - (yield* monotonicMs))
      yield* Effect.sleep(playingMs + idleMs)
      const { history, newId, tell } = this.terms
      const item = spokenItem(`item_${newId()}`, "")
      const audio = { audio_start_ms: Math.round(fromMs), audio_end_ms: Math.round(this.terms.heardMs()) }
      yield* tell("input_audio_buffer.timeout_triggered", { ...audio, item_id: item.id })
      const previous = history.add(item, "own")
      const previous_item_id = typeof previous === "string" ? previous : null
      yield* tell("input_audio_buffer.committed", { previous_item_id, item_id: item.id })
      yield* tell("conversation.item.added", { previous_item_id, item })
      yield* tell("conversation.item.done", { previous_item_id, item })
      // `start` ends the wait for a silence, which is this fiber.
      this.silence = undefined
      yield* this.start({}, { atMs: yield* monotonicMs, silenceMs: undefined })
    })
  }

  /** What the model reads: the conversation, or the answer's own input. */
  private inputOf({ input }: ResponseCreate): Effect.Effect<ReadonlyArray<Item>, InvalidRequest> {
    const { history, newId } = this.terms
    if (input === undefined || input === null) return Effect.succeed(history.items)
    return Effect.forEach(input, (given, index) => {
      if (given.type !== "item_reference") return Effect.succeed(itemOf(given, newId))
      const item = history.item(given.id)
      const problem = "is no item of this conversation"
      return item === undefined
        ? Effect.fail(new InvalidRequest({ field: `response.input[${index}].id`, problem }))
        : Effect.succeed(item)
    })
  }

  readonly cancel = (id: string | null | undefined): Effect.Effect<void, ProtocolError | SocketError> =>
    Effect.suspend((): Effect.Effect<void, ProtocolError | SocketError> => {
      const known = [...this.beside, ...(this.active === undefined ? [] : [this.active])]
      const answer = id ? known.find((one) => one.id === id) : this.active
      if (answer === undefined || answer.isOver) return Effect.fail(noActiveAnswer)
      return answer.cancel("client_cancelled")
    })

  /**
   * `conversation.item.truncate`: the client knows how much of an answer was played. A position beyond its end, or beyond that of an
   * earlier cut, is that end.
   */
  readonly truncate = (id: string, endMs: number): Effect.Effect<number, ProtocolError | SocketError> =>
    Effect.gen({ self: this }, function* (this: Floor) {
      const spoken = this.terms.history.spoken(id)
      if (spoken === undefined) return yield* noItem("truncate", id)
      const { active } = this
      if (active?.messageId === id && !active.isOver) yield* active.cancel("client_cancelled")
      const samples = spoken.cut(Math.round((endMs * SPEECH_RATE_HZ) / 1000))
      this.cut(id, samples)
      // A later answer may be playing already.
      if (id === this.lastSpoken) this.clock.stopped(yield* monotonicMs)
      return Math.floor((samples * 1000) / SPEECH_RATE_HZ)
    })

  /** Keeps the words of an answer that were heard in its first samples. */
  private cut(id: string, samples: number): void {
    const { history } = this.terms
    const spoken = history.spoken(id)
    const item = history.item(id)
    if (spoken === undefined || item?.type !== "message") return
    const transcript = spoken.heard(samples)
    const status = transcript === spoken.text ? item.status : "incomplete"
    history.replace(answerItem(id, status, [{ type: "output_audio", transcript }]))
  }
}
