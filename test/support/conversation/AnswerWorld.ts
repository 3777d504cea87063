// What surrounds the decider of an answer, as a model: a language model that writes, a voice that speaks, a socket that writes late, a
// client that plays, cuts and truncates. It draws what happens next from numbers, does what is commanded with a real history and a real
// clock, and throws at the first thing that must not be.
import { strict as assert } from "node:assert"
import fc from "fast-check"
import { samplesToMs, speechRateHz } from "#domain/audio/Audio.ts"
import type { SpokenWord } from "#domain/audio/TimedWords.ts"
import type {
  AnswerCommand,
  AnswerEvent,
  AnswerState,
  AnswerTerms,
  Written,
} from "#domain/conversation/AnswerGiving.ts"
import * as answerGiving from "#domain/conversation/AnswerGiving.ts"
import { History } from "#domain/conversation/History.ts"
import type { Item } from "#domain/conversation/Items.ts"
import { PlayClock } from "#domain/conversation/PlayClock.ts"
import { brokenOrders } from "../wire/ConversationOrders.ts"

export type AnswerDecider = Pick<typeof answerGiving, "decide" | "isCharged" | "phaseOf" | "unbegun">

const { eventSamples, leadMs, mostWaiting } = answerGiving

/** What is said is no matter here. */
const quiet = new Int16Array(64_000)

type Frame = Readonly<Record<string, unknown>>

/** What the model writes: white space, words, ends of clauses and sentences. */
const tokens = [
  ...[
    " ",
    "\n",
    "Hello",
    " there",
    " and",
    " so",
    " we",
    " go",
    " home",
    " now",
    " with",
    " all",
    " of",
    " them",
  ],
  ...[", ", ". ", "! ", ". ", "! ", "; ", " 25", " long word"],
]

/** A word of a spoken piece, where it stands in the answer's audio. */
interface PlacedWord {
  readonly text: string
  readonly start: number
  readonly end: number
}

interface SpokenPiece {
  readonly number: number
  readonly text: string
  /** Whether the voice tells the times of its words. */
  readonly isTimed: boolean
  /** Words that the voice has not spoken yet. */
  readonly words: Array<string>
  samples: number
  sent: number
  written: number
  readonly placed: Array<PlacedWord>
  isOver: boolean
}

/** The conversation of the answers of one history. */
class AnswerWorld {
  readonly #decider: AnswerDecider
  readonly #numbers: ReadonlyArray<number>
  #at = 0
  readonly seen: Map<string, number>
  nowMs = 1_000
  readonly history = new History()
  readonly clock = new PlayClock(speechRateHz)
  readonly frames: Array<Frame> = []
  #nextEvent = 0
  #nextAnswer = 0
  /** When the client will have played all that it got. Computed apart from the clock. */
  playsUntilMs = 0

  constructor(decider: AnswerDecider, numbers: ReadonlyArray<number>, seen: Map<string, number>) {
    this.#decider = decider
    this.#numbers = numbers
    this.seen = seen
  }

