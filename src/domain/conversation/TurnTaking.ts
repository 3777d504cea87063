// Who speaks when in a conversation, as a state machine: `decide` takes what is known and what has happened, and gives what is known
// then and what is to be done. It knows no engine, no socket and no clock. The actor Conversation tells it of events one at a time and
// carries out the commands of each before the next.
//
// The user's speech becomes turns. A turn that a silence has ended is answered as soon as no turn is being transcribed any more, unless an
// answer is active then; `response.create` asks for an answer too. At most one answer of the conversation is active at a time. Answers beside
// the conversation (`conversation: "none"`) join no history, speech of the user does not stop them, and four may be active.
//
// What a client sees, state by state. What of an answer is sent, kept and charged is decided by AnswerGiving beside this file; it is told
// here too, so that this page is enough.
//
// No answer is active.
//   The user speaks: no silence is awaited any more. If speech of the last answer is still being played, only its words that were played by
//     now are kept (where speech interrupts).
//   A turn ends: it is answered when it and all before it are transcribed. One without words is not answered, nor is one where the session
//     does not create answers, nor one that would wait behind eight others.
//   A silence lasts in a turn: an answer is prepared, if all turns before are transcribed and the history is not full.
//   `response.create`: the answer begins when all turns are transcribed. A full history refuses it, and no answer to a turn begins then:
//     an `error` event says so.
//   `response.cancel`: refused, no answer is active. `conversation.item.truncate` of an answer that has ended: its words up to there are kept; a later
//     cut brings nothing back. If it was the last answer spoken, nothing of it counts as played from now on.
//   A silence after an answer lasts as long as the session says: an empty turn joins the history and is answered.
//   A call of a function waits for its output: its answer is over, so `response.done` was sent, and speech of the user cuts nothing and sends
//     nothing more of it. The turn is answered when it ends; the model then reads the call without an output. The output that the client adds later
//     joins the history at its end, and its `response.create` meets the answer to the turn, or comes after it.
//
// An answer is prepared. Nothing of it was sent, kept or charged.
//   The user goes on, or other words are transcribed: it is dropped.
//   The turn ends with the words, the history and the settings that it was made for: it is released. `response.created` and all that is
//     written so far are sent at once, and from then on it is an answer like any other. Otherwise, or if it has failed, it is dropped, and the answer is made anew.
//   `response.create`, also beside the conversation: it is dropped, and the answer that was asked for begins when all turns are transcribed.
//
// An answer is being written.
//   The user speaks, and speech interrupts: the model and the voice stop, no audio and no text is sent any more, the client counts as
//     playing nothing, each open item ends (`incomplete`, with the words that were played), and `response.done` says `cancelled`, `turn_detected`. A call that is being
//     written ends as `incomplete`, without the end of its arguments; one that is complete stays. Turns that waited for an answer get none.
//   The user speaks, and speech does not interrupt: the turn joins the history and is not answered.
//   `response.create`: refused, an answer is active; beside the conversation it begins, if fewer than four have.
//   `response.cancel`: the same as speech that interrupts, but it says `client_cancelled`, and what was sent still counts as being played.
//   `conversation.item.truncate` of the item that is being spoken: the answer is cancelled like this first, and its last events are sent; then the words
//     up to the position are kept, or up to the end of what was sent, and `conversation.item.truncated` says which. Of an earlier answer: only the history changes.
//
// All is written, and speech is still to be sent ("draining"). The same, but for `response.create`: the rest of the speech is sent at once, the answer
// completes, and the next one begins.
//
// What is charged of an answer that is cut: the prompt and the tokens that the model has written by then, and the speech that was sent. It is the
// same for one that fails. Of one that was prepared and dropped nothing is charged.
//
// Bounds: eight turns that wait for an answer, four answers beside the conversation, one that is prepared, reading ahead four times and
// then every ten seconds. The history bounds its items and their bytes by itself (History), and AnswerGiving the audio that waits.
import type { AnswerCause } from "./AnswerTimes.ts"

/** Answers beside the conversation at a time. A guess. */
export const mostBeside = 4

/** The most turns that may wait for an answer; a turn beyond that gets none. A guess. */
export const mostTurnsDue = 8

