// Who has the floor in a conversation: at most one answer at a time, which speech of the user ends. Starts answers, and cuts what was
// not heard out of the history.
import { Deferred, Effect, Fiber, type Scope } from "effect"
import type { SocketError } from "effect/socket/Socket"
import { SPEECH_RATE_HZ } from "#domain/audio/Audio.ts"
import type { ResponseCreate } from "#domain/conversation/ClientEvents.ts"
import type { History } from "#domain/conversation/History.ts"
import { answerItem, type Item, itemOf, spokenItem } from "#domain/conversation/Items.ts"
import type { PlayClock } from "#domain/conversation/PlayClock.ts"
import { type ConversationSettings, type Truncation, voiceNameOf } from "#domain/conversation/Settings.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { InvalidRequest, type RateLimited } from "#domain/wire/Errors.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import type { Tell } from "../live/RealtimeItems.ts"
import { Answer, type AnswerServices } from "./Answer.ts"
import { type ConversationModels, presetOf } from "./ConversationModels.ts"
import { chatRequestOf } from "./Prompt.ts"
import { answerIsActive, noActiveAnswer, noItem, type ProtocolError } from "./ProtocolError.ts"
import { Voice } from "./Voice.ts"

/** Answers outside of the conversation at a time. A guess. */
export const mostBeside = 4

/** Tokens of an answer of which the session says `inf`. */
const unboundedTokens = 4_096

/** How often a prompt that does not fit is made shorter. */
const mostCuts = 6

export interface FloorTerms {
  readonly tell: Tell
  readonly newId: () => string
  readonly caller: Principal
  readonly scope: Scope.Scope
  readonly models: ConversationModels
  readonly conversationId: string
  readonly history: History
  readonly settings: () => ConversationSettings
  /** Audio of the user so far, milliseconds. */
  readonly heardMs: () => number
  /** Counts an answer as a request of the caller. */
  readonly admit: Effect.Effect<void, RateLimited>
}

/** The newest items: a share of all. An output without its call is left out. */
const newest = (items: ReadonlyArray<Item>, share: number): ReadonlyArray<Item> => {
  const kept = items.slice(-Math.max(1, Math.floor(items.length * share)))
  const first = kept.findIndex(({ type }) => type !== "function_call_output")
  return first < 0 ? kept : kept.slice(first)
}

/** Shares of the items that are tried in this order. */
const sharesOf = (truncation: Truncation): ReadonlyArray<number> => {
  if (truncation === "disabled") return [1]
  const ratio = truncation === "auto" ? 0.7 : Math.min(0.95, Math.max(0.1, truncation.retention_ratio))
  return Array.from({ length: mostCuts }, (_, cut) => ratio ** ((cut * (cut + 1)) / 2))
}

export class Floor {
  private readonly terms: FloorTerms
  private readonly clock: PlayClock
  private active: Answer | undefined
  private readonly beside = new Set<Answer>()
  /** The answer in the conversation whose speech was sent last. */
  private lastSpoken: string | undefined
  /** Transcripts of the user's turns that are being made. */
  private readonly transcripts = new Map<string, Deferred.Deferred<string | undefined>>()
  private waiting: Fiber.Fiber<void, SocketError> | undefined
  /** Waits for the user to say something after an answer. */
  private silence: Fiber.Fiber<void, unknown> | undefined

  constructor(terms: FloorTerms, clock: PlayClock) {
    this.terms = terms
    this.clock = clock
  }

  /** Whether an answer of the conversation was spoken. */
  get hasSpoken(): boolean {
    return this.lastSpoken !== undefined
  }

  // ------------------------------------------------------------ the user's turns

  /** The user speaks, or an answer begins: a silence of the user ends. */
  readonly stirred = (): void => {
    this.silence?.interruptUnsafe()
    this.silence = undefined
  }

  /** A turn of the user gets its place; the id of the item before it. */
  readonly heardTurn = (id: string): string | null => {
    this.stirred()
    this.transcripts.set(id, Deferred.makeUnsafe())
    const previous = this.terms.history.add(spokenItem(id, null))
    return typeof previous === "string" ? previous : null
  }

  readonly transcribed = (id: string, transcript: string | undefined): void => {
    this.terms.history.replace(spokenItem(id, transcript ?? ""))
    const waiting = this.transcripts.get(id)
    this.transcripts.delete(id)
    if (waiting !== undefined) Deferred.doneUnsafe(waiting, Effect.succeed(transcript))
  }

  /** Completes when each turn so far has its transcript. */
  private readonly understood = Effect.suspend(() =>
    Effect.forEach([...this.transcripts.values()], (waiting) => Deferred.await(waiting), { discard: true }),
  )

