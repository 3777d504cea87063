// What a live session transcribes, and when, as a state machine: `decide` takes what is known and what has happened, and gives what is known
// then and what is to be done. It knows no engine, no socket and no clock. LiveSession tells it of events and carries out its commands.
//
// A session waits, works or is over. It works at one thing at a time, and always with the newest audio. When it can begin the next thing it
// takes the first of these:
// 1. The audio has ended: the final result. It is the newest preview where that covers exactly the audio, and else a transcription of all.
// 2. A silence may end the audio: a preview, which is what the final result would be now.
// 3. A window of audio is full: a caption. Before it, pieces that are complete are closed, i.e. transcribed for good; where another engine
//    makes the captions, pieces are closed beside them, and only a preview and the final result wait for that.
// Windows end at multiples of their length, however late the caption before was, or after more audio where captions cost much. A model that
// transcribes in chunks needs a little of the audio behind each: its captions are due so much later.
//
// What is more urgent interrupts what is less so. A silence interrupts a caption. The end of the audio interrupts a caption, and a preview of
// other audio than has ended; a preview of exactly this audio is waited for. Speech that goes on interrupts the preview of its
// silence, whose result is dropped. The closing of a piece is never interrupted, because its result is needed in any case. An engine that is busy
// costs the caption, the preview or the closing, and nothing else; any other failure ends the session.
//
// Audio frames are no events, because they are many: they go into the buffer, and only a full window is an event. The first reason why the audio
// ends stands, and no audio is taken after it, so what is charged does not change any more.
import { listenRateHz, msToSamples } from "./Audio.ts"
import type { LiveEnd, LiveHypothesis } from "./LiveTranscript.ts"
import { PreviewPlan, type PreviewTimes, unheardMs } from "./PreviewPlan.ts"
import type { Pause } from "./TurnDetector.ts"

/** A session without a frame for this long ends (protocol 17.5). */
export const idleMs = 60_000

/** The windows of a session: a caption for each `samples`, which is due when `ahead` more samples are there. */
export interface CaptionWindows {
  readonly samples: number
  readonly ahead: number
}

/** Where the next caption is due after `total` samples. Windows lie on a fixed grid, even if the one before was late. */
export const nextWindow = (total: number, { ahead, samples }: CaptionWindows): number =>
  (Math.floor(Math.max(0, total - ahead) / samples) + 1) * samples + ahead

/** What is known at the moment of an event, asked only where it matters. */
export interface ListeningFacts {
  /** Samples so far, without those that are left out. */
  readonly samples: number
  /** Samples until the next caption, where captions cost much; 0: always the session's window. */
  readonly paceSamples: number
  /** Whether a piece of the audio can be closed. */
  readonly canClose: boolean
  /** Captions come from another engine, which works while pieces are closed. */
  readonly closesBeside: boolean
}

/** `H`: a transcript. Undefined, where it is a result: the engine was busy, or it was interrupted. */
export type ListeningEvent<H> =
  /** Its transcripts are waited for from now on. */
  | { readonly is: "began" }
  /** As much audio has come as `dueAt` says. */
  | { readonly is: "window full" }
  /** The audio so far ends with a silence. Told with each frame of it. */
  | { readonly is: "paused"; readonly pause: Pause; readonly lately: PreviewTimes | undefined }
  | { readonly is: "resumed" }
  | { readonly is: "ended"; readonly why: LiveEnd }
  /** So long no frame has come. */
  | { readonly is: "quiet"; readonly ms: number }
  | { readonly is: "closed" }
  | { readonly is: "closed beside" }
  /** The engine is ready for the caption: it covers the audio until now. */
  | { readonly is: "caption begins" }
  | { readonly is: "captioned"; readonly transcript: H | undefined }
  | { readonly is: "previewed"; readonly transcript: H | undefined; readonly tookMs: number }
  | { readonly is: "finished"; readonly transcript: H }
  /** Nothing waits for its transcripts any more: it is complete, has failed, or its client has left. */
  | { readonly is: "left" }

export type Work =
  /** Transcribes for good what is complete of the first samples. */
  | { readonly do: "close"; readonly until: number }
  | { readonly do: "caption" }
  /** Transcribes the first samples as if they were all. */
  | { readonly do: "preview"; readonly until: number }
  /** The final result. `preview`: the newest preview is it. */
  | { readonly do: "finish"; readonly until: number; readonly preview: boolean }