/** How often a conversation reads ahead. A guess: instructions come once, and a turn has a few lasting pieces of text. */
export const readAheads = { burst: 4, perSecond: 0.1 }

/** Numbers an answer within its conversation. */
export type AnswerKey = number

/** Numbers a client's event that waits until it is carried out. */
export type Ask = number

/** What the session's settings say of turns. */
export interface Rules {
  /** Whether a turn that a silence has ended is answered by itself. */
  readonly creates: boolean
  /** Whether speech of the user stops an answer. */
  readonly interrupts: boolean
  /** After an answer has been played, a silence of the user of this length makes the model say more; null: it never does. */
  readonly idleMs: number | null
}

/** What an event is about that the state does not know, at the moment of the event. */
export interface Facts<E> {
  readonly nowMs: number
  /** How often the history has changed. */
  readonly version: number
  /** Until the client has played what was sent, milliseconds; 0: nothing is played. */
  readonly playingMs: number
  /** The active answer: "writing", it is being written; "draining", all is written and speech is to be sent; "over", its last event was sent. */
  readonly answer: "writing" | "draining" | "over"
  readonly preparedHasFailed: boolean
  /** Why no answer can begin: the history is full. */
  readonly overflow: E | undefined
}

/** `O`: the options of `response.create`. `E`: why something failed. */
export type Event<O, E> =
  | { readonly is: "speech started" }
  /** A turn of the user is complete and has its place in the history. */
  | { readonly is: "turn taken"; readonly itemId: string }
  /** The turn that was just taken was ended by a silence of this length. */
  | { readonly is: "turn ended"; readonly itemId: string; readonly silenceMs: number }
  /** Undefined: it could not be transcribed. */
  | { readonly is: "transcribed"; readonly itemId: string; readonly text: string | undefined }
  /** Words of the open turn that later audio cannot change. */
  | { readonly is: "words last"; readonly itemId: string; readonly text: string }
  /** What the open turn says if it ends here; undefined: speech goes on. */
  | { readonly is: "foreseen"; readonly itemId: string; readonly text: string | undefined }
  | { readonly is: "create"; readonly ask: Ask; readonly options: O; readonly isBeside: boolean }
  /** `key`: undefined for an answer that is not there. */
  | { readonly is: "cancel"; readonly ask: Ask; readonly key: AnswerKey | "newest" | undefined }
  | { readonly is: "truncate"; readonly ask: Ask; readonly itemId: string; readonly endMs: number }
  | { readonly is: "rules changed"; readonly rules: Rules }
  /** An answer that was to be started, or released, has begun. */
  | { readonly is: "began"; readonly key: AnswerKey }
  /** An answer that was to be started, prepared or released has not begun. Undefined: it was prepared and had failed by then. */
  | { readonly is: "did not begin"; readonly key: AnswerKey; readonly error: E | undefined }
  /** Its spoken message joins the history. */
  | { readonly is: "message began"; readonly key: AnswerKey; readonly itemId: string }
  /** Its last event was sent, or it was interrupted. */
  | { readonly is: "ended"; readonly key: AnswerKey }
  | { readonly is: "silence lasted"; readonly timer: number }

export type Refusal = "answer is active" | "no answer is active" | "too many beside"

