// What surrounds the decider of a live session, as a model: audio that comes, silences that last or do not, an engine that is slow or busy, an
// end for one of several reasons. It draws what happens next from numbers, does what is commanded, and throws at the first thing that must
// not be.
import { strict as assert } from "node:assert"
import fc from "fast-check"
import { listenRateHz, msToSamples } from "#domain/audio/Audio.ts"
import type * as listeningModule from "#domain/audio/Listening.ts"
import type { ListeningCommand, ListeningEvent, ListeningState, Work } from "#domain/audio/Listening.ts"
import type { LiveEnd } from "#domain/audio/LiveTranscript.ts"
import { PreviewPlan, unheardMs } from "#domain/audio/PreviewPlan.ts"
import type { Pause } from "#domain/audio/TurnDetector.ts"

export type ListeningDecider = Pick<typeof listeningModule, "decide" | "endOf" | "listening">

/** Which samples it covers. */
interface Transcript {
  readonly until: number
}

const windowSamples = 8_000
const closedSamples = 20_000
const frame = 320

class ListeningWorld {
  readonly #decider: ListeningDecider
  readonly #numbers: ReadonlyArray<number>
  readonly #seen: Map<string, number>
  #at = 0
  #state: ListeningState
  #stateBefore: ListeningState
  #samples = 0
  readonly #closesBeside: boolean
  #paceSamples: number
  #hasBegun = false
  #hasLeft = false
  #end: LiveEnd | undefined
  #endedAt: number | undefined
  // The engine.
  #work: Work | undefined
  #captionUntil = 0
  #isInterrupted = false
  #closingUntil: number | undefined
  #closedUntil = 0
  // What was told.
  /** With so many samples the next caption begins. */
  #expectedDue = windowSamples
  #shownUntil = 0
  #previewed: Transcript | undefined
  #finals = 0
  #finishes = 0
  // The silence.
  #quietMs = 0
  #endsAtMs = 500
  /** The length with which the silence ends the turn, as the session knows it. */
  #saidEndsAtMs = 0
  #plan = new PreviewPlan()
  #due: Pause | undefined
  #previewOf: Pause | undefined

  constructor(decider: ListeningDecider, numbers: ReadonlyArray<number>, seen: Map<string, number>) {
    this.#decider = decider
    this.#numbers = numbers
    this.#seen = seen
    this.#state = decider.listening({ samples: windowSamples, ahead: 0 })
    this.#stateBefore = this.#state
    this.#closesBeside = this.#draw(2) === 0
    this.#paceSamples = this.#draw(2) === 0 ? 0 : 3 * windowSamples
  }