export type ListeningCommand<H> =
  /** One at a time; an event says that it is done. */
  | Work
  /** The same as `close`, beside the others. */
  | { readonly do: "close beside"; readonly until: number }
  /** Ends the caption or the preview in the making: its event follows, without a transcript. */
  | { readonly do: "interrupt" }
  /** There is a newer transcript. */
  | { readonly do: "show"; readonly as: "caption" | "preview" | "final"; readonly transcript: H }
  /** What the newest preview said is not so. */
  | { readonly do: "forget preview" }

export interface ListeningState {
  readonly windows: CaptionWindows
  readonly life: "waits" | "works" | "over"
  /** Why its audio has ended. */
  readonly end: LiveEnd | undefined
  readonly work: Work["do"] | undefined
  readonly isInterrupted: boolean
  readonly isClosingBeside: boolean
  /** With so many samples a caption is due. */
  readonly dueAt: number
  readonly isDue: boolean
  /** Samples that the caption in the making covers. */
  readonly captionUntil: number
  readonly plan: PreviewPlan
  /** The length with which the newest silence ends the audio, as it was told last, milliseconds. */
  readonly endsAtMs: number
  /** The silence of which a preview is due or being made. */
  readonly silence: Pause | undefined
  /** That of which one is being made, and the samples that it covers. */
  readonly previewing: { readonly pause: Pause; readonly until: number } | undefined
  /** Samples that the newest preview covers, if speech has not gone on. */
  readonly previewed: number | undefined
  /** What the newest preview took, milliseconds. */
  readonly previewMs: number | undefined
}

export const listening = (windows: CaptionWindows): ListeningState => ({
  windows,
  life: "waits",
  end: undefined,
  work: undefined,
  isInterrupted: false,
  isClosingBeside: false,
  dueAt: nextWindow(0, windows),
  isDue: false,
  captionUntil: 0,
  plan: new PreviewPlan(),
  endsAtMs: 0,
  silence: undefined,
  previewing: undefined,
  previewed: undefined,
  previewMs: undefined,
})

/**
 * Where audio of `total` samples may end, if its last silence is the end of the turn: behind what a preview covers, made or in the
 * making, if the rest is no more than the final result need not hear. Otherwise behind all of it.
 */
export const endOf = (
  { end, endsAtMs, previewed, previewing, silence }: ListeningState,
  total: number,
): number => {
  if (end !== undefined) return total
  const most = msToSamples(unheardMs(endsAtMs), listenRateHz)
  const coming = previewing?.pause === silence ? previewing?.until : undefined
  return [previewed, coming].find((until) => until !== undefined && total - until <= most) ?? total
}

class Decision<H> {
  state: ListeningState
  readonly commands: Array<ListeningCommand<H>> = []
  readonly #facts: ListeningFacts

  constructor(state: ListeningState, facts: ListeningFacts) {
    this.state = state
    this.#facts = facts
  }

  event(event: ListeningEvent<H>): void {
    if (this.state.life === "over") return
    switch (event.is) {
      case "began":
        this.#become({ life: "works" })
        return this.#next()
      case "window full":
        this.#become({ isDue: true })
        return this.#next()
      case "paused":
        return this.#paused(event.pause, event.lately)
      case "resumed":
        return this.#resumed()
      case "ended":
        return this.#ended(event.why)
      case "quiet":
        if (event.ms >= idleMs) this.#ended("idle")
        return
      case "closed":
        return this.#closed()
      case "closed beside":
        this.#become({ isClosingBeside: false })
        return this.#next()
      case "caption begins":
        return this.#become({ captionUntil: this.#facts.samples })
      case "captioned":
        return this.#captioned(event.transcript)
      case "previewed":
        return this.#previewed(event.transcript, event.tookMs)
      case "finished":
        this.#do({ do: "show", as: "final", transcript: event.transcript })
        return this.#become({ life: "over", work: undefined })
      case "left":
        return this.#become({ life: "over", work: undefined, end: this.state.end ?? "stop" })
    }
  }