export type Command<O, E> =
  /** Begins an answer to the history. The next event says whether it `began`, before any other event. */
  | {
      readonly do: "start"
      readonly key: AnswerKey
      /** Undefined: nothing but what the session says. */
      readonly options: O | undefined
      readonly cause: AnswerCause
    }
  /** Begins an answer to the history and this turn, and holds it. */
  | { readonly do: "prepare"; readonly key: AnswerKey; readonly itemId: string; readonly text: string }
  /** Sends and charges from now on what is prepared. The next event says whether it `began`. */
  | { readonly do: "release"; readonly key: AnswerKey; readonly cause: AnswerCause }
  /** Drops what is prepared, unseen and not charged. */
  | { readonly do: "discard"; readonly key: AnswerKey }
  /** Sends the rest of an answer at once. */
  | { readonly do: "flush"; readonly key: AnswerKey }
  /** Stops an answer: its last events are sent, and only the words that were played are kept. */
  | { readonly do: "cancel"; readonly key: AnswerKey; readonly reason: "turn_detected" | "client_cancelled" }
  /** Keeps the words of an answer that were played by now, and takes the rest for never played. */
  | { readonly do: "keep played"; readonly itemId: string }
  /** Keeps the words of an answer's first `endMs` milliseconds, and carries `ask` out. `stops`: nothing is played any more. */
  | {
      readonly do: "truncate"
      readonly ask: Ask
      readonly itemId: string
      readonly endMs: number
      readonly stops: boolean
    }
  /** Lets the model read the history, and the beginning of the open turn, before it is asked. */
  | {
      readonly do: "read ahead"
      readonly turn: { readonly itemId: string; readonly text: string } | undefined
    }
  | { readonly do: "carried out"; readonly ask: Ask }
  | { readonly do: "refuse"; readonly ask: Ask; readonly why: Refusal }
  /** Where `ask` is undefined no event of the client is refused, and an `error` event says it. */
  | { readonly do: "fail"; readonly ask: Ask | undefined; readonly error: E }
  | { readonly do: "await silence"; readonly timer: number; readonly ms: number }
  | { readonly do: "await no silence" }
  /** An empty turn of the user, for the silence, joins the history. */
  | { readonly do: "take silence" }
  /** For the load of the engines. */
  | { readonly do: "report"; readonly now: "hears" | "answers" }

/** The active answer of the conversation, until it has ended. */
interface ActiveAnswer {
  readonly key: AnswerKey
  readonly cause: AnswerCause
  readonly ask: Ask | undefined
  /** Its message, once that has begun. */
  readonly itemId: string | undefined
}

/** An answer that waits for its turn, in the order of what asked for it. */
type Due<O> =
  | {
      readonly of: "turn"
      readonly itemId: string
      readonly cause: AnswerCause
      /** Undefined until it is transcribed. */
      readonly text: string | undefined
    }
  | {
      readonly of: "create"
      readonly ask: Ask
      readonly options: O
      readonly isBeside: boolean
      readonly cause: AnswerCause
      /** The answer that this one waits for was told to send what is left. */
      readonly hasFlushed: boolean
    }

interface Turn {
  readonly itemId: string
  readonly text: string
}

interface Prepared extends Turn {
  readonly key: AnswerKey
  /** Of the rules. */
  readonly revision: number
  /** The history's version once the turn has joined it with this transcript, if nothing else does. */
  readonly version: number
}

export interface State<O> {
  readonly rules: Rules
  /** How often the session's settings have changed. */
  readonly revision: number
  readonly answer: ActiveAnswer | undefined
  /** Answers beside the conversation, and those who asked for the ones that have not begun. */
  readonly beside: ReadonlyMap<AnswerKey, Ask | undefined>
  /** Turns of the user that are being transcribed. */
  readonly unheard: ReadonlySet<string>
  /** Transcripts since the newest turn was complete: whether a silence has ended it may be said after its transcript. */
  readonly heard: ReadonlyMap<string, string | undefined>
  readonly due: ReadonlyArray<Due<O>>
  readonly prepared: Prepared | undefined
  /** The answer whose speech was sent last. */
  readonly lastSpoken: string | undefined
  /** The silence that is awaited. */
  readonly timer: number | undefined
  readonly nextNumber: number
  /** How much might be read ahead at `readAtMs`, when that was done last. */
  readonly leftReads: number
  readonly readAtMs: number
}

export const silent = <O>(rules: Rules): State<O> => ({
  rules,
  revision: 0,
  answer: undefined,
  beside: new Map(),
  unheard: new Set(),
  heard: new Map(),
  due: [],
  prepared: undefined,
  lastSpoken: undefined,
  timer: undefined,
  nextNumber: 1,
  leftReads: readAheads.burst,
  readAtMs: 0,
})

/** A turn joins the history without its transcript, which follows: so often the history changes. */
const changesOfTurn = 2

const isSame = (one: Turn, other: Turn): boolean => one.itemId === other.itemId && one.text === other.text

const isBlank = (text: string | undefined): boolean => text === undefined || text.trim() === ""

/** One decision: the state as it becomes, and the commands in their order. */
class Decision<O, E> {
  state: State<O>
  readonly commands: Array<Command<O, E>> = []
  readonly #facts: Facts<E>

