// Carries out what TurnTaking decides: begins, releases, cuts and ends answers, keeps the history, waits for a silence. The actor of the
// conversation runs it, one command at a time.
import { Clock, Deferred, Effect, type Fiber, type Scope } from "effect"
import type { SocketError } from "effect/socket/Socket"
import { type ConversationActor, startConversation } from "#actors/conversation/ConversationActor.ts"
import { samplesToMs, speechRateHz } from "#domain/audio/Audio.ts"
import type { AnswerEvent } from "#domain/conversation/AnswerGiving.ts"
import { type AnswerCause, AnswerTimes } from "#domain/conversation/AnswerTimes.ts"
import type { ResponseCreate } from "#domain/conversation/ClientEvents.ts"
import { type Item, itemOf, spokenItem } from "#domain/conversation/Items.ts"
import type { PlayClock } from "#domain/conversation/PlayClock.ts"
import type { ConversationSettings } from "#domain/conversation/Settings.ts"
import type {
  AnswerKey,
  Ask,
  Command,
  Event,
  Facts,
  Refusal,
  Rules,
  State,
} from "#domain/conversation/TurnTaking.ts"
import { mostBeside } from "#domain/conversation/TurnTaking.ts"
import { monotonicMs, monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { memoryOf } from "#domain/wire/Json.ts"
import { noMemory } from "#domain/wire/RealtimeProtocol.ts"
import { largeBytes } from "../live/SocketShare.ts"
import type { Answer, AnswerServices } from "./Answer.ts"
import type { ConversationTerms } from "./ConversationTerms.ts"
import { newAnswer } from "./NewAnswer.ts"
import { answerIsActive, noActiveAnswer, noItem, type ProtocolError, tellError } from "./ProtocolError.ts"
import { Warming } from "./Warming.ts"

type Happening = Event<ResponseCreate, EdgeError>
type Failure = EdgeError | ProtocolError

const rulesOf = ({ turns }: ConversationSettings): Rules => ({
  creates: turns?.creates === true,
  interrupts: turns?.interrupts === true,
  idleMs: turns?.idleTimeoutMs ?? null,
})

export class Conversation {
  readonly #terms: ConversationTerms
  readonly #clock: PlayClock
  readonly #warming: Warming
  #actor: ConversationActor<ResponseCreate, EdgeError, SocketError> | undefined
  /** Those that have begun, or are prepared, and have not ended. */
  readonly #answers = new Map<AnswerKey, Answer>()
  /** Whether an answer of the conversation was spoken. */
  hasSpoken = false
  /** The newest message that was spoken. */
  #lastMessage: string | undefined
  #asks = 0
  readonly #asked = new Map<Ask, Deferred.Deferred<number, Failure>>()
  #silence: Fiber.Fiber<void, unknown> | undefined
  /** Whether speech of the user is being told: an answer that begins meanwhile holds its audio, too. */
  #holdsAudio = false
  /** Audio of the user when the silence began to be awaited. */
  #silentFromMs = 0

  constructor(terms: ConversationTerms, clock: PlayClock) {
    this.#terms = terms
    this.#clock = clock
    this.#warming = new Warming(terms)
  }

  /** Starts its actor and what it reads ahead, as long as the scope is open. */
  readonly start: Effect.Effect<void, never, AnswerServices | Scope.Scope> = Effect.gen(
    { self: this },
    function* (this: Conversation) {
      const { guard, scope, settings } = this.#terms
      const services = yield* Effect.context<AnswerServices>()
      const clock = yield* Clock.Clock
      this.#actor = yield* startConversation<ResponseCreate, EdgeError, SocketError>(rulesOf(settings()), {
        facts: (state) => this.#facts(state, monotonicMsOf(clock)),
        carryOut: (command) => Effect.provideContext(this.#carryOut(command), services),
      })
      const { crashed } = this.#actor
      yield* Effect.forkIn(guard(crashed), scope, { startImmediately: true })
      yield* Effect.forkIn(guard(this.#warming.run), scope, { startImmediately: true })
    },
  )

  #facts({ answer, prepared }: State<ResponseCreate>, nowMs: number): Facts<EdgeError> {
    const given = answer === undefined ? undefined : this.#answers.get(answer.key)
    const held = prepared === undefined ? undefined : this.#answers.get(prepared.key)
    return {
      nowMs,
      version: this.#terms.history.version,
      playingMs: Math.max(0, this.#clock.playedUntilMs - nowMs),
      answer: given?.phase ?? "over",
      preparedHasFailed: held === undefined || held.phase === "over",
      overflow: this.#terms.history.overflow,
    }
  }

  readonly #happened = (event: Happening): void => this.#actor?.tell(event)

  #settle(event: Happening): Effect.Effect<void, SocketError> {
    return this.#actor?.settle(event) ?? Effect.void
  }

  /** Waits until an event of the client is carried out. */
  #ask(event: (ask: Ask) => Happening): Effect.Effect<number, Failure | SocketError> {
    return Effect.suspend(() => {
      const ask = this.#asks++
      const settled = Deferred.makeUnsafe<number, Failure>()
      this.#asked.set(ask, settled)
      return Effect.ensuring(
        Effect.andThen(this.#settle(event(ask)), Deferred.await(settled)),
        Effect.sync(() => this.#asked.delete(ask)),
      )
    })
  }

  #answerAsk(ask: Ask, result: Effect.Effect<number, Failure>): void {
    const settled = this.#asked.get(ask)
    if (settled !== undefined) Deferred.doneUnsafe(settled, result)
  }

  // ------------------------------------------------------------ what happens

  /**
   * The user has begun to speak, which `told` tells the client. No audio of an answer is sent from here until it is decided whether the
   * speech ends it: the client would get it behind `speech_started`.
   */
  readonly speechStarted = (told: Effect.Effect<void, SocketError>): Effect.Effect<void, SocketError> =>
    Effect.suspend(() => {
      this.#holdsAudio = true
      for (const answer of this.#answers.values()) answer.holdAudio()
      const decided = Effect.andThen(told, this.#settle({ is: "speech started" }))
      const goOn = Effect.sync(() => {
        this.#holdsAudio = false
        for (const answer of this.#answers.values()) answer.goOn()
      })
      return Effect.ensuring(decided, goOn)
    })

  /** A turn of the user gets its place; the id of the item before it. */
  readonly turnTaken = (itemId: string): string | null => {
    this.#happened({ is: "turn taken", itemId })
    const previous = this.#terms.history.add(spokenItem(itemId, null), "own")
    return typeof previous === "string" ? previous : null
  }

  /** A silence of this length has ended the turn. */
  readonly turnEnded = (itemId: string, silenceMs: number): void =>
    this.#happened({ is: "turn ended", itemId, silenceMs })

  readonly transcribed = (itemId: string, text: string | undefined): void => {
    this.#terms.history.replace(spokenItem(itemId, text ?? ""))
    this.#happened({ is: "transcribed", itemId, text })
  }

  /** Words of the open turn that stay as they are. */
  readonly lasting = (itemId: string, text: string): void =>
    this.#happened({ is: "words last", itemId, text })

  /** What the open turn says if it ends here; undefined: speech goes on. */
  readonly foreseen = (itemId: string, text: string | undefined): void =>
    this.#happened({ is: "foreseen", itemId, text })

  readonly settingsChanged: Effect.Effect<void, SocketError> = Effect.suspend(() =>
    this.#settle({ is: "rules changed", rules: rulesOf(this.#terms.settings()) }),
  )

  /** `response.create` */
  readonly create = (given: ResponseCreate): Effect.Effect<void, Failure | SocketError> =>
    Effect.asVoid(
      this.#ask((ask) => ({ is: "create", ask, options: given, isBeside: given.conversation === "none" })),
    )

  /** `response.cancel`. `id`: absent for the answer of the conversation. */
  readonly cancel = (id: string | null | undefined): Effect.Effect<void, Failure | SocketError> =>
    Effect.asVoid(
      this.#ask((ask) => {
        const known = [...this.#answers].find(([, answer]) => answer.id === id && answer.phase !== "over")
        return { is: "cancel", ask, key: id ? known?.[0] : "newest" }
      }),
    )

  /**
   * `conversation.item.truncate`: the client knows how much of an answer was played. A position beyond its end, or beyond that of an
   * earlier cut, is that end. Gives what is left, milliseconds.
   */
  readonly truncate = (itemId: string, endMs: number): Effect.Effect<number, Failure | SocketError> =>
    Effect.suspend(() =>
      this.#terms.history.spoken(itemId) === undefined
        ? Effect.fail(noItem("truncate", itemId))
        : this.#ask((ask) => ({ is: "truncate", ask, itemId, endMs })),
    )

  /** `output_audio_buffer.clear` of a call: nothing more is played of what was sent, and the history keeps what was heard. */
  readonly stopPlaying: Effect.Effect<void, Failure | SocketError> = Effect.gen(
    { self: this },
    function* (this: Conversation) {
      const itemId = this.#lastMessage
      const nowMs = yield* monotonicMs
      if (itemId === undefined || this.#clock.playedUntilMs <= nowMs) return
      if (this.#terms.history.spoken(itemId) === undefined) return this.#clock.stopped(nowMs)
      const playedMs = samplesToMs(Math.max(0, this.#playedOf(itemId, nowMs)), speechRateHz)
      yield* this.#tellCut(itemId, yield* this.truncate(itemId, playedMs))
    },
  )

  /** Runs until no answer of the conversation is being given. */
  readonly finished: Effect.Effect<void> = Effect.suspend(() => {
    const key = this.#actor?.state().answer?.key
    return (key === undefined ? undefined : this.#answers.get(key)?.ended) ?? Effect.void
  })

  // ------------------------------------------------------------ what is done

  #carryOut(
    command: Command<ResponseCreate, EdgeError>,
  ): Effect.Effect<Happening | undefined, SocketError, AnswerServices> {
    return Effect.gen({ self: this }, function* (this: Conversation) {
      switch (command.do) {
        case "start":
          return yield* this.#begin(command.key, command.options ?? {}, command.cause)
        case "prepare":
          return yield* this.#prepare(command)
        case "release":
          return yield* this.#release(command.key, command.cause)
        case "discard":
          yield* this.#end(command.key, { is: "discard" })
          return undefined
        case "flush":
          this.#answers.get(command.key)?.happened({ is: "hurry" })
          return undefined
        case "cancel":
          yield* this.#end(command.key, { is: "cancel", reason: command.reason })
          return undefined
        case "keep played":
          yield* this.#sentAll
          yield* this.#keepPlayed(command.itemId, yield* monotonicMs)
          return undefined
        case "truncate":
          yield* this.#sentAll
          this.#answerAsk(command.ask, this.#cutAt(command, yield* monotonicMs))
          return undefined
        case "read ahead": {
          const { items } = this.#terms.history
          const { turn } = command
          this.#warming.expect(turn === undefined ? items : [...items, spokenItem(turn.itemId, turn.text)])
          return undefined
        }
        case "carried out":
          this.#answerAsk(command.ask, Effect.succeed(0))
          return undefined
        case "refuse":
          this.#answerAsk(command.ask, Effect.fail(this.#refusal(command.why)))
          return undefined
        case "fail":
          if (command.ask === undefined) yield* tellError(this.#terms.tell, command.error, null)
          else this.#answerAsk(command.ask, Effect.fail(command.error))
          return undefined
        case "await silence":
          yield* this.#awaitSilence(command.timer, command.ms)
          return undefined
        case "await no silence":
          this.#silence?.interruptUnsafe()
          this.#silence = undefined
          return undefined
        case "take silence":
          yield* this.#takeSilence
          return undefined
        case "report":
          if (command.now === "hears") this.#terms.report.hears()
          else this.#terms.report.answers()
          return undefined
      }
    })
  }

  /** Ends an answer. Its last events are sent before this completes. */
  #end(key: AnswerKey, event: AnswerEvent): Effect.Effect<void> {
    return Effect.suspend(() => {
      const answer = this.#answers.get(key)
      answer?.happened(event)
      return answer?.ended ?? Effect.void
    })
  }

  /** Completes when the history knows of all answers that are over. */
  readonly #sentAll: Effect.Effect<void> = Effect.suspend(() =>
    Effect.forEach(
      [...this.#answers.values()].filter(({ phase }) => phase === "over"),
      ({ ended }) => ended,
      { discard: true },
    ),
  )

  #refusal(why: Refusal): Failure {
    switch (why) {
      case "no answer is active":
        return noActiveAnswer
      case "too many beside":
        return new InvalidRequest({
          field: "response.conversation",
          problem: `must be at most ${mostBeside} answers outside of the conversation at a time`,
        })
      case "answer is active": {
        const key = this.#actor?.state().answer?.key
        return answerIsActive((key === undefined ? undefined : this.#answers.get(key)?.id) ?? "")
      }
    }
  }

  #begin(
    key: AnswerKey,
    given: ResponseCreate,
    cause: AnswerCause,
  ): Effect.Effect<Happening, never, AnswerServices> {
    return Effect.gen({ self: this }, function* (this: Conversation) {
      const times = new AnswerTimes(cause)
      times.understood(yield* monotonicMs)
      const items = yield* this.#inputOf(given)
      const made = Effect.andThen(this.#terms.admit, this.#made(key, given, items, times, false))
      yield* this.#run(key, yield* this.#holding(given, made))
      return { is: "began", key } as const
    }).pipe(Effect.catch((error: EdgeError) => Effect.succeed({ is: "did not begin", key, error } as const)))
  }

  #prepare({
    itemId,
    key,
    text,
  }: Extract<Command<ResponseCreate, EdgeError>, { readonly do: "prepare" }>): Effect.Effect<
    Happening | undefined,
    never,
    AnswerServices
  > {
    return Effect.gen({ self: this }, function* (this: Conversation) {
      const times = new AnswerTimes({ atMs: yield* monotonicMs, silenceMs: undefined })
      const items = [...this.#terms.history.items, spokenItem(itemId, text)]
      yield* this.#run(key, yield* this.#holding({}, this.#made(key, {}, items, times, true)))
      this.#terms.meters.prepared++
      return undefined
    }).pipe(Effect.catch((error: EdgeError) => Effect.succeed({ is: "did not begin", key, error } as const)))
  }

  #release(key: AnswerKey, cause: AnswerCause): Effect.Effect<Happening> {
    return Effect.gen({ self: this }, function* (this: Conversation) {
      const answer = this.#answers.get(key)
      if (answer === undefined) return { is: "did not begin", key, error: undefined } as const
      yield* Effect.onError(this.#terms.admit, () => this.#end(key, { is: "discard" }))
      const { times } = answer
      times.confirmed(cause)
      times.understood(yield* monotonicMs)
      if (answer.phase === "over") return { is: "did not begin", key, error: undefined } as const
      answer.happened({ is: "released" })
      this.#terms.meters.released++
      return { is: "began", key } as const
    }).pipe(Effect.catch((error) => Effect.succeed({ is: "did not begin", key, error } as const)))
  }

  /**
   * Holds what an answer has besides the conversation's items, with the session that it begins with, and those items: what is
   * deleted of them stays in memory until the answer has ended. With the answer comes a function that lets all of it go.
   */
  #holding<E, R>(
    given: ResponseCreate,
    made: Effect.Effect<Answer, E, R>,
  ): Effect.Effect<{ readonly answer: Answer; readonly letGo: () => void }, E | InvalidRequest, R> {
    return Effect.suspend(
      (): Effect.Effect<{ readonly answer: Answer; readonly letGo: () => void }, E | InvalidRequest, R> => {
        const { history, settings, share } = this.#terms
        const own = memoryOf(given)
        if (own > largeBytes && own > share.held.left) return Effect.fail(noMemory("response", share.held))
        const bytes = own + memoryOf(settings())
        share.held.keep(bytes)
        const ended = history.read()
        const letGo = () => {
          ended()
          share.held.giveBack(bytes)
        }
        return Effect.map(
          Effect.onError(made, () => Effect.sync(letGo)),
          (answer) => ({ answer, letGo }),
        )
      },
    )
  }

  /** Starts an answer, and says when it has ended. */
  #run(
    key: AnswerKey,
    { answer, letGo }: { readonly answer: Answer; readonly letGo: () => void },
  ): Effect.Effect<void, never, AnswerServices> {
    const { scope } = this.#terms
    this.#answers.set(key, answer)
    if (this.#holdsAudio) answer.holdAudio()
    const ended = Effect.sync(() => {
      letGo()
      this.#answers.delete(key)
      this.#happened({ is: "ended", key })
    })
    return Effect.andThen(
      answer.start(scope),
      Effect.forkIn(Effect.andThen(answer.ended, ended), scope, { startImmediately: true }),
    )
  }

  #made(
    key: AnswerKey,
    given: ResponseCreate,
    items: ReadonlyArray<Item>,
    times: AnswerTimes,
    isHeld: boolean,
  ) {
    return newAnswer({
      conversation: this.#terms,
      clock: this.#clock,
      given,
      items,
      times,
      isHeld,
      onMessage: (itemId) => {
        this.hasSpoken = true
        this.#lastMessage = itemId
        this.#happened({ is: "message began", key, itemId })
      },
    })
  }

  /** What the model reads: the conversation, or the answer's own input. */
  #inputOf({ input }: ResponseCreate): Effect.Effect<ReadonlyArray<Item>, InvalidRequest> {
    const { history, newId } = this.#terms
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

  #keepPlayed(itemId: string, nowMs: number): Effect.Effect<void, SocketError> {
    const { history, playout } = this.#terms
    const isPlayed = this.#clock.playedUntilMs <= nowMs
    const samples = this.#playedOf(itemId, nowMs)
    this.#clock.stopped(nowMs)
    history.keepHeard(itemId, samples)
    if (playout === undefined || isPlayed) return Effect.void
    // The client of a call does not know what was played: the node cuts, and says where.
    return this.#tellCut(itemId, Math.floor(samplesToMs(Math.max(0, samples), speechRateHz)))
  }

  /** Samples of a spoken message that were played by now. */
  #playedOf(itemId: string, nowMs: number): number {
    return this.#clock.playedSamples(nowMs) - (this.#terms.history.spoken(itemId)?.startsAt ?? 0)
  }

  #tellCut(item_id: string, audio_end_ms: number): Effect.Effect<void, SocketError> {
    return this.#terms.tell("conversation.item.truncated", { item_id, content_index: 0, audio_end_ms })
  }

  #cutAt(
    { endMs, itemId, stops }: { readonly itemId: string; readonly endMs: number; readonly stops: boolean },
    nowMs: number,
  ): Effect.Effect<number, ProtocolError> {
    const samples = this.#terms.history.truncate(itemId, Math.round((endMs * speechRateHz) / 1000))
    if (samples === undefined) return Effect.fail(noItem("truncate", itemId))
    if (stops) this.#clock.stopped(nowMs)
    return Effect.succeed(Math.floor((samples * 1000) / speechRateHz))
  }

  #awaitSilence(timer: number, ms: number): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* (this: Conversation) {
      this.#silentFromMs = this.#terms.heardMs()
      const lasted = Effect.sync(() => this.#happened({ is: "silence lasted", timer }))
      this.#silence = yield* Effect.forkIn(Effect.delay(lasted, ms), this.#terms.scope, {
        startImmediately: true,
      })
    })
  }

  readonly #takeSilence: Effect.Effect<void, SocketError> = Effect.gen(
    { self: this },
    function* (this: Conversation) {
      const { heardMs, history, newId, tell } = this.#terms
      const item = spokenItem(`item_${newId()}`, "")
      const audio = { audio_start_ms: Math.round(this.#silentFromMs), audio_end_ms: Math.round(heardMs()) }
      yield* tell("input_audio_buffer.timeout_triggered", { ...audio, item_id: item.id })
      const previous = history.add(item, "own")
      const previous_item_id = typeof previous === "string" ? previous : null
      yield* tell("input_audio_buffer.committed", { previous_item_id, item_id: item.id })
      yield* tell("conversation.item.added", { previous_item_id, item })
      yield* tell("conversation.item.done", { previous_item_id, item })
    },
  )
}
