// One live session: frames of any size in, hypotheses at the window's pace out, and a final result at the end. At most
// one transcription is in flight, and it takes the newest audio: audio that a slow engine has missed is transcribed in
// one request. Knows no socket, no account and no event's name.
//
// A session holds only its audio (bounded by its limit) and the newest hypothesis: a reader that is too slow misses
// hypotheses in between, and none are queued.
import { Effect, Fiber } from "effect"
import { LISTEN_RATE_HZ, samplesToMs, secondsToSamples } from "#domain/audio/Audio.ts"
import { type FinalResult, type LiveEnd, type LiveHypothesis, silence } from "#domain/audio/LiveTranscript.ts"
import type { Pause } from "#domain/audio/TurnDetector.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { Signal } from "#domain/queues/Signal.ts"
import type { IncrementalTranscriber } from "./IncrementalTranscriber.ts"
import type { LiveAudio } from "./LiveAudio.ts"
import type { PreviewTimes } from "./PreviewPlan.ts"
import { Previews } from "./Previews.ts"
import { type InTree, type SessionActor, startSession } from "./SessionActor.ts"

/** Audio of a live session, at most (protocol 17.5); a turn of a realtime socket has a limit of its own. */
export const limitSeconds = 120
/** A session without a frame for this long ends (protocol 17.5). */
export const idleMs = 60_000

/** The end of the window that `total` samples have begun. Windows lie on a fixed grid, even if the one before was late. */
export const nextWindow = (total: number, windowSamples: number): number =>
  (Math.floor(total / windowSamples) + 1) * windowSamples

/** What a session reports to the load of its engine. */
export interface LiveReport {
  /** Audio arrived. */
  readonly audioReceived: (nowMs: number) => void
  /**
   * There is a caption, or the final result, after so many calls of the engine. `lagMs` is how long ago the last frame came
   * that it covers.
   */
  readonly windowDone: (nowMs: number, calls: number, lagMs: number, final: boolean) => void
  /** Seconds of audio until the next caption; absent: always the session's window. */
  readonly paceSeconds?: () => number
}

export class LiveSession<E> {
  private readonly audio: LiveAudio
  private readonly transcriber: IncrementalTranscriber<E>
  private readonly windowSamples: number
  private readonly report: LiveReport
  /** True for a failure that is only temporary. */
  private readonly isBusy: (error: E) => boolean
  private readonly inTree: InTree | undefined
  private actor: SessionActor<E> | undefined
  /** Whether a caption is due that no message has been handled for. */
  private isDue = false
  private readonly news = new Signal()
  private readonly previews = new Previews()
  /** Whether a preview is due that no message has been handled for. */
  private isPreviewDue = false
  /** Stops a caption or a preview: there is something more urgent. */
  private readonly urgent = new Signal()
  private rouse: (() => void) | undefined
  private end: LiveEnd | undefined
  private dueAt: number
  private frameAtMs: number
  private newest = silence
  private runs = false
  private hasRun = false
  private closing: Fiber.Fiber<void, E> | undefined

  constructor(
    audio: LiveAudio,
    transcriber: IncrementalTranscriber<E>,
    windowSeconds: number,
    report: LiveReport,
    isBusy: (error: E) => boolean,
    nowMs: number,
    inTree?: InTree,
  ) {
    this.inTree = inTree
    this.audio = audio
    this.transcriber = transcriber
    this.windowSamples = secondsToSamples(windowSeconds, LISTEN_RATE_HZ)
    this.report = report
    this.isBusy = isBusy
    this.frameAtMs = nowMs
    this.dueAt = this.windowSamples
  }

  /** Samples received so far. */
  get samples(): number {
    return this.audio.total
  }

  get seconds(): number {
    return this.audio.total / LISTEN_RATE_HZ
  }

  /** Samples that are still needed: what has been transcribed for good is dropped. */
  get heldSamples(): number {
    return this.audio.heldSamples
  }

  /** The newest hypothesis. */
  get hypothesis(): LiveHypothesis {
    return this.newest
  }

  get hasEnded(): boolean {
    return this.end !== undefined
  }

  /** Whether it needs nothing more of its engine: its `run` has ended, or it has ended without one. */
  get isOver(): boolean {
    return this.runs ? this.hasRun : this.hasEnded
  }

