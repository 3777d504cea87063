// What surrounds the decider of a conversation, as a model: answers that begin, are written and end, turns that are transcribed late, a
// client that asks. It draws what happens next from numbers, does what is commanded, and throws at the first thing that must not be.
import { strict as assert } from "node:assert"
import fc from "fast-check"
import {
  type AnswerKey,
  type Ask,
  type Command,
  type decide,
  type Event,
  type Facts,
  mostBeside,
  mostTurnsDue,
  type Rules,
  readAheads,
  type State,
  silent,
} from "#domain/conversation/TurnTaking.ts"

type Given = string
type Happening = Event<Given, string>
type Doing = Command<Given, string>
export interface TurnDecider {
  readonly decide: typeof decide
}

interface WorldAnswer {
  readonly isBeside: boolean
  phase: "writing" | "draining" | "over"
  itemId: string | undefined
  isEndTold: boolean
}

interface Held {
  readonly key: AnswerKey
  readonly itemId: string
  readonly text: string
  /** The version that the history has when the turn has joined it. */
  readonly version: number
  readonly rules: number
  isOver: boolean
}

interface Turn {
  readonly id: string
  isTranscribed: boolean
  text: string | undefined
  /** When a silence ended it. */
  endedAtMs: number | undefined
  /** Why it must not be answered, or that it was. */
  fate: "waits" | "answered" | "dropped"
}

const texts = ["yes", "what time is it", "no", "", "  "]

class ConversationWorld {
  readonly #decide: TurnDecider["decide"]
  readonly #numbers: ReadonlyArray<number>
  #at = 0
  state: State<Given>
  #nowMs = 1_000
  #version = 0
  #rulesRevision = 0
  #playingMs = 0
  readonly #answers = new Map<AnswerKey, WorldAnswer>()
  readonly #begun = new Set<AnswerKey>()
  #current: AnswerKey | undefined
  #held: Held | undefined
  /** What the commands of this event have dropped. */
  #justDropped: Held | undefined
  /** Whether the history can take no answer. */
  #isFull = false
  #readAtMs: ReadonlyArray<number> = []
  readonly #flushed = new Set<AnswerKey>()
  /** Whether an answer was given before this event or after it. */
  #wasGiven = false
  #foreseen: { readonly itemId: string; readonly text: string } | undefined
  readonly #turns: Array<Turn> = []
  #openTurn = "turn 0"
  #lastSpoken: string | undefined
  #timer: number | undefined
  /** Asked, and not yet answered. */
  readonly #asks = new Map<Ask, "create" | "create beside" | "cancel" | "truncate">()
  readonly #createdAtMs = new Map<number, { readonly ask: Ask; readonly options: Given }>()
  #nextAsk = 1
  /** What happened, how often: so that a test can see that everything did. */
  readonly seen = new Map<string, number>()

  constructor({ decide: decider }: TurnDecider, first: State<Given>, numbers: ReadonlyArray<number>) {
    this.#decide = decider
    this.state = first
    this.#numbers = numbers
  }

  #draw(below: number): number {
    const value = this.#numbers[this.#at++ % this.#numbers.length] ?? 0
    // Spread, so that a repeated list of numbers does not repeat its choices.
    return (value + Math.imul(this.#at, 2_654_435)) % below < 0
      ? 0
      : Math.abs(value + Math.imul(this.#at, 2_654_435)) % below
  }

  #count(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1)
  }

  get #isAnswering(): boolean {
    return this.#current !== undefined && this.#answers.get(this.#current)?.phase !== "over"
  }

  get #unheard(): ReadonlyArray<Turn> {
    return this.#turns.filter(({ isTranscribed }) => !isTranscribed)
  }