  #become(changes: Partial<ListeningState>): void {
    this.state = { ...this.state, ...changes }
  }

  #do(command: ListeningCommand<H>): void {
    this.commands.push(command)
  }

  // ------------------------------------------------------------ what the audio does

  #paused(pause: Pause, lately: PreviewTimes | undefined): void {
    const { end, life, plan, silence } = this.state
    if (end !== undefined || life !== "works") return
    this.#become({ endsAtMs: pause.endsAtMs })
    if (silence !== undefined || !plan.isDue(pause, lately)) return
    this.#become({ silence: pause })
    if (this.state.work === "caption") this.#interrupt()
    this.#next()
  }

  #resumed(): void {
    const { previewing, silence } = this.state
    this.#become({ plan: new PreviewPlan(), previewed: undefined, silence: undefined })
    this.#do({ do: "forget preview" })
    if (silence !== undefined && previewing !== undefined) this.#interrupt()
  }

  #ended(why: LiveEnd): void {
    const { end, previewing, work } = this.state
    if (end !== undefined) return
    this.#become({ end: why })
    const isLate = previewing !== undefined && previewing.until !== this.#facts.samples
    if (work === "caption" || isLate) this.#interrupt()
    this.#next()
  }

  #interrupt(): void {
    if (this.state.isInterrupted) return
    this.#become({ isInterrupted: true })
    this.#do({ do: "interrupt" })
  }

  // ------------------------------------------------------------ what is worked at

  /** Begins the most urgent thing, if nothing is being worked at. */
  #next(): void {
    const { end, isClosingBeside, isDue, life, previewed, silence, work } = this.state
    const until = this.#facts.samples
    if (life !== "works" || work !== undefined) return
    if (end !== undefined) {
      // The result of what it closes is needed now.
      if (!isClosingBeside) this.#begin({ do: "finish", until, preview: previewed === until })
      return
    }
    if (silence !== undefined) {
      if (isClosingBeside) return
      this.#become({ previewing: { pause: silence, until } })
      this.#begin({ do: "preview", until })
      // It covers the caption that is due.
      if (isDue) this.#planNext(until)
      return
    }
    if (isDue) this.#beginCaption(until)
  }

  #begin(work: Work): void {
    this.#become({ work: work.do, isInterrupted: false })
    this.#do(work)
  }

  #beginCaption(until: number): void {
    const { canClose, closesBeside } = this.#facts
    this.#become({ dueAt: Number.POSITIVE_INFINITY, captionUntil: until })
    if (canClose && !closesBeside) return this.#begin({ do: "close", until })
    if (canClose && !this.state.isClosingBeside) {
      this.#become({ isClosingBeside: true })
      this.#do({ do: "close beside", until })
    }
    this.#begin({ do: "caption" })
  }

  #closed(): void {
    this.#become({ work: undefined })
    const { captionUntil, end, silence } = this.state
    if (end === undefined && silence === undefined) return this.#begin({ do: "caption" })
    this.#planNext(captionUntil)
    this.#next()
  }

  #captioned(transcript: H | undefined): void {
    this.#become({ work: undefined })
    if (transcript !== undefined) this.#do({ do: "show", as: "caption", transcript })
    this.#planNext(this.state.captionUntil)
    this.#next()
  }

  #previewed(transcript: H | undefined, tookMs: number): void {
    const { plan, previewing, silence } = this.state
    this.#become({ work: undefined, previewing: undefined })
    // Where speech has gone on, it is of another silence.
    if (previewing !== undefined && silence === previewing.pause) {
      const { pause, until } = previewing
      this.#become({
        silence: undefined,
        previewMs: tookMs,
        plan: plan.made({ quietMs: pause.quietMs, tookMs }),
      })
      if (transcript !== undefined) {
        this.#become({ previewed: until })
        this.#do({ do: "show", as: "preview", transcript })
      }
    }
    this.#next()
  }

  /** The next caption is due at the end of the window that `until` samples have begun, or later if captions cost much. */
  #planNext(until: number): void {
    const { windows } = this.state
    const { paceSamples, samples } = this.#facts
    const dueAt = paceSamples > windows.samples ? until + paceSamples : nextWindow(until, windows)
    this.#become({ dueAt, isDue: samples >= dueAt })
  }
}

/** What is known after an event, and what is to be done, in this order. */
export const decide = <H = LiveHypothesis>(
  state: ListeningState,
  event: ListeningEvent<H>,
  facts: ListeningFacts,
): readonly [ListeningState, ReadonlyArray<ListeningCommand<H>>] => {
  const decision = new Decision<H>(state, facts)
  decision.event(event)
  return [decision.state, decision.commands]
}