  constructor(state: State<O>, facts: Facts<E>) {
    this.state = state
    this.#facts = facts
  }

  event(event: Event<O, E>): void {
    switch (event.is) {
      case "speech started":
        this.#userStirs()
        if (this.state.rules.interrupts) this.#interrupt()
        return this.#nextAnswer()
      case "turn taken":
        this.#userStirs()
        return this.#become({ unheard: new Set(this.state.unheard).add(event.itemId), heard: new Map() })
      case "turn ended":
        return this.#turnEnded(event.itemId, event.silenceMs)
      case "transcribed":
        return this.#transcribed(event.itemId, event.text)
      case "words last":
        if (this.state.rules.creates && !this.#isAnswering)
          this.#readAhead({ itemId: event.itemId, text: event.text })
        return
      case "foreseen":
        return this.#foresee(event.itemId, event.text)
      case "create":
        return this.#create(event.ask, event.options, event.isBeside)
      case "cancel":
        return this.#cancel(event.ask, event.key)
      case "truncate":
        return this.#truncate(event.ask, event.itemId, event.endMs)
      case "rules changed":
        this.#become({ rules: event.rules, revision: this.state.revision + 1 })
        return this.#readAhead(undefined)
      case "began":
        return this.#began(event.key)
      case "did not begin":
        return this.#didNotBegin(event.key, event.error)
      case "message began": {
        const { answer } = this.state
        if (answer?.key !== event.key) return
        return this.#become({ answer: { ...answer, itemId: event.itemId }, lastSpoken: event.itemId })
      }
      case "ended":
        return this.#ended(event.key)
      case "silence lasted":
        if (this.state.timer !== event.timer || this.#isAnswering) return
        this.#become({ timer: undefined })
        this.#do({ do: "take silence" })
        if (!this.#isFull(undefined)) this.#start(undefined, undefined, this.#cause())
        return
    }
  }

  #become(changes: Partial<State<O>>): void {
    this.state = { ...this.state, ...changes }
  }

  #do(command: Command<O, E>): void {
    this.commands.push(command)
  }

  #number(): number {
    const { nextNumber } = this.state
    this.#become({ nextNumber: nextNumber + 1 })
    return nextNumber
  }

  #cause(silenceMs?: number): AnswerCause {
    return { atMs: this.#facts.nowMs, silenceMs }
  }