  #draw(below: number): number {
    const value = this.#numbers[this.#at++ % this.#numbers.length] ?? 0
    return Math.abs((value ^ Math.imul(this.#at, 2_654_435_761)) % below)
  }

  #count(what: string): void {
    this.#seen.set(what, (this.#seen.get(what) ?? 0) + 1)
  }

  live(): void {
    for (let step = 0; step < this.#numbers.length * 3; step++) this.#step()
    this.#settle()
  }

  // ------------------------------------------------------------ what happens

  #step(): void {
    switch (this.#draw(12)) {
      case 0:
      case 1:
      case 2:
        return this.#speech(frame * (1 + this.#draw(20)))
      case 3:
      case 4:
      case 5:
        for (let frames = 1 + this.#draw(6); frames > 0; frames--) this.#silence()
        if (this.#quietMs >= this.#endsAtMs && this.#draw(3) === 0) this.#endTurn()
        return
      case 6:
        if (!this.#hasBegun && this.#draw(2) === 0) this.#begin()
        return
      case 7:
      case 8:
      case 9:
        return this.#progress()
      case 10:
        if (this.#closingUntil !== undefined && this.#draw(2) === 0) this.#closeBeside()
        return
      default:
        return this.#seldom()
    }
  }

  #seldom(): void {
    switch (this.#draw(24)) {
      case 0:
        return this.#stop("limit")
      case 1:
      case 2: {
        const ms = 59_990 + this.#draw(20)
        if (ms >= 60_000) this.#noteEnd("idle")
        this.#happen({ is: "quiet", ms })
        return
      }
      case 3:
        return this.#stop("drain")
      case 4:
      case 5:
        return this.#endTurn()
      case 6:
        this.#paceSamples = this.#draw(2) * 3 * windowSamples
        return
      case 7:
        if (this.#draw(4) > 0) return
        this.#hasLeft = true
        this.#happen({ is: "left" })
        assert.equal(this.#state.life, "over")
        assert.notEqual(this.#state.end, undefined, "no audio is taken for what nothing waits for")
        this.#end ??= this.#state.end
        this.#endedAt ??= this.#samples
        return
      default:
        return
    }
  }

  #begin(): void {
    this.#hasBegun = true
    this.#happen({ is: "began" })
  }

  #audio(count: number): void {
    if (this.#end !== undefined) return
    this.#samples += count
    if (this.#samples >= this.#state.dueAt && !this.#state.isDue) this.#happen({ is: "window full" })
  }

  #speech(count: number): void {
    if (this.#quietMs > 0 && this.#end === undefined) {
      this.#quietMs = 0
      this.#plan = new PreviewPlan()
      this.#previewed = undefined
      const wasDue = this.#due
      this.#due = undefined
      const commands = this.#happen({ is: "resumed" })
      const isMade = wasDue !== undefined && this.#work?.do === "preview"
      if (!this.#hasLeft && isMade && this.#previewOf === wasDue)
        assert.ok(this.#isInterrupted, "a preview of a silence that is over is ended")
      if (!isMade) assert.ok(commands.every((one) => one.do !== "interrupt"))
    }
    this.#audio(count)
  }

  /** A frame of silence. */
  #silence(): void {
    if (this.#end !== undefined) {
      const late = this.#happen({ is: "paused", pause: { quietMs: 400, endsAtMs: 500 }, lately: undefined })
      assert.equal(late.length, 0, "what comes after the end changes nothing")
      assert.equal(this.#state.silence, this.#stateBefore.silence)
      return
    }
    if (this.#quietMs === 0 || this.#draw(6) === 0) this.#endsAtMs = 200 + this.#draw(800)
    this.#quietMs += 20 + 20 * this.#draw(4)
    this.#audio(msToSamples(20, listenRateHz))
    const pause = { quietMs: this.#quietMs, endsAtMs: this.#endsAtMs }
    const isDue =
      this.#hasBegun && !this.#hasLeft && this.#due === undefined && this.#plan.isDue(pause, undefined)
    if (isDue) this.#due = pause
    if (this.#hasBegun && !this.#hasLeft) this.#saidEndsAtMs = this.#endsAtMs
    const wasCaptioning = this.#work?.do === "caption"
    this.#happen({ is: "paused", pause, lately: undefined })
    if (isDue && wasCaptioning) assert.ok(this.#isInterrupted, "a caption makes way for a preview")
  }

  /** The silence ends the turn. */
  #endTurn(): void {
    if (this.#end !== undefined) return
    const until = this.#decider.endOf(this.#state, this.#samples)
    const left = this.#samples - until
    const most = msToSamples(unheardMs(this.#saidEndsAtMs), listenRateHz)
    assert.ok(left >= 0 && left <= most, "only what need not be heard is left out")
    const making =
      this.#work?.do === "preview" && this.#previewOf === this.#due ? this.#work.until : undefined
    const isEnough = (covered: number | undefined) => covered !== undefined && this.#samples - covered <= most
    if (this.#hasLeft) assert.equal(left, 0)
    else if (isEnough(this.#previewed?.until))
      assert.equal(until, this.#previewed?.until, "a preview that has heard enough is used")
    else if (isEnough(making)) assert.equal(until, making, "also one that is being made")
    else assert.equal(left, 0)
    this.#samples = until
    this.#stop("stop")
  }

  #noteEnd(why: LiveEnd): void {
    if (this.#end !== undefined || this.#hasLeft) return
    this.#end = why
    this.#endedAt = this.#samples
  }

  #stop(why: LiveEnd): void {
    const isFirst = this.#end === undefined && !this.#hasLeft
    if (!isFirst)
      assert.equal(
        this.#decider.endOf(this.#state, this.#samples),
        this.#samples,
        "no audio is left out after the end",
      )
    this.#noteEnd(why)
    const work = this.#work
    this.#happen({ is: "ended", why })
    if (!isFirst || work === undefined) return
    if (work.do === "caption") assert.ok(this.#isInterrupted, "the end interrupts a caption")
    if (work.do === "preview" && this.#previewOf === this.#due)
      assert.equal(this.#isInterrupted, work.until !== this.#samples, "a preview of all of it is waited for")
  }

  /** The engine goes on. */
  #progress(): void {
    const work = this.#work
    if (work === undefined) return
    const isBusy = this.#isInterrupted || this.#draw(6) === 0
    switch (work.do) {
      case "close":
        if (this.#draw(6) > 0) this.#closedUntil = work.until
        this.#work = undefined
        if (this.#end !== undefined || this.#due !== undefined) this.#planned(work.until)
        this.#happen({ is: "closed" })
        return
      case "caption": {
        if (this.#draw(2) === 0 && !this.#isInterrupted) {
          this.#captionUntil = this.#samples
          this.#happen({ is: "caption begins" })
          return
        }
        this.#work = undefined
        this.#planned(this.#captionUntil)
        const transcript = isBusy ? undefined : { until: this.#captionUntil }
        const commands = this.#happen({ is: "captioned", transcript })
        assert.equal(
          commands.some((one) => one.do === "show"),
          !isBusy && !this.#hasLeft,
          "a caption is shown",
        )
        return
      }
      case "preview": {
        const isWanted = this.#previewOf === this.#due
        const tookMs = this.#draw(300)
        if (isWanted) {
          const { quietMs } = this.#due!
          this.#due = undefined
          this.#plan = this.#plan.made({ quietMs, tookMs })
          if (!isBusy) this.#previewed = { until: work.until }
        }
        this.#work = undefined
        const transcript = isBusy ? undefined : { until: work.until }
        const commands = this.#happen({ is: "previewed", transcript, tookMs })
        const isShown = commands.some((one) => one.do === "show")
        assert.equal(
          isShown,
          isWanted && !isBusy && !this.#hasLeft,
          "what a silence says that is over is not told",
        )
        if (isWanted && !this.#hasLeft) assert.equal(this.#state.previewMs, tookMs)
        return
      }
      case "finish":
        this.#work = undefined
        this.#happen({ is: "finished", transcript: { until: work.until } })
    }
  }

  /** The next caption comes a window after these samples, or later where captions cost much. */
  #planned(until: number): void {
    const paceSamples = this.#paceSamples
    this.#expectedDue =
      paceSamples > windowSamples
        ? until + paceSamples
        : (Math.floor(until / windowSamples) + 1) * windowSamples
  }

  #closeBeside(): void {
    if (this.#draw(6) > 0) this.#closedUntil = this.#closingUntil!
    this.#closingUntil = undefined
    this.#happen({ is: "closed beside" })
  }

  #happen(event: ListeningEvent<Transcript>): ReadonlyArray<ListeningCommand<Transcript>> {
    this.#count(event.is)
    const [state, commands] = this.#decider.decide<Transcript>(this.#state, event, {
      samples: this.#samples,
      paceSamples: this.#paceSamples,
      canClose: this.#samples - this.#closedUntil > closedSamples,
      closesBeside: this.#closesBeside,
    })
    const wasOver = this.#state.life === "over"
    this.#stateBefore = this.#state
    this.#state = state
    if (wasOver) assert.equal(commands.length, 0, "nothing after the end")
    for (const command of commands) {
      this.#count(command.do)
      this.#carryOut(command)
    }
    this.#check()
    return commands
  }

  // ------------------------------------------------------------ what is done

  #carryOut(command: ListeningCommand<Transcript>): void {
    switch (command.do) {
      case "interrupt":
        assert.ok(this.#work?.do === "caption" || this.#work?.do === "preview", "only these are interrupted")
        assert.equal(this.#isInterrupted, false, "once")
        this.#isInterrupted = true
        return
      case "forget preview":
        assert.equal(this.#previewed, undefined)
        return
      case "show": {
        const { until } = command.transcript
        assert.ok(until <= this.#samples || this.#end !== undefined, "of audio that there is")
        if (command.as === "final") {
          this.#finals++
          assert.equal(until, this.#endedAt, "the final result is of all audio")
        }
        if (command.as === "caption") {
          assert.ok(until >= this.#shownUntil, "captions only grow")
          this.#shownUntil = until
        }
        return
      }
      case "close beside":
        assert.ok(this.#closesBeside && this.#closingUntil === undefined, "one closing at a time")
        assert.equal(command.until, this.#samples)
        this.#closingUntil = command.until
        return
      default:
        this.#beginWork(command)
    }
  }

  #beginWork(work: Work): void {
    assert.equal(this.#work, undefined, "one thing at a time")
    assert.equal(this.#finishes, 0, "the final result is the last one")
    assert.ok(this.#hasBegun && !this.#hasLeft)
    this.#work = work
    this.#isInterrupted = false
    const isWaiting = this.#due !== undefined && work.do !== "preview"
    if (this.#end !== undefined) assert.equal(work.do, "finish", "the end comes first")
    else
      assert.ok(
        !isWaiting || (this.#closingUntil !== undefined && work.do === "close"),
        "a preview comes before a caption",
      )
    switch (work.do) {
      case "close":
        assert.equal(this.#closesBeside, false)
        assert.ok(this.#samples - this.#closedUntil > closedSamples)
        assert.equal(work.until, this.#samples)
        this.#captionUntil = work.until
        return
      case "caption":
        assert.ok(this.#samples >= this.#expectedDue, "a window is full")
        this.#captionUntil = Math.max(this.#captionUntil, this.#samples)
        if (!this.#closesBeside) this.#captionUntil = this.#state.captionUntil
        if (this.#closesBeside && this.#samples - this.#closedUntil > closedSamples)
          assert.notEqual(this.#closingUntil, undefined, "pieces are closed meanwhile")
        return
      case "preview":
        assert.equal(this.#closingUntil, undefined, "it needs what is being closed")
        assert.equal(work.until, this.#samples, "of all audio so far")
        assert.notEqual(this.#due, undefined, "a silence is due")
        this.#previewOf = this.#due
        // It covers the caption that is due.
        if (this.#samples >= this.#expectedDue) this.#planned(work.until)
        return
      case "finish":
        this.#finishes++
        assert.equal(this.#closingUntil, undefined, "it needs what is being closed")
        assert.equal(work.until, this.#endedAt, "the final result is of all audio")
        assert.equal(work.preview, this.#previewed?.until === work.until, "a preview that is it is used")
    }
  }

  #check(): void {
    const { end, life, work } = this.#state
    if (!this.#hasLeft) assert.equal(end, this.#end, "the first reason stands")
    if (life === "over") return
    assert.equal(work, this.#work?.do)
    if (life !== "works" || this.#work !== undefined || this.#closingUntil !== undefined) return
    assert.equal(this.#end, undefined, "the final result is made")
    assert.equal(this.#due, undefined, "a preview that is due is made")
    assert.equal(this.#state.dueAt, this.#expectedDue, "the next caption comes in its time")
    assert.ok(this.#samples < this.#expectedDue, "a caption that is due is made")
  }

  #settle(): void {
    if (this.#hasLeft) return
    if (!this.#hasBegun) this.#begin()
    this.#stop("stop")
    for (let round = 0; round < 100 && this.#state.life !== "over"; round++) {
      if (this.#closingUntil !== undefined) this.#closeBeside()
      this.#progress()
    }
    assert.equal(this.#state.life, "over", "it ends")
    assert.deepEqual([this.#finishes, this.#finals], [1, 1], "with one final result")
    assert.equal(this.#samples, this.#endedAt, "what is charged does not change after the end")
    this.#happen({ is: "left" })
    this.#happen({ is: "window full" })
    this.#stop("drain")
  }
}

const steps = fc.array(fc.nat(1_000_000), { minLength: 10, maxLength: 60 })

/** Lives through random histories with a decider; throws at the first promise that is broken. How often each event and command was. */
export const liveListening = (decider: ListeningDecider, count: number): ReadonlyMap<string, number> => {
  const seen = new Map<string, number>()
  fc.assert(
    fc.property(steps, (numbers) => new ListeningWorld(decider, numbers, seen).live()),
    { numRuns: count, seed: 3, endOnFailure: true },
  )
  return seen
}