  draw(below: number): number {
    const value = this.#numbers[this.#at++ % this.#numbers.length] ?? 0
    // Spread, so that a repeated list of numbers does not repeat its choices.
    return Math.abs((value ^ Math.imul(this.#at, 2_654_435_761)) % below)
  }

  count(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1)
  }

  tell(type: string, body: object): void {
    this.frames.push({ type, event_id: `event ${this.#nextEvent++}`, ...body })
  }

  pass(ms: number): void {
    this.nowMs += ms
  }

  live(): void {
    const answers = 1 + this.draw(3)
    for (let number = 0; number < answers; number++) {
      this.pass(this.draw(1_500))
      const terms: AnswerTerms = {
        id: `resp_${this.#nextAnswer}`,
        messageId: `item_${this.#nextAnswer++}`,
        isBeside: this.draw(4) === 0,
        speaks: this.draw(4) > 0,
        isPaced: this.draw(2) === 0,
        isHeld: this.draw(3) === 0,
        about: {
          conversation_id: "conv",
          output_modalities: ["audio"],
          max_output_tokens: 100,
          audio: {
            output: { format: { type: "audio/pcm", rate: 24_000 }, voice: "v", speed: 1, pacing: "none" },
          },
          metadata: null,
        },
      }
      new LivingAnswer(this, this.#decider, terms).live()
    }
    assert.deepEqual(brokenOrders(this.frames), [], "the rules of order")
  }
}

class LivingAnswer {
  readonly #world: AnswerWorld
  readonly #decider: AnswerDecider
  readonly #terms: AnswerTerms
  state: AnswerState
  /** Commands that are not carried out yet, in their order. */
  readonly #outbox: Array<AnswerCommand> = []
  /** Events of audio in it. */
  #unwritten = 0
  #isReleased: boolean
  #isDropped = false
  #hasEnded = false
  #stops = 0
  #accounts = 0
  #cut: "turn_detected" | "client_cancelled" | undefined
  // The model.
  readonly #written: Array<Written> = []
  #writes: "on" | "whole" | "cut" | "failed" = "on"
  #outputTokens = 0
  #isModelPaused = false
  #pauses = 0
  // The voice.
  readonly #pieces: Array<SpokenPiece> = []
  #voiceHasFailed = false
  #madeSamples = 0
  #sentSamples = 0
  #writtenSamples = 0
  #hasMade = false
  // Time.
  #dueAtMs: number | undefined
  #isHurried = false
  /** Where the answer begins in the audio that the client has got. */
  #startsAtMs: number | undefined
  /** Samples that count as played, once the client has cut it. */
  #ended: { readonly heard: number; readonly isWhole: boolean } | undefined
  readonly #texts = { deltas: "", captions: "" }
  readonly #argumentsOf = new Map<string, string>()
  readonly #doneItems = new Map<string, Item>()

  constructor(world: AnswerWorld, decider: AnswerDecider, terms: AnswerTerms) {
    this.#world = world
    this.#decider = decider
    this.#terms = terms
    this.state = decider.unbegun(terms)
    this.#isReleased = !terms.isHeld
  }

  live(): void {
    const world = this.#world
    this.#happen({ is: "began" })
    const steps = 10 + world.draw(50)
    for (let step = 0; step < steps && !this.#hasEnded; step++) this.#step()
    this.#settle()
    this.#check()
    this.#afterwards()
  }

  // ------------------------------------------------------------ what happens

  #step(): void {
    const world = this.#world
    world.pass(world.draw(8) === 0 ? world.draw(2_000) : world.draw(60))
    this.#fire()
    switch (world.draw(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return this.#write()
      case 4:
      case 5:
      case 6:
      case 7:
        return this.#speak()
      case 8:
      case 9:
      case 10:
      case 11:
        return this.#carryOut(1 + world.draw(6))
      case 12:
        if (this.#terms.isHeld && !this.#isReleased && !this.#isOver) this.#release()
        return
      case 13:
        if (this.#terms.isHeld && !this.#isReleased && world.draw(4) === 0) this.#discard()
        return
      case 14:
        if (this.#dueAtMs !== undefined || world.draw(6) === 0) this.#hurry()
        return
      default:
        if (world.draw(5) === 0) this.#cancel(world.draw(2) === 0 ? "turn_detected" : "client_cancelled")
    }
  }

  get #isOver(): boolean {
    return this.#decider.phaseOf(this.state) === "over"
  }

  #release(): void {
    this.#isReleased = true
    const commands = this.#happen({ is: "released" })
    const [first] = commands
    assert.ok(
      first?.do === "send" && first.message.type === "response.created",
      "what is released is told first of all",
    )
  }

  #discard(): void {
    this.#isDropped = true
    this.#happen({ is: "discard" })
  }

  #cancel(reason: "turn_detected" | "client_cancelled"): void {
    if (this.#isOver) {
      assert.deepEqual(this.#happen({ is: "cancel", reason }), [])
      return
    }
    if (!this.#isReleased) this.#isDropped = true
    this.#cut = reason
    const heard = this.#playedSamples
    const isWhole = this.#sentSamples === 0
    const commands = this.#happen({ is: "cancel", reason })
    this.#ended = { heard, isWhole }
    for (const command of commands) {
      assert.ok(
        command.do !== "play" && command.do !== "send audio" && command.do !== "speak",
        "nothing after a cut",
      )
      if (command.do === "send") assert.ok(!command.message.type.endsWith(".delta"), "nothing after a cut")
    }
    assert.equal(commands.at(-1)?.do, "end")
    const isSilenced = commands.some((one) => one.do === "play no more")
    assert.equal(
      isSilenced,
      this.#isReleased && reason === "turn_detected",
      "the user's speech ends what is played",
    )
  }

  #hurry(): void {
    const isAwaited = this.#dueAtMs !== undefined
    this.#isHurried = true
    this.#dueAtMs = undefined
    this.#happen({ is: "hurry" })
    if (!isAwaited) return
    const sent = this.#sentSamples
    this.#carryOut(Number.POSITIVE_INFINITY)
    assert.ok(this.#sentSamples > sent, "what waits for its time goes out at once")
  }

  #fire(): void {
    if (this.#dueAtMs === undefined || this.#dueAtMs > this.#world.nowMs) return
    this.#dueAtMs = undefined
    this.#happen({ is: "due" })
  }

  /** The model goes on. */
  #write(): void {
    const world = this.#world
    if (this.#isModelPaused || this.#writes !== "on") return
    if (world.draw(12) === 0) return this.#endWriting()
    if (this.#written.length === 0 && world.draw(3) === 0)
      this.#happen({ is: "prompt read", counts: { inputTokens: 7, cachedTokens: 3, imageTokens: 0 } })
    this.#outputTokens += 1 + world.draw(2)
    const written = this.#nextWritten()
    if (written !== undefined) this.#written.push(written)
    this.#happen({ is: "wrote", written, outputTokens: this.#outputTokens })
  }

  #nextWritten(): Written | undefined {
    const world = this.#world
    const calls = this.#written.filter(({ is }) => is === "call").length
    switch (world.draw(14)) {
      case 0:
        return undefined
      case 1:
        return {
          is: "call",
          call: calls,
          name: "look",
          id: `call item ${this.#terms.id} ${calls}`,
          callId: `call ${calls}`,
        }
      case 2:
      case 3:
        if (calls > 0)
          return {
            is: "arguments",
            call: world.draw(calls + 1),
            text: ["", "{", '"a":1', "}"][world.draw(4)]!,
          }
        return { is: "text", text: " so" }
      default:
        return { is: "text", text: tokens[world.draw(tokens.length)]! }
    }
  }

  #endWriting(): void {
    const world = this.#world
    if (world.draw(8) === 0) {
      this.#writes = "failed"
      this.#happen({ is: "failed", error: { type: "t", code: "model", message: "m" } })
      return
    }
    this.#writes = world.draw(4) === 0 ? "cut" : "whole"
    // Tokens that are no part of the text.
    this.#outputTokens += world.draw(2)
    this.#happen({ is: "all written", outputTokens: this.#outputTokens, isCut: this.#writes === "cut" })
  }

  /** The voice goes on. */
  #speak(): void {
    const world = this.#world
    const piece = this.#pieces.at(-1)
    if (piece === undefined || piece.isOver || this.#voiceHasFailed) return
    if (world.draw(40) === 0) {
      this.#voiceHasFailed = true
      this.#happen({ is: "voice failed", error: { type: "t", code: "voice", message: "v" } })
      return
    }
    if (piece.words.length === 0) {
      piece.isOver = true
      this.#hasMade = true
      this.#happen({ is: "piece spoken" })
      return
    }
    const count = 1 + world.draw(3)
    const words = piece.words.splice(0, count)
    const spoken: Array<SpokenWord> = []
    const from = piece.samples
    for (const text of words) {
      const start = piece.samples
      const end = start + 1_200 + world.draw(20_000)
      if (piece.isTimed) spoken.push({ text: text.trim(), start, end })
      piece.placed.push({ text, start, end })
      piece.samples = end
    }
    const audio = quiet.subarray(0, piece.samples - from)
    this.#madeSamples += audio.length
    this.#hasMade = true
    this.#happen({ is: "sounded", samples: audio, words: spoken })
  }

  /** What is played of it by now, if the client plays all that it got. */
  get #playedSamples(): number {
    if (this.#startsAtMs === undefined) return 0
    const aheadMs = Math.max(0, this.#world.playsUntilMs - this.#world.nowMs)
    return Math.max(0, this.#sentSamples - Math.round((aheadMs * speechRateHz) / 1000))
  }

  // ------------------------------------------------------------ what is done

  #happen(event: AnswerEvent): ReadonlyArray<AnswerCommand> {
    const { clock, nowMs } = this.#world
    this.#world.count(event.is)
    const wasOver = this.#isOver
    const [state, commands] = this.#decider.decide(this.state, event, {
      nowMs,
      sentSamples: clock.sentSamples,
      playedSamples: clock.playedSamples(nowMs),
      playedUntilMs: clock.playedUntilMs,
    })
    this.state = state
    const ends = ["cancel", "discard", "failed", "voice failed"]
    if (this.#isOver && !wasOver && !this.#isReleased)
      assert.ok(ends.includes(event.is), "what is held waits")
    if (event.is === "voice failed" && !this.#isReleased)
      assert.ok(this.#isOver, "what has failed is of no use")
    if (wasOver) assert.equal(commands.length, 0, "what happens after the end changes nothing")
    for (const command of commands) {
      this.#world.count(command.do)
      this.#decided(command, event.is)
      this.#outbox.push(command)
      if (command.do === "send audio") this.#unwritten++
    }
    this.#checkState()
    return commands
  }

  /** What is done at once, before what is sent. */
  #decided(command: AnswerCommand, event: AnswerEvent["is"]): void {
    const { clock, nowMs } = this.#world
    assert.equal(this.#hasEnded, false, "the end is the last command")
    const isInternal = ["speak", "pause model", "resume model", "stop", "end"].includes(command.do)
    assert.ok(this.#isReleased || isInternal, `what is held is not told: ${command.do}`)
    switch (command.do) {
      case "speak": {
        assert.ok(
          this.#pieces.every(({ isOver }) => isOver),
          "one piece at a time",
        )
        assert.equal(command.piece, this.#pieces.length, "in their order")
        assert.ok(this.#isReleased || this.#pieces.length === 0, "one piece while it is held")
        assert.ok(this.#madeSamples - this.#sentSamples <= mostWaiting, "what waits is bounded")
        assert.equal(this.#stops, 0)
        const isMute = this.#world.draw(10) === 0
        const letters = [...command.text.matchAll(/\S+/g)].map(([word]) => word.replace(/\W/g, ""))
        // Words that cannot be taken for one another: then it is exact which of them were heard.
        const isClear =
          letters.every((word) => /^[a-z]+$/i.test(word)) && new Set(letters).size === letters.length
        this.#pieces.push({
          number: command.piece,
          text: command.text,
          isTimed: isClear && this.#world.draw(4) > 0,
          words: isMute ? [] : [...command.text.matchAll(/\s*\S+/g)].map(([word]) => word),
          samples: 0,
          sent: 0,
          written: 0,
          placed: [],
          isOver: false,
        })
        return
      }
      case "play": {
        const count = command.samples.length
        assert.ok(count > 0 && count <= eventSamples, "events of 100 ms")
        assert.equal(this.#stops, 0, "nothing is played after the end")
        assert.equal(event, "free", "audio is decided only where it is written at once")
        const aheadMs = this.#world.playsUntilMs - nowMs
        if (this.#terms.isPaced && !this.#isHurried) assert.ok(aheadMs <= leadMs, "at the pace of playing")
        this.#startsAtMs ??= nowMs
        // Which piece it is of, the audio that is sent next says: each must be written as far as it is sent.
        const piece = this.#pieces.find(({ samples, sent }) => sent < samples)
        assert.ok(piece !== undefined, "pieces in their order")
        piece.sent += count
        assert.ok(piece.sent <= piece.samples, "what was made")
        this.#sentSamples += count
        clock.sent(count, nowMs)
        this.#world.playsUntilMs =
          Math.max(this.#world.playsUntilMs, nowMs) + samplesToMs(count, speechRateHz)
        return
      }
      case "await":
        assert.equal(this.#dueAtMs, undefined, "one time at a time is awaited")
        assert.ok(command.ms > 0 && this.#terms.isPaced && !this.#isHurried)
        this.#dueAtMs = this.#world.nowMs + command.ms
        return
      case "pause model":
        this.#pauses++
        this.#isModelPaused = true
        return
      case "resume model":
        this.#isModelPaused = false
        return
      case "play no more":
        clock.stopped(nowMs)
        this.#world.playsUntilMs = Math.min(this.#world.playsUntilMs, nowMs)
        return
      case "stop":
        this.#stops++
        this.#dueAtMs = undefined
        if (this.#writes === "on") this.#writes = "failed"
        this.#voiceHasFailed = true
        assert.equal(
          this.#decider.isCharged(this.state),
          this.#isReleased && this.#outputTokens > 0,
          "what is prepared is charged only where it is released",
        )
        return
      case "account": {
        this.#accounts++
        const { audioMs, outputTokens } = command.counts
        assert.equal(outputTokens, this.#outputTokens, "what was written is counted")
        assert.equal(audioMs, samplesToMs(this.#sentSamples, speechRateHz), "what was sent is counted")
        return
      }
      case "message began":
        assert.ok(this.#terms.speaks && !this.#terms.isBeside && command.itemId === this.#terms.messageId)
        return
      case "end":
        this.#hasEnded = true
    }
  }

  /** The socket writes the next of what is to be sent. */
  #carryOut(count: number): void {
    for (let done = 0; done < count; done++) {
      const command = this.#outbox.shift()
      if (command === undefined) return
      this.#sent(command)
    }
  }

  #sent(command: AnswerCommand): void {
    const { history, world } = { history: this.#world.history, world: this.#world }
    switch (command.do) {
      case "send": {
        const { type, ...body } = command.message
        world.tell(type, body)
        const { message } = command
        if (message.type === "response.output_text.delta") this.#texts.deltas += String(message.delta)
        if (message.type === "response.output_audio_transcript.delta") this.#texts.captions += message.delta
        if (message.type === "response.function_call_arguments.delta") {
          assert.notEqual(message.delta, "")
          this.#argumentsOf.set(
            message.item_id,
            (this.#argumentsOf.get(message.item_id) ?? "") + message.delta,
          )
        }
        if (message.type === "response.output_item.done") this.#doneItems.set(message.item.id, message.item)
        return
      }
      case "send audio":
        world.tell("response.output_audio.delta", { ...command.part, delta: "" })
        this.#writtenSamples += command.samples.length
        this.#pieces.find(({ number }) => number === command.piece)!.written += command.samples.length
        this.#unwritten--
        return
      case "call":
        this.#happen({ is: "free" })
        return
      case "join": {
        assert.equal(this.#terms.isBeside, false, "an answer beside the conversation joins no history")
        const isSpoken = this.#terms.speaks && command.item.type === "message"
        assert.equal(command.spoken !== undefined, isSpoken, "what is spoken can be truncated")
        const previous = history.add(command.item, "own", { spoken: command.spoken })
        assert.ok(previous === null || typeof previous === "string")
        return world.tell("conversation.item.added", { previous_item_id: previous, item: command.item })
      }
      case "complete": {
        const previous = history.before(command.item.id)
        history.replace(command.item, command.spoken)
        return world.tell("conversation.item.done", { previous_item_id: previous, item: command.item })
      }
    }
  }

  // ------------------------------------------------------------ what always holds

  #checkState(): void {
    const { life, pieces, texts, unsent, waitingSamples } = this.state
    assert.equal(life === "over", this.#stops > 0)
    if (life === "over") {
      assert.equal(this.#hasEnded, true)
      assert.equal(pieces.length + texts.length + unsent.length, 0, "what is over holds nothing")
      return
    }
    assert.equal(life === "given", this.#isReleased)
    if (life === "given") assert.equal(unsent.length, 0, "what is given is sent")
    assert.equal(waitingSamples, this.#madeSamples - this.#sentSamples)
    assert.ok(this.#unwritten <= 1, "one event of audio at a time")
    assert.ok(this.#pauses <= 1, "the model is paused once")
    if (this.#hasMade)
      assert.equal(this.#isModelPaused, false, "the model is paused until the voice has made something")
    if (!this.#terms.speaks) assert.equal(this.#pieces.length, 0)
  }

  /** Everything comes to its end. */
  #settle(): void {
    const world = this.#world
    for (let round = 0; !this.#hasEnded; round++) {
      assert.ok(round < 5_000, "it ends")
      if (this.#terms.isHeld && !this.#isReleased) {
        if (round > 3 && this.#written.length % 2 === 0) return void this.#discard()
        if (this.#isOver) break
        this.#release()
      }
      this.#carryOut(20)
      // A voice may be much faster than what is played.
      for (let times = world.draw(4) === 0 ? 20 : 1; times > 0; times--) this.#speak()
      if (this.#writes === "on" && !this.#isModelPaused) this.#endWriting()
      if (this.#dueAtMs !== undefined && world.draw(6) === 0) this.#hurry()
      if (this.#dueAtMs !== undefined) world.pass(Math.max(0, this.#dueAtMs - world.nowMs))
      this.#fire()
    }
    this.#carryOut(Number.POSITIVE_INFINITY)
    world.count(`ended: ${this.#cut ?? this.#writes}`)
    // What comes too late changes nothing.
    this.#happen({ is: "wrote", written: { is: "text", text: "late" }, outputTokens: 99 })
    this.#happen({ is: "sounded", samples: new Int16Array(10), words: [] })
    this.#happen({ is: "piece spoken" })
    this.#happen({ is: "released" })
  }

  /** What the model has written as text, without what is only white space before its first word. */
  get #writtenText(): string {
    const texts = this.#written.flatMap((one) => (one.is === "text" ? [one.text] : []))
    const first = texts.findIndex((text) => text.trim() !== "")
    return first < 0 ? "" : texts.slice(first).join("")
  }

  #check(): void {
    const { isBeside, messageId, speaks } = this.#terms
    assert.equal(this.#stops, 1, "it is stopped, and charged, once")
    assert.equal(this.#accounts, this.#isReleased ? 1 : 0, "it is accounted for once, if it is released")
    const item = this.#doneItems.get(messageId)
    if (this.#isDropped || !this.#isReleased) {
      assert.deepEqual(
        [this.#sentSamples, this.#doneItems.size],
        [0, 0],
        "nothing of what is dropped is told",
      )
      return
    }
    assert.equal(this.#writtenSamples, this.#sentSamples, "what is charged was sent")
    for (const { sent, written } of this.#pieces)
      assert.equal(written, sent, "each piece is charged for itself")
    const done = this.#world.frames.findLast(({ type }) => type === "response.done")
    const { output, status } = done?.response as {
      readonly status: string
      readonly output: ReadonlyArray<Item>
    }
    for (const one of output)
      assert.equal(one, this.#doneItems.get(one.id), "its output are its items as they ended")
    if (status === "completed" || status === "incomplete")
      assert.equal(this.#writes, status === "completed" ? "whole" : "cut", "it says how it ended")
    const isComplete = this.#cut === undefined && this.state.counts.outputTokens === this.#outputTokens
    if (this.#cut !== undefined) assert.equal(status, "cancelled")
    else assert.ok(["completed", "incomplete", "failed"].includes(status) && isComplete)
    const hasText = this.#written.some((one) => one.is === "text" && one.text.trim() !== "")
    assert.equal(item !== undefined, hasText, "the first word begins the message")
    for (const one of this.#written) if (one.is === "call") this.#checkCall(one, status)
    if (!isBeside)
      for (const [id, known] of this.#doneItems)
        assert.equal(this.#world.history.item(id), known, "the history knows it")
    if (item?.type !== "message") return
    const transcript = this.#transcriptOf(item)
    assert.equal(item.status, status === "completed" ? "completed" : "incomplete")
    if (!speaks) {
      assert.equal(this.#texts.deltas, this.#writtenText, "what is written is sent")
      assert.equal(transcript, this.#writtenText, "and kept")
      return
    }
    if (status === "completed" || status === "incomplete") {
      assert.equal(this.#madeSamples, this.#sentSamples, "all is spoken")
      assert.equal(this.#texts.captions.trim(), this.#writtenText.trim(), "and told")
      assert.equal(transcript.trim(), this.#writtenText.trim(), "and kept")
    } else {
      assert.ok(this.#texts.captions.startsWith(transcript) || this.#cut === undefined)
      const heard = this.#cut === undefined ? this.#sentSamples : this.#ended!.heard
      this.#checkHeard(transcript, heard)
    }
  }

  #checkCall(call: Extract<Written, { readonly is: "call" }>, status: string): void {
    const item = this.#doneItems.get(call.id)
    assert.ok(item?.type === "function_call", "each call ends once")
    const text = this.#written
      .slice(this.#written.indexOf(call))
      .flatMap((one) => (one.is === "arguments" && one.call === call.call ? [one.text] : []))
      .join("")
    assert.equal(this.#argumentsOf.get(call.id) ?? "", text, "its arguments are sent as they are written")
    const hasDone = this.#world.frames.some(
      ({ item_id, type }) => type === "response.function_call_arguments.done" && item_id === call.id,
    )
    assert.equal(item.status === "completed", hasDone)
    if (item.status === "completed") assert.equal(item.arguments, text.trim() === "" ? "{}" : text)
    else assert.notEqual(status, "completed")
    const isWritten = this.#writes === "whole" || this.#writes === "cut"
    assert.equal(hasDone, isWritten, "calls end when all is written")
  }

  #transcriptOf(item: Item): string {
    assert.ok(item.type === "message")
    const [part] = item.content
    if (part === undefined) return ""
    if (part.type === "output_text") return part.text
    return part.type === "output_audio" ? (part.transcript ?? "") : ""
  }

  /** The words that were heard in the first samples of the answer are what is kept. */
  #checkHeard(transcript: string, heard: number): void {
    let start = 0
    let least = ""
    let most = ""
    for (const piece of this.#pieces) {
      const end = start + piece.sent
      const isMute = piece.isOver && piece.samples === 0
      const isUnfinished = piece.sent < piece.samples || !piece.isOver
      if (isMute && heard >= start) most += piece.text
      if (isMute) continue
      if (heard <= start) break
      if (heard < end || isUnfinished) {
        for (const word of piece.placed) {
          const isHeard = start + (word.start + word.end) / 2 <= heard
          if (piece.isTimed && isHeard) {
            least += word.text
            most += word.text
          }
        }
        if (!piece.isTimed) {
          // Where the voice tells nothing, a word stands at its share of the characters.
          const reach = (piece.text.length * (heard - start)) / piece.samples
          const isBefore = ({ 0: word, index }: RegExpExecArray) => index + word.length / 2 <= reach
          const words = [...piece.text.matchAll(/\s*\S+/g)]
          const first = words.findIndex((word) => !isBefore(word))
          const known = (first < 0 ? words : words.slice(0, first)).map(([word]) => word).join("")
          least += known
          most += known
        }
        break
      }
      least += piece.text
      most += piece.text
      start = end
    }
    const all = this.#pieces.map(({ text }) => text).join("")
    assert.ok(all.startsWith(transcript), `no other words: ${transcript}`)
    const trimmed = transcript.trim()
    assert.ok(trimmed.length >= least.trim().length, `what was heard is kept: ${trimmed} | ${least}`)
    assert.ok(trimmed.length <= most.trim().length, `what was not heard is not kept: ${trimmed} | ${most}`)
  }

  /** The client says how much it has played, after the end. */
  #afterwards(): void {
    const { history, world } = { history: this.#world.history, world: this.#world }
    const item = this.#doneItems.get(this.#terms.messageId)
    if (item === undefined || this.#terms.isBeside || !this.#terms.speaks) return
    let least = Number.POSITIVE_INFINITY
    for (let times = world.draw(3); times > 0; times--) {
      const asked = world.draw(this.#sentSamples + 20_000)
      least = Math.min(least, asked, this.#sentSamples)
      assert.equal(history.truncate(item.id, asked), least, "a later cut brings nothing back")
      const kept = history.item(item.id)
      assert.ok(kept !== undefined)
      this.#checkHeard(this.#transcriptOf(kept), least)
      world.count("truncated")
    }
  }
}

const steps = fc.array(fc.nat(1_000_000), { minLength: 20, maxLength: 60 })

/** Lives through random histories with a decider; throws at the first promise that is broken. How often each event and command was. */
export const liveAnswers = (decider: AnswerDecider, count: number): ReadonlyMap<string, number> => {
  const seen = new Map<string, number>()
  fc.assert(
    fc.property(steps, (numbers) => new AnswerWorld(decider, numbers, seen).live()),
    { numRuns: count, seed: 3, endOnFailure: true },
  )
  return seen
}