  /** An answer of the conversation is begun or given. */
  get #isAnswering(): boolean {
    return this.state.answer !== undefined && this.#facts.answer !== "over"
  }

  // ------------------------------------------------------------ the user

  /** The user speaks, or an answer begins: no silence is awaited. */
  #noSilence(): void {
    if (this.state.timer === undefined) return
    this.#become({ timer: undefined })
    this.#do({ do: "await no silence" })
  }

  #userStirs(): void {
    this.#noSilence()
    this.#do({ do: "report", now: "hears" })
  }

  /** Speech stops the answer that is options, and those to turns before it that have not begun. */
  #interrupt(): void {
    const { answer, due, lastSpoken } = this.state
    this.#become({ due: due.filter(({ of }) => of !== "turn") })
    this.#discard()
    if (answer !== undefined && this.#isAnswering) {
      this.#become({ answer: undefined })
      this.#do({ do: "cancel", key: answer.key, reason: "turn_detected" })
    } else if (this.#facts.playingMs > 0 && lastSpoken !== undefined) {
      this.#do({ do: "keep played", itemId: lastSpoken })
    }
  }

  #turnEnded(itemId: string, silenceMs: number): void {
    const { due, heard, rules } = this.state
    const waiting = due.filter(({ of }) => of === "turn").length
    if (!rules.creates || this.#isAnswering || waiting >= mostTurnsDue) return
    const text = heard.get(itemId)
    if (heard.has(itemId) && isBlank(text)) return this.#discard()
    this.#become({ due: [...due, { of: "turn", itemId, cause: this.#cause(silenceMs), text }] })
    this.#nextAnswer()
  }

  #transcribed(itemId: string, text: string | undefined): void {
    const { due } = this.state
    const unheard = new Set(this.state.unheard)
    unheard.delete(itemId)
    this.#become({ unheard, heard: new Map(this.state.heard).set(itemId, text) })
    const at = due.findIndex((one) => one.of === "turn" && one.itemId === itemId)
    const turn = due[at]
    if (turn?.of === "turn") {
      // A turn in which nothing was understood is not answered.
      if (isBlank(text)) {
        this.#become({ due: due.toSpliced(at, 1) })
        this.#discard()
      } else this.#become({ due: due.with(at, { ...turn, text }) })
    }
    this.#nextAnswer()
  }

  /** Beyond its allowance nothing is read ahead, and an answer begins later. */
  #readAhead(turn: Turn | undefined): void {
    const { nowMs } = this.#facts
    const { leftReads, readAtMs } = this.state
    const left = Math.min(readAheads.burst, leftReads + ((nowMs - readAtMs) / 1000) * readAheads.perSecond)
    if (left < 1) return
    this.#become({ leftReads: left - 1, readAtMs: nowMs })
    this.#do({ do: "read ahead", turn })
  }

  // ------------------------------------------------------------ answers that are prepared

  #foresee(itemId: string, text: string | undefined): void {
    const { prepared, rules, unheard } = this.state
    const foreseen = text === undefined ? undefined : { itemId, text }
    const version = this.#facts.version + changesOfTurn
    if (foreseen !== undefined && prepared !== undefined && this.#stands(prepared, foreseen, version)) return
    this.#discard()
    if (foreseen === undefined || isBlank(text) || !rules.creates || this.#isAnswering || unheard.size > 0)
      return
    if (this.#facts.overflow !== undefined) return
    const key = this.#number()
    this.#become({ prepared: { ...foreseen, key, revision: this.state.revision, version } })
    this.#do({ do: "prepare", key, ...foreseen })
  }

  /** Whether what is prepared is the answer to this turn in a history of this version. */
  #stands(prepared: Prepared, turn: Turn, version: number): boolean {
    return (
      !this.#facts.preparedHasFailed &&
      isSame(prepared, turn) &&
      prepared.version === version &&
      prepared.revision === this.state.revision
    )
  }

  #discard(): void {
    const { prepared } = this.state
    if (prepared === undefined) return
    this.#become({ prepared: undefined })
    this.#do({ do: "discard", key: prepared.key })
  }

  // ------------------------------------------------------------ answers

  #create(ask: Ask, options: O, isBeside: boolean): void {
    const { beside, due } = this.state
    const waiting = due.filter((one) => one.of === "create" && one.isBeside)
    if (isBeside && beside.size + waiting.length >= mostBeside)
      return this.#do({ do: "refuse", ask, why: "too many beside" })
    const one: Due<O> = { of: "create", ask, options, isBeside, cause: this.#cause(), hasFlushed: false }
    this.#become({ due: [...due, one] })
    this.#nextAnswer()
  }

  /** Begins the answer that is due first, if it can begin now. */
  #nextAnswer(): void {
    for (;;) {
      const { answer, beside, due, unheard } = this.state
      const [first, ...others] = due
      if (first === undefined) return
      if (first.of === "turn") {
        // All turns are transcribed first.
        if (first.text === undefined || unheard.size > 0) return
        this.#become({ due: others })
        if (!this.#isAnswering && this.#answerTurn(first, first.text)) return
        continue
      }
      if (!first.isBeside && answer !== undefined && this.#isAnswering) {
        if (this.#facts.answer === "draining") {
          if (first.hasFlushed) return
          this.#become({ due: [{ ...first, hasFlushed: true }, ...others] })
          return this.#do({ do: "flush", key: answer.key })
        }
        this.#become({ due: others })
        this.#do({ do: "refuse", ask: first.ask, why: "answer is active" })
        continue
      }
      if (unheard.size > 0) return
      this.#become({ due: others })
      this.#discard()
      if (this.#isFull(first.ask)) continue
      if (!first.isBeside) return this.#start(first.ask, first.options, first.cause)
      const key = this.#number()
      this.#become({ beside: new Map(beside).set(key, first.ask) })
      return this.#do({ do: "start", key, options: first.options, cause: first.cause })
    }
  }

  /** False where no answer can begin. */
  #answerTurn(
    { cause, itemId }: { readonly cause: AnswerCause; readonly itemId: string },
    text: string,
  ): boolean {
    const { prepared } = this.state
    const turn = { itemId, text }
    if (prepared === undefined || !this.#stands(prepared, turn, this.#facts.version)) {
      this.#discard()
      if (this.#isFull(undefined)) return false
      this.#start(undefined, undefined, cause)
      return true
    }
    const { key } = prepared
    this.#become({ prepared: undefined })
    this.#begins(key, undefined, cause)
    this.#do({ do: "release", key, cause })
    return true
  }

  #begins(key: AnswerKey, ask: Ask | undefined, cause: AnswerCause): void {
    this.#become({ answer: { key, cause, ask, itemId: undefined } })
  }

  /** The history is full: says so to what has asked for an answer. */
  #isFull(ask: Ask | undefined): boolean {
    const { overflow } = this.#facts
    if (overflow === undefined) return false
    this.#do({ do: "fail", ask, error: overflow })
    return true
  }

  #start(ask: Ask | undefined, options: O | undefined, cause: AnswerCause): void {
    const key = this.#number()
    this.#begins(key, ask, cause)
    this.#do({ do: "start", key, options, cause })
  }

  #began(key: AnswerKey): void {
    const { answer, beside } = this.state
    let ask = beside.get(key)
    if (answer?.key === key) {
      ask = answer.ask
      this.#noSilence()
      this.#do({ do: "report", now: "answers" })
    } else if (beside.has(key)) this.#become({ beside: new Map(beside).set(key, undefined) })
    if (ask !== undefined) this.#do({ do: "carried out", ask })
    this.#nextAnswer()
  }

  #didNotBegin(key: AnswerKey, error: E | undefined): void {
    const { answer, beside, prepared } = this.state
    if (prepared?.key === key) return this.#become({ prepared: undefined })
    if (answer?.key === key) {
      this.#become({ answer: undefined })
      // What was prepared is of no use: the answer is made anew.
      const why = error ?? this.#facts.overflow
      if (why === undefined) return this.#start(undefined, undefined, answer.cause)
      this.#do({ do: "fail", ask: answer.ask, error: why })
    } else if (beside.has(key)) {
      const others = new Map(beside)
      others.delete(key)
      this.#become({ beside: others })
      if (error !== undefined) this.#do({ do: "fail", ask: beside.get(key), error })
    }
    this.#nextAnswer()
  }

  #ended(key: AnswerKey): void {
    const { answer, beside, rules } = this.state
    if (answer?.key === key) {
      this.#become({ answer: undefined })
      if (rules.idleMs !== null) {
        const timer = this.#number()
        this.#become({ timer })
        this.#do({ do: "await silence", timer, ms: this.#facts.playingMs + rules.idleMs })
      }
    } else if (beside.has(key)) {
      const others = new Map(beside)
      others.delete(key)
      this.#become({ beside: others })
    }
    this.#nextAnswer()
  }

  // ------------------------------------------------------------ the client

  #cancel(ask: Ask, asked: AnswerKey | "newest" | undefined): void {
    const { answer, beside } = this.state
    const key = asked === "newest" ? answer?.key : asked
    const isAnswer = answer !== undefined && answer.key === key && this.#isAnswering
    if (key === undefined || (!isAnswer && !beside.has(key)))
      return this.#do({ do: "refuse", ask, why: "no answer is active" })
    this.#do({ do: "cancel", key, reason: "client_cancelled" })
    this.#do({ do: "carried out", ask })
    this.#nextAnswer()
  }

  /** The client knows how much of an answer was played. */
  #truncate(ask: Ask, itemId: string, endMs: number): void {
    const { answer, lastSpoken } = this.state
    if (answer?.itemId === itemId && this.#isAnswering)
      this.#do({ do: "cancel", key: answer.key, reason: "client_cancelled" })
    // A later answer may be playing already.
    this.#do({ do: "truncate", ask, itemId, endMs, stops: itemId === lastSpoken })
    this.#nextAnswer()
  }
}

/** What is known after an event, and what is to be done, in this order. */
export const decide = <O, E>(
  state: State<O>,
  event: Event<O, E>,
  facts: Facts<E>,
): readonly [State<O>, ReadonlyArray<Command<O, E>>] => {
  const decision = new Decision<O, E>(state, facts)
  decision.event(event)
  return [decision.state, decision.commands]
}