  get #facts(): Facts<string> {
    const { answer, prepared } = this.state
    const given = answer === undefined ? undefined : this.#answers.get(answer.key)
    return {
      nowMs: this.#nowMs,
      version: this.#version,
      playingMs: this.#playingMs,
      answer: given?.phase ?? "over",
      overflow: this.#isFull ? "full" : undefined,
      preparedHasFailed: prepared === undefined || this.#held?.key !== prepared.key || this.#held.isOver,
    }
  }

  // ------------------------------------------------------------ what happens next

  /** One random event and all that follows from it. */
  step(): void {
    this.#nowMs += 1 + this.#draw(400)
    this.#playingMs = Math.max(0, this.#playingMs - this.#draw(120))
    if (this.#draw(12) === 0) this.#isFull = this.#draw(3) === 0
    if (this.#draw(20) === 0) return this.#turnAsForeseen()
    const event = this.#next()
    if (event !== undefined) this.#happen(event)
  }

  /** A turn that ends as it was foreseen, unless something comes in between. */
  #turnAsForeseen(): void {
    const mayIntervene = () => {
      // Two causes of answers are never of the same time.
      this.#nowMs++
      if (this.#draw(12) === 0) this.#isFull = !this.#isFull
      const event = this.#draw(6) === 0 ? this.#next() : undefined
      if (event !== undefined) this.#happen(event)
    }
    const itemId = this.#openTurn
    this.#happen({ is: "foreseen", itemId, text: "as foreseen" })
    mayIntervene()
    if (this.#openTurn !== itemId) return
    this.#happen(this.#take())
    const turn = this.#turns.at(-1)!
    mayIntervene()
    if (!turn.isTranscribed && this.#draw(2) === 0) this.#happen(this.#transcribe(turn, "as foreseen"))
    if (this.#turns.at(-1) === turn && turn.endedAtMs === undefined) {
      this.#nowMs++
      turn.endedAtMs = this.#nowMs
      this.#happen({ is: "turn ended", itemId, silenceMs: 500 })
    }
    mayIntervene()
    if (!turn.isTranscribed) this.#happen(this.#transcribe(turn, "as foreseen"))
  }

  #next(): Happening | undefined {
    const running = [...this.#answers].filter(([, { phase }]) => phase !== "over")
    switch (this.#draw(17)) {
      case 0:
        return { is: "speech started" }
      case 1:
        return this.#take()
      case 2:
      case 3: {
        const turn = this.#turns.at(-1)
        if (turn === undefined || turn.endedAtMs !== undefined) return undefined
        turn.endedAtMs = this.#nowMs
        return { is: "turn ended", itemId: turn.id, silenceMs: 500 }
      }
      case 4:
      case 5:
      case 6: {
        const waiting = this.#unheard
        const turn = waiting[this.#draw(Math.max(1, waiting.length))]
        if (turn === undefined) return undefined
        const asForeseen = this.#foreseen?.itemId === turn.id && this.#draw(3) > 0
        const drawn = this.#draw(texts.length + 1)
        return this.#transcribe(turn, asForeseen ? this.#foreseen?.text : texts[drawn])
      }
      case 7:
        return { is: "words last", itemId: this.#openTurn, text: "words that stay" }
      case 8:
      case 9: {
        const text = texts[this.#draw(texts.length + 1)]
        return { is: "foreseen", itemId: this.#openTurn, text }
      }
      case 10: {
        const isBeside = this.#draw(3) === 0
        // A client's event waits until the one before it is carried out.
        if ([...this.#asks.values()].some((of) => of !== "create beside") && !isBeside) return undefined
        const ask = this.#ask(isBeside ? "create beside" : "create")
        return { is: "create", ask, options: `given ${ask}`, isBeside }
      }
      case 11: {
        const [key] = running[this.#draw(Math.max(1, running.length))] ?? []
        const which = this.#draw(3)
        return {
          is: "cancel",
          ask: this.#ask("cancel"),
          key: which === 0 ? "newest" : which === 1 ? undefined : key,
        }
      }
      case 12: {
        const spoken = [...this.#answers.values()].flatMap(({ itemId }) => itemId ?? [])
        const itemId = spoken[this.#draw(Math.max(1, spoken.length))] ?? this.#lastSpoken
        if (itemId === undefined) return undefined
        return { is: "truncate", ask: this.#ask("truncate"), itemId, endMs: this.#draw(3_000) }
      }
      case 13: {
        this.#rulesRevision++
        return { is: "rules changed", rules: this.#drawRules() }
      }
      case 14: {
        this.#version++
        return undefined
      }
      case 15: {
        if (this.#timer !== undefined && this.#draw(2) === 0) {
          const timer = this.#draw(4) === 0 ? this.#timer - 1 : this.#timer
          if (timer === this.#timer) this.#timer = undefined
          return { is: "silence lasted", timer }
        }
        if (this.#held !== undefined && this.#draw(3) === 0) this.#held.isOver = true
        return undefined
      }
      default:
        return this.#progress(this.#draw(8))
    }
  }

  #take(): { readonly is: "turn taken"; readonly itemId: string } {
    const id = this.#openTurn
    this.#openTurn = `turn ${this.#turns.length + 1}`
    this.#turns.push({ id, isTranscribed: false, text: undefined, endedAtMs: undefined, fate: "dropped" })
    this.#version++
    return { is: "turn taken", itemId: id }
  }

  #drawRules(): Rules {
    return {
      creates: this.#draw(4) > 0,
      interrupts: this.#draw(3) > 0,
      idleMs: this.#draw(2) === 0 ? null : 2_000,
    }
  }

  #ask(of: "create" | "create beside" | "cancel" | "truncate"): Ask {
    const ask = this.#nextAsk++
    this.#asks.set(ask, of)
    return ask
  }

  #transcribe(turn: Turn, text: string | undefined): Happening {
    turn.isTranscribed = true
    turn.text = text
    this.#version++
    return { is: "transcribed", itemId: turn.id, text }
  }

  /** An answer goes on. */
  #progress(choice: number): Happening | undefined {
    const going = [...this.#answers].filter(([, { isEndTold }]) => !isEndTold)
    const [key, answer] = going[choice % Math.max(1, going.length)] ?? []
    if (key === undefined || answer === undefined) return undefined
    // A message may begin while its answer is being cancelled.
    const isLate = answer.phase === "over" && answer.itemId === undefined && !answer.isBeside
    if (isLate && key !== this.#current && this.#draw(2) === 0) {
      answer.itemId = `answer ${key}`
      return { is: "message began", key, itemId: answer.itemId }
    }
    if (answer.phase === "over") return this.#tellEnd(key, answer)
    if (answer.itemId === undefined && !answer.isBeside) {
      answer.itemId = `answer ${key}`
      this.#playingMs += 700
      if (key === this.#current) this.#lastSpoken = answer.itemId
      return { is: "message began", key, itemId: answer.itemId }
    }
    if (answer.phase === "writing") {
      answer.phase = "draining"
      return undefined
    }
    answer.phase = "over"
    return undefined
  }

  #tellEnd(key: AnswerKey, answer: WorldAnswer): Happening {
    answer.isEndTold = true
    return { is: "ended", key }
  }

  // ------------------------------------------------------------ what is done

  #happen(first: Happening): void {
    const events = [first]
    for (let event = events.shift(); event !== undefined; event = events.shift()) {
      const before = { current: this.#current }
      this.#wasGiven = this.#isAnswering
      this.#justDropped = undefined
      this.#count(event.is)
      const expected = this.#expectedOf(event)
      const [state, commands] = this.#decide(this.state, event, this.#facts)
      this.state = state
      for (const command of commands) {
        this.#count(command.do)
        const became = this.#carryOut(command)
        if (became !== undefined) events.push(became)
      }
      expected(commands, before.current)
      this.#checkState(events.length === 0)
    }
  }

  /** What an event must lead to, judged after its commands. */
  #expectedOf(event: Happening): (commands: ReadonlyArray<Doing>, current: AnswerKey | undefined) => void {
    const wasAnswering = this.#isAnswering
    const wasPlaying = this.#playingMs > 0
    const { rules } = this.state
    const unheard = this.#unheard.length
    const ofKind = (commands: ReadonlyArray<Doing>, kind: Doing["do"]) =>
      commands.filter((command) => command.do === kind)
    switch (event.is) {
      case "speech started": {
        const lastSpoken = this.#lastSpoken
        const hadTimer = this.#timer !== undefined
        if (rules.interrupts) for (const turn of this.#turns) if (turn.fate === "waits") turn.fate = "dropped"
        return (commands, current) => {
          assert.equal(ofKind(commands, "report").length > 0, true, "speech counts as load")
          assert.equal(ofKind(commands, "await no silence").length, hadTimer ? 1 : 0)
          if (!rules.interrupts) return assert.equal(ofKind(commands, "cancel").length, 0)
          assert.deepEqual(
            ofKind(commands, "cancel"),
            wasAnswering ? [{ do: "cancel", key: current, reason: "turn_detected" }] : [],
          )
          assert.equal(
            ofKind(commands, "keep played").length,
            !wasAnswering && wasPlaying && lastSpoken !== undefined ? 1 : 0,
          )
          assert.equal(this.#held, undefined, "speech drops what is prepared")
        }
      }
      case "turn taken": {
        const hadTimer = this.#timer !== undefined
        return (commands) => {
          assert.equal(ofKind(commands, "report").length, 1)
          assert.equal(ofKind(commands, "await no silence").length, hadTimer ? 1 : 0)
        }
      }
      case "turn ended": {
        const turn = this.#turns.find(({ id }) => id === event.itemId)!
        const waiting = this.state.due.filter(({ of }) => of === "turn").length
        const isAnswered = rules.creates && !wasAnswering && waiting < mostTurnsDue
        const isSilent = turn.isTranscribed && (turn.text ?? "").trim() === ""
        if (isAnswered && !isSilent) turn.fate = "waits"
        return () => {}
      }
      case "transcribed": {
        const turn = this.#turns.find(({ id }) => id === event.itemId)!
        if (turn.fate === "waits" && (turn.text ?? "").trim() === "") turn.fate = "dropped"
        return () => {}
      }
      case "words last": {
        const isRead = rules.creates && !wasAnswering && this.#mayReadAhead()
        const turn = { itemId: event.itemId, text: event.text }
        return (commands) => assert.deepEqual(commands, isRead ? [{ do: "read ahead", turn }] : [])
      }
      case "foreseen": {
        this.#foreseen = event.text === undefined ? undefined : { itemId: event.itemId, text: event.text }
        const before = this.#held
        const stood =
          before !== undefined &&
          !before.isOver &&
          before.itemId === event.itemId &&
          before.text === event.text &&
          before.version === this.#version + 2 &&
          before.rules === this.#rulesRevision
        const isPrepared =
          event.text !== undefined &&
          event.text.trim() !== "" &&
          rules.creates &&
          !wasAnswering &&
          unheard === 0 &&
          !this.#isFull
        return (commands) => {
          assert.equal(ofKind(commands, "prepare").length, !stood && isPrepared ? 1 : 0)
          if (stood) assert.equal(this.#held, before, "what stands is kept")
          else if (!isPrepared) assert.equal(this.#held, undefined, "what does not stand is dropped")
        }
      }
      case "create": {
        const besides = [...this.#answers.values()].filter((one) => one.isBeside && !one.isEndTold).length
        const waiting = [...this.#asks].filter(
          ([ask, of]) => of === "create beside" && ask !== event.ask,
        ).length
        this.#createdAtMs.set(this.#nowMs, { ask: event.ask, options: event.options })
        return (commands) => {
          if (!event.isBeside) return
          const refused = ofKind(commands, "refuse").length === 1
          assert.equal(
            refused,
            besides + waiting >= mostBeside,
            "so many beside the conversation, and no more",
          )
        }
      }
      case "cancel": {
        const key = event.key === "newest" ? this.#current : event.key
        const answer = key === undefined ? undefined : this.#answers.get(key)
        const isThere =
          answer !== undefined && !answer.isEndTold && (answer.isBeside || answer.phase !== "over")
        return (commands) => {
          assert.equal(
            ofKind(commands, "cancel").length,
            isThere ? 1 : 0,
            "what is there is cancelled, and nothing else",
          )
          assert.equal(this.#asks.has(event.ask), false)
          const kind = isThere ? "carried out" : "refuse"
          assert.equal(commands.filter((one) => one.do === kind && one.ask === event.ask).length, 1)
        }
      }
      case "truncate": {
        const active = this.#current === undefined ? undefined : this.#answers.get(this.#current)
        const isActive = wasAnswering && active?.itemId === event.itemId
        const stops = event.itemId === this.#lastSpoken
        return (commands, current) => {
          const [first, second] = commands
          const cut = { do: "truncate", ask: event.ask, itemId: event.itemId, endMs: event.endMs, stops }
          if (!isActive) return assert.deepEqual(first, cut)
          assert.deepEqual(first, { do: "cancel", key: current, reason: "client_cancelled" })
          assert.deepEqual(second, cut)
        }
      }
      case "rules changed": {
        const isRead = this.#mayReadAhead()
        return (commands) => {
          assert.deepEqual(this.state.rules, event.rules)
          assert.deepEqual(commands, isRead ? [{ do: "read ahead", turn: undefined }] : [])
        }
      }
      case "ended": {
        const isCurrent = event.key === this.#current
        if (isCurrent) this.#current = undefined
        const { idleMs } = rules
        const playing = this.#playingMs
        return (commands) => {
          const silences = ofKind(commands, "await silence")
          assert.equal(silences.length, isCurrent && idleMs !== null ? 1 : 0)
          for (const one of silences)
            if (one.do === "await silence") assert.equal(one.ms, playing + (idleMs ?? 0))
        }
      }
      case "silence lasted": {
        const isAwaited = this.#timer === undefined && this.state.timer === event.timer
        return (commands) =>
          assert.equal(ofKind(commands, "take silence").length, isAwaited && !wasAnswering ? 1 : 0)
      }
      case "did not begin": {
        const waiting = this.state.due.length
        return (commands) => {
          if (event.error !== undefined) return
          // A full history takes none of those that wait behind it either.
          const most = this.#isFull ? 1 + waiting : 1
          const { length } = ofKind(commands, this.#isFull ? "fail" : "start")
          assert.ok(length >= 1 && length <= most, "what was prepared and failed is made anew")
        }
      }
      default:
        return () => {}
    }
  }

  /** Whether something may be read ahead now; then it is. */
  #mayReadAhead(): boolean {
    let left = readAheads.burst
    let sinceMs = 0
    for (const atMs of this.#readAtMs) {
      left = Math.min(readAheads.burst, left + ((atMs - sinceMs) / 1000) * readAheads.perSecond) - 1
      sinceMs = atMs
    }
    const now = Math.min(readAheads.burst, left + ((this.#nowMs - sinceMs) / 1000) * readAheads.perSecond)
    if (now < 1) return false
    this.#readAtMs = [...this.#readAtMs, this.#nowMs]
    return true
  }

  #settled(ask: Ask): void {
    assert.ok(this.#asks.delete(ask), `a client's event is carried out once: ${ask}`)
  }

  #carryOut(command: Doing): Happening | undefined {
    switch (command.do) {
      case "start":
        return this.#start(command)
      case "prepare":
        assert.equal(this.#isFull, false, "a full history takes no answer")
        assert.equal(this.#held, undefined, "one answer is prepared at a time")
        assert.ok(command.text.trim() !== "")
        if (this.#draw(6) === 0) return { is: "did not begin", key: command.key, error: "no memory" }
        this.#held = {
          key: command.key,
          itemId: command.itemId,
          text: command.text,
          version: this.#version + 2,
          rules: this.#rulesRevision,
          isOver: false,
        }
        return undefined
      case "release":
        return this.#release(command)
      case "discard":
        // One that could not be prepared is dropped by its event.
        assert.equal(this.#held?.key, command.key, "what is dropped was prepared")
        this.#justDropped = this.#held
        this.#held = undefined
        return undefined
      case "flush":
        assert.equal(command.key, this.#current)
        assert.equal(this.#answers.get(command.key)?.phase, "draining")
        assert.equal(this.#flushed.has(command.key), false, "an answer is flushed once")
        this.#flushed.add(command.key)
        return undefined
      case "cancel": {
        const answer = this.#answers.get(command.key)
        assert.ok(answer !== undefined && !answer.isEndTold, "what is cancelled is there")
        answer.phase = "over"
        if (command.reason === "turn_detected") {
          this.#playingMs = 0
          this.#current = undefined
        }
        return undefined
      }
      case "keep played":
        assert.equal(command.itemId, this.#lastSpoken)
        this.#playingMs = 0
        this.#version++
        return undefined
      case "truncate":
        this.#settled(command.ask)
        if (command.stops) this.#playingMs = 0
        this.#version++
        return undefined
      case "carried out":
      case "refuse":
        this.#settled(command.ask)
        return undefined
      case "fail":
        if (command.error === "full") assert.equal(this.#isFull, true)
        if (command.ask !== undefined) this.#settled(command.ask)
        return undefined
      case "await silence":
        assert.equal(this.#timer, undefined, "one silence is awaited")
        assert.equal(this.#isAnswering, false)
        this.#timer = command.timer
        return undefined
      case "await no silence":
        assert.notEqual(this.#timer, undefined)
        this.#timer = undefined
        return undefined
      default:
        return undefined
    }
  }

  /** The turn whose end, or the event whose time, is the cause of an answer. */
  #begin(key: AnswerKey, cause: { readonly atMs: number; readonly silenceMs: number | undefined }): void {
    assert.equal(this.#begun.has(key), false, "an answer begins once")
    this.#begun.add(key)
    if (cause.silenceMs === undefined) return
    const turn = this.#turns.find(({ endedAtMs }) => endedAtMs === cause.atMs)
    assert.ok(turn?.isTranscribed && (turn.text ?? "").trim() !== "", "what was understood")
    assert.equal(
      turn.fate,
      "waits",
      `a turn is answered once, and not after speech that stops it: ${turn.fate}`,
    )
    assert.deepEqual(this.#unheard, [], "all turns are understood first")
    turn.fate = "answered"
  }

  #start(command: Extract<Doing, { readonly do: "start" }>): Happening {
    assert.equal(this.#isFull, false, "a full history takes no answer")
    const created = this.#createdAtMs.get(command.cause.atMs)
    const isBeside = created !== undefined && this.#asks.get(created.ask) === "create beside"
    if (created !== undefined && command.options !== undefined) assert.equal(command.options, created.options)
    if (!isBeside) assert.equal(this.#isAnswering, false, "one answer of the conversation at a time")
    if (command.options !== undefined) assert.equal(this.#held, undefined, "what is prepared is dropped")
    assert.deepEqual(
      command.options === undefined && command.cause.silenceMs === undefined ? [] : this.#unheard,
      [],
      "all turns are understood first",
    )
    if (command.cause.silenceMs !== undefined) this.#checkNotPrepared(command.cause.atMs)
    this.#begin(command.key, command.cause)
    // What was given before is over: the next answer takes its place, also if it does not begin.
    if (!isBeside) this.#current = undefined
    if (this.#draw(6) === 0) return { is: "did not begin", key: command.key, error: "rate limit" }
    this.#answers.set(command.key, { isBeside, phase: "writing", itemId: undefined, isEndTold: false })
    if (!isBeside) this.#current = command.key
    return { is: "began", key: command.key }
  }

  /** An answer to this turn is not made anew where the one that is prepared would do. */
  #checkNotPrepared(atMs: number): void {
    const turn = this.#turns.find(({ endedAtMs }) => endedAtMs === atMs)
    const held = this.#held ?? this.#justDropped
    if (turn === undefined || held === undefined) return
    const isSo =
      held.itemId === turn.id &&
      held.text === turn.text &&
      held.version === this.#version &&
      held.rules === this.#rulesRevision &&
      !held.isOver
    assert.equal(isSo, false, "what is prepared is used")
  }

  #release(command: Extract<Doing, { readonly do: "release" }>): Happening {
    const held = this.#held
    assert.ok(held !== undefined && held.key === command.key && !held.isOver, "what is released was prepared")
    assert.equal(this.#isAnswering, false, "one answer of the conversation at a time")
    const turn = this.#turns.find(({ endedAtMs }) => endedAtMs === command.cause.atMs)
    assert.deepEqual({ id: turn?.id, text: turn?.text }, { id: held.itemId, text: held.text }, "to this turn")
    assert.equal(held.version, this.#version, "to this history")
    assert.equal(held.rules, this.#rulesRevision, "by these settings")
    this.#held = undefined
    this.#foreseen = undefined
    this.#current = undefined
    const chance = this.#draw(8)
    if (chance === 0) return { is: "did not begin", key: command.key, error: undefined }
    this.#begin(command.key, command.cause)
    if (chance === 1) return { is: "did not begin", key: command.key, error: "rate limit" }
    this.#answers.set(command.key, { isBeside: false, phase: "writing", itemId: undefined, isEndTold: false })
    this.#current = command.key
    return { is: "began", key: command.key }
  }

  // ------------------------------------------------------------ what always holds

  #checkState(isSettled: boolean): void {
    const { beside, due, heard, lastSpoken, prepared, timer, unheard } = this.state
    assert.equal(unheard.size, this.#unheard.length)
    assert.ok(due.length <= mostTurnsDue + this.#asks.size, "what waits is bounded")
    assert.ok(heard.size <= this.#turns.length && beside.size <= mostBeside)
    if (!isSettled) return
    assert.equal(prepared?.key, this.#held?.key, "what is prepared is known, or was dropped")
    assert.equal(timer, this.#timer)
    assert.equal(lastSpoken, this.#lastSpoken)
    if (this.#isAnswering) assert.equal(timer, undefined, "no silence is awaited while an answer is given")
    if (unheard.size === 0 && this.#current === undefined)
      assert.deepEqual(due, [], "what can begin has begun")
    for (const turn of this.#turns)
      if (turn.fate === "waits") {
        const isDue = due.some((one) => one.of === "turn" && one.itemId === turn.id)
        if (isDue) continue
        // A turn that comes to its time while an answer is given is not answered.
        assert.ok(this.#wasGiven || this.#isAnswering || this.#isFull, `${turn.id} is forgotten`)
        turn.fate = "dropped"
      }
    const [first] = due
    const isDraining = this.#current !== undefined && this.#answers.get(this.#current)?.phase === "draining"
    if (first?.of === "create" && !first.isBeside && first.hasFlushed && isDraining)
      assert.ok(this.#flushed.has(this.#current!), "what is left of an answer goes out at once")
  }

  /** So many turns that no speech interrupts, and of which the first is transcribed last. */
  crowd(count: number): void {
    this.#rulesRevision++
    this.#happen({ is: "rules changed", rules: { creates: true, interrupts: false, idleMs: null } })
    for (let number = 0; number < count; number++) {
      this.#nowMs++
      const taken = this.#take()
      this.#happen(taken)
      this.#nowMs++
      this.#turns.at(-1)!.endedAtMs = this.#nowMs
      this.#happen({ is: "turn ended", itemId: taken.itemId, silenceMs: 500 })
      if (number > 0) this.#happen(this.#transcribe(this.#turns.at(-1)!, "yes"))
    }
  }

  /** Everything comes to its end: then nothing waits. */
  settle(): void {
    for (const turn of this.#unheard) this.#happen(this.#transcribe(turn, "at last"))
    for (let round = 0; round < 8; round++)
      for (const [key, answer] of this.#answers) {
        if (answer.isEndTold) continue
        answer.phase = "over"
        this.#happen(this.#tellEnd(key, answer))
      }
    assert.deepEqual([...this.#asks], [], "every client's event is carried out or refused")
    assert.deepEqual(this.state.due, [])
    assert.equal(this.state.answer, undefined)
    assert.equal(this.state.beside.size, 0)
  }
}

const rules = { creates: true, interrupts: true, idleMs: null }
const steps = fc.array(fc.nat(1_000_000), { minLength: 40, maxLength: 120 })

/** Lives through random histories with a decider; throws at the first promise that is broken. How often each event and command was. */
export const liveHistories = (decider: TurnDecider, count: number): ReadonlyMap<string, number> => {
  const seen = new Map<string, number>()
  fc.assert(
    fc.property(steps, (numbers) => {
      const world = new ConversationWorld(decider, silent(rules), numbers)
      for (let step = 0; step < numbers.length; step++) world.step()
      if (numbers.length % 8 === 0) world.crowd(12)
      world.settle()
      for (const [what, times] of world.seen) seen.set(what, (seen.get(what) ?? 0) + times)
    }),
    { numRuns: count, seed: 3, endOnFailure: true },
  )
  return seen
}