  /** Takes 16 kHz s16 little-endian, an even number of bytes; ignored once the session has ended. */
  push(bytes: Uint8Array, nowMs: number): void {
    if (this.end !== undefined) return
    this.frameAtMs = nowMs
    if (bytes.length === 0) return
    this.audio.append(bytes)
    this.report.audioReceived(nowMs)
    if (this.audio.isFull) this.stop("limit")
    else if (this.audio.total >= this.dueAt) this.captionDue()
    this.roused()
  }

  /**
   * The audio so far ends with a silence: what it says is transcribed as if it were complete. Called with each frame of it.
   * `lately`: what that and what is made of it took.
   */
  paused(pause: Pause, lately?: PreviewTimes): void {
    if (this.end !== undefined || this.actor === undefined || !this.previews.paused(pause, lately)) return
    this.urgent.set()
    if (this.isPreviewDue) return
    this.isPreviewDue = true
    this.actor.previewIsDue()
  }

  /** What the newest preview took, milliseconds; undefined: there was none. */
  get previewMs(): number | undefined {
    return this.previews.tookMs
  }

  /** Speech goes on: what was foreseen is not so. */
  resumed(): void {
    if (this.previews.resumed()) this.urgent.set()
  }

  /** Completes when there is a newer preview than when it completed last; undefined if speech went on since. */
  get nextPreview(): Effect.Effect<LiveHypothesis | undefined> {
    return this.previews.next
  }

  /**
   * The last silence is the end of the turn: the part of it that the newest preview does not cover is left out of the audio, so that
   * the preview is the final result of exactly the audio that is left. Gives the samples that were left out.
   */
  leaveOutUnheard(): number {
    if (this.end !== undefined) return 0
    const { total } = this.audio
    this.audio.endAt(this.previews.endOf(total))
    return total - this.audio.total
  }

  /** No audio follows; the first reason stands. */
  stop(end: LiveEnd): void {
    if (this.end !== undefined) return
    this.end = end
    this.urgent.set()
    this.actor?.audioHasEnded()
    this.roused()
  }

  /** `rouse` is called with the first audio, or with the end of a session that had none: until then no fiber need run. */
  whenRoused(rouse: () => void): void {
    this.rouse = rouse
  }

  private roused(): void {
    const wake = this.rouse
    this.rouse = undefined
    wake?.()
  }

  /** Completes when there is a newer hypothesis than when it completed last. */
  get nextHypothesis(): Effect.Effect<LiveHypothesis> {
    return Effect.map(this.news.wait, () => {
      this.news.clear()
      return this.newest
    })
  }

  /**
   * Transcribes until the session ends, then once more: the final result. Runs the session's actor, which ends with its caller.
   * Before that a session has no fiber and no mailbox: thousands of silent ones wait on a node.
   */
  get run(): Effect.Effect<FinalResult, E> {
    return Effect.gen({ self: this }, function* (this: LiveSession<E>) {
      this.runs = true
      const work = {
        caption: this.caption,
        preview: this.preview,
        finish: this.finish,
        memoryBytes: () => this.audio.capacitySamples * 2,
      }
      const actor = yield* startSession(work, this.inTree)
      this.actor = actor
      if (this.end !== undefined) actor.audioHasEnded()
      else if (this.isDue) actor.captionIsDue()
      return yield* actor.result
    }).pipe(
      Effect.scoped,
      Effect.ensuring(
        Effect.sync(() => {
          this.hasRun = true
        }),
      ),
    )
  }

  private captionDue(): void {
    if (this.isDue) return
    this.isDue = true
    this.actor?.captionIsDue()
  }

  private get caption(): Effect.Effect<void, E> {
    return Effect.gen({ self: this }, function* (this: LiveSession<E>) {
      this.isDue = false
      // The final result follows at once and covers it; a preview does, too.
      if (this.end !== undefined) return
      if (this.previews.isDue) return this.planNext(this.audio.total)
      this.dueAt = Number.POSITIVE_INFINITY
      this.urgent.clear()
      this.planNext(yield* this.window)
    })
  }

  private get finish(): Effect.Effect<FinalResult, E> {
    return Effect.gen({ self: this }, function* (this: LiveSession<E>) {
      // The result of what it closes is needed now.
      if (this.closing !== undefined) yield* Fiber.join(this.closing)
      const { total } = this.audio
      const coveredAtMs = this.frameAtMs
      const hypothesis = this.previews.of(total) ?? (yield* this.transcriber.open(total, true))
      yield* this.tell(hypothesis, coveredAtMs, true)
      return { hypothesis, end: this.end ?? "stop" }
    })
  }