  /** Stops the answer at speech of the user: the history keeps the words of it that were played. */
  readonly interrupt: Effect.Effect<void, SocketError> = Effect.gen({ self: this }, function* (this: Floor) {
    if (this.waiting !== undefined) yield* Fiber.interrupt(this.waiting)
    this.waiting = undefined
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

  /** A silence has ended the user's turn: it is answered once it is understood, unless nothing was understood. */
  readonly answerTurn = (id: string): Effect.Effect<void, SocketError, AnswerServices> =>
    Effect.gen({ self: this }, function* (this: Floor) {
      if (this.active !== undefined && !this.active.isOver) return
      const transcript = this.transcripts.get(id)
      const start = Effect.gen({ self: this }, function* (this: Floor) {
        const text = transcript === undefined ? undefined : yield* Deferred.await(transcript)
        if (text === undefined || text.trim() === "") return
        yield* this.understood
        yield* Effect.ignore(this.start({}))
      })
      this.waiting = yield* Effect.forkIn(start, this.terms.scope, { startImmediately: true })
    })

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
      const { active } = this
      if (!isBeside && active !== undefined && !active.isOver) {
        if (!active.isDraining) return yield* answerIsActive(active.id)
        // All of it is written: what is left of its speech goes out at once.
        yield* active.flush
      }
      yield* this.understood
      yield* this.start(given)
    })

  private readonly start = (given: ResponseCreate): Effect.Effect<void, EdgeError, AnswerServices> =>
    Effect.gen({ self: this }, function* (this: Floor) {
      const { admit, caller, conversationId, history, models, newId, scope, tell } = this.terms
      const isBeside = given.conversation === "none"
      const session = this.terms.settings()
      const asked = given.audio?.output?.voice
      const settings = {
        ...session,
        modality: given.output_modalities?.[0] ?? session.modality,
        maxOutputTokens: given.max_output_tokens ?? session.maxOutputTokens,
        voice: asked ? voiceNameOf(asked) : session.voice,
      }
      const items = yield* this.inputOf(given)
      yield* admit
      const promptOf = (share: number) =>
        chatRequestOf({
          model: models.writes.entry.id,
          instructions: given.instructions ?? session.instructions,
          items: newest(items, share),
          tools: given.tools ?? session.tools,
          toolChoice: given.tool_choice ?? session.toolChoice,
          maxTokens: settings.maxOutputTokens === "inf" ? unboundedTokens : settings.maxOutputTokens,
        })
      const voice = settings.modality === "text" ? undefined : yield* this.voiceOf(settings)
      const answer = new Answer({
        tell,
        newId,
        caller,
        history: isBeside ? undefined : history,
        conversationId,
        clock: this.clock,
        settings,
        metadata: given.metadata ?? null,
        prompts: sharesOf(session.truncation).map(promptOf),
        voice,
        onMessage: (id) => {
          if (!isBeside && voice !== undefined) this.lastSpoken = id
        },
      })
      if (isBeside) this.beside.add(answer)
      else {
        this.active = answer
        this.stirred()
      }
      yield* answer.start(scope)
      if (isBeside) {
        const forget = Effect.andThen(
          answer.ended,
          Effect.sync(() => this.beside.delete(answer)),
        )
        yield* Effect.forkIn(forget, scope, { startImmediately: true })
        return
      }
      const afterwards = Effect.andThen(answer.ended, this.awaitSilence(answer))
      this.silence = yield* Effect.forkIn(afterwards, scope, { startImmediately: true })
    })

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
      const previous = history.add(item)
      const previous_item_id = typeof previous === "string" ? previous : null
      yield* tell("input_audio_buffer.committed", { previous_item_id, item_id: item.id })
      yield* tell("conversation.item.added", { previous_item_id, item })
      yield* tell("conversation.item.done", { previous_item_id, item })
      // `start` ends the wait for a silence, which is this fiber.
      this.silence = undefined
      yield* this.start({})
    })
  }

  private voiceOf(settings: ConversationSettings) {
    const { caller, models } = this.terms
    const { entry } = models.speaks
    return Effect.map(
      presetOf(models.speaks, settings.voice),
      (preset) =>
        new Voice({
          caller,
          model: models.speaks,
          preset,
          speed: settings.speed,
          language: entry.speech?.languages[0] ?? "en",
          maxCharacters: entry.speech?.maxCharacters ?? 4_096,
          clock: this.clock,
          isPaced: settings.pacing === "realtime",
        }),
    )
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

  /** `conversation.item.truncate`: the client knows how much of an answer was played. A position beyond its end is its end. */
  readonly truncate = (id: string, endMs: number): Effect.Effect<number, ProtocolError | SocketError> =>
    Effect.gen({ self: this }, function* (this: Floor) {
      const spoken = this.terms.history.spoken(id)
      if (spoken === undefined) return yield* noItem("truncate", id)
      const { active } = this
      if (active?.messageId === id && !active.isOver) yield* active.cancel("client_cancelled")
      const samples = Math.min(spoken.samples, Math.round((endMs * SPEECH_RATE_HZ) / 1000))
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