  /**
   * What a final result would be now. One that turns out not to be needed ends: speech goes on, or the audio has ended, and not where
   * the preview does. A busy engine costs the preview and nothing else.
   */
  private get preview(): Effect.Effect<void, E> {
    return Effect.gen({ self: this }, function* (this: LiveSession<E>) {
      this.isPreviewDue = false
      this.urgent.clear()
      if (this.closing !== undefined) yield* Fiber.join(this.closing)
      const until = this.audio.total
      const pause = this.previews.begin(until)
      // Speech went on before its turn came.
      if (pause === undefined) return
      const coveredAtMs = this.frameAtMs
      const beganMs = yield* monotonicMs
      const hypothesis = yield* Effect.raceFirst(
        this.transcriber.open(until, true).pipe(this.unlessBusy),
        Effect.as(this.untilUseless(pause, until), undefined),
      )
      if (!this.previews.isWanted(pause)) return
      this.previews.made(pause, until, (yield* monotonicMs) - beganMs, hypothesis)
      if (hypothesis === undefined) return
      yield* this.tell(hypothesis, coveredAtMs, false)
      this.previews.announce()
    })
  }

  /** Completes when a preview of the first `until` samples is not needed any more. */
  private untilUseless(pause: Pause, until: number): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* (this: LiveSession<E>) {
      for (;;) {
        yield* this.urgent.wait
        if (!this.previews.isWanted(pause) || (this.end !== undefined && this.audio.total !== until)) return
        this.urgent.clear()
      }
    })
  }

  /** The next caption is due at the end of the window that `until` samples have begun, or later if captions cost much. */
  private planNext(until: number): void {
    const paceSamples = secondsToSamples(this.report.paceSeconds?.() ?? 0, LISTEN_RATE_HZ)
    this.dueAt =
      paceSamples > this.windowSamples ? until + paceSamples : nextWindow(until, this.windowSamples)
    if (this.audio.total >= this.dueAt) this.captionDue()
  }

  /** Ends a session that has had no frame for too long; called at intervals. */
  endIfIdle(nowMs: number): void {
    if (nowMs - this.frameAtMs >= idleMs) this.stop("idle")
  }

  /**
   * One caption; gives the samples that it covers, as far as that was settled. The end of the session interrupts the
   * caption of the open part, which is transcribed anew for the final result; what is closed by then counts for both. An
   * engine at capacity costs this caption and nothing else.
   */
  private get window(): Effect.Effect<number, E> {
    return Effect.gen({ self: this }, function* (this: LiveSession<E>) {
      let until = this.audio.total
      let coveredAtMs = this.frameAtMs
      yield* this.closeUntil(until).pipe(this.unlessBusy)
      const newest = () => {
        until = this.audio.total
        coveredAtMs = this.frameAtMs
        return until
      }
      const hypothesis = yield* Effect.raceFirst(
        this.transcriber.caption(newest).pipe(this.unlessBusy),
        Effect.as(this.urgent.wait, undefined),
      )
      if (hypothesis === undefined) return until
      yield* this.tell(hypothesis, coveredAtMs, false)
      this.news.set()
      return until
    })
  }

  /** Closes pieces before the next caption, or, where captions come from another engine, while they go on. */
  private closeUntil(until: number): Effect.Effect<void, E> {
    return Effect.gen({ self: this }, function* (this: LiveSession<E>) {
      if (!this.transcriber.closesBeside) return yield* this.transcriber.close(until)
      const { closing } = this
      if (closing !== undefined) {
        if (closing.pollUnsafe() === undefined) return
        this.closing = undefined
        yield* Fiber.join(closing)
      }
      if (!this.transcriber.hasToClose(until)) return
      this.closing = yield* Effect.forkChild(this.transcriber.close(until).pipe(this.unlessBusy))
    })
  }

  private readonly unlessBusy = <A>(work: Effect.Effect<A, E>): Effect.Effect<A | undefined, E> =>
    Effect.catchIf(
      work,
      (error) => this.isBusy(error),
      () => Effect.succeed(undefined),
    )

  private tell(hypothesis: LiveHypothesis, coveredAtMs: number, final: boolean): Effect.Effect<void> {
    return Effect.map(monotonicMs, (nowMs) => {
      this.newest = hypothesis
      this.report.windowDone(nowMs, this.transcriber.takeCalls(), nowMs - coveredAtMs, final)
    })
  }
}

/** Milliseconds of audio that are left of a session. */
export const remainingMs = (samples: number): number =>
  limitSeconds * 1000 - Math.floor(samplesToMs(samples, LISTEN_RATE_HZ))
