// One live session. It receives audio in frames of any size, makes a hypothesis for each window of audio, and a final result at the end.
// Listening decides what is transcribed, and when; the session reports events to it and carries out its commands. It knows no
// socket, no account and no name of an event.
//
// A session holds only its audio, of bounded length, and the newest hypothesis. No hypotheses are queued: a reader that is too slow
// misses some.
import { Clock, Context, Deferred, Effect, type Fiber } from "effect"
import { listenRateHz, samplesToMs, secondsToSamples } from "#domain/audio/Audio.ts"
import {
  type CaptionWindows,
  decide,
  endOf,
  type ListeningCommand,
  type ListeningEvent,
  type ListeningFacts,
  type ListeningState,
  listening,
  type Work,
} from "#domain/audio/Listening.ts"
import { type FinalResult, type LiveEnd, type LiveHypothesis, silence } from "#domain/audio/LiveTranscript.ts"
import type { PreviewTimes } from "#domain/audio/PreviewPlan.ts"
import type { Pause } from "#domain/audio/TurnDetector.ts"
import { monotonicMs, monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { Signal } from "#domain/queues/Signal.ts"
import type { IncrementalTranscriber } from "./IncrementalTranscriber.ts"
import type { LiveAudio } from "./LiveAudio.ts"
import { type InTree, type SessionActor, startSession } from "./SessionActor.ts"

/**
 * The most audio of a live session (protocol 17.5). On a realtime socket each turn of the user is a session, whose limit is `turnSeconds` of
 * RealtimeItems.
 */
export const longestSessionSeconds = 120

/** What a session reports to the load of its engine. */
interface LiveReport {
  /** Audio arrived. */
  readonly audioReceived: (nowMs: number) => void
  /**
   * A transcript is ready: a caption, a preview or the final result (`final`). `calls`: calls of the engine that were made for it.
   * `lagMs`: time since the last frame that it covers was received. `heardMs`: audio that it covers and none before did.
   */
  readonly windowDone: (nowMs: number, calls: number, lagMs: number, heardMs: number, final: boolean) => void
  /** Seconds of audio from one caption to the next. Absent: the length of the session's window. */
  readonly paceSeconds?: () => number
}

export class LiveSession<E> implements ListeningFacts {
  readonly #audio: LiveAudio
  readonly #transcriber: IncrementalTranscriber<E>
  readonly #report: LiveReport
  /** True for a failure that is only temporary. */
  readonly #isBusy: (error: E) => boolean
  readonly #inTree: InTree | undefined
  #state: ListeningState
  #actor: SessionActor<E> | undefined
  readonly #news = new Signal()
  readonly #previewNews = new Signal()
  /** Interrupts the caption or the preview that is being made. */
  readonly #interrupted = new Signal()
  #rouse: (() => void) | undefined
  #frameAtMs: number
  #newest = silence
  #preview: LiveHypothesis | undefined
  /** Audio that transcripts have covered, milliseconds. */
  #heardMs = 0
  /** When the last frame was received that the present work covers. */
  #coveredAtMs: number
  #services = Context.empty()
  /** The fiber that closes pieces while captions are made. */
  #closing: Fiber.Fiber<void> | undefined
  #closingFailed: Deferred.Deferred<never, E> | undefined

  constructor(
    audio: LiveAudio,
    transcriber: IncrementalTranscriber<E>,
    windows: CaptionWindows,
    report: LiveReport,
    isBusy: (error: E) => boolean,
    nowMs: number,
    inTree?: InTree,
  ) {
    this.#inTree = inTree
    this.#audio = audio
    this.#transcriber = transcriber
    this.#state = listening(windows)
    this.#report = report
    this.#isBusy = isBusy
    this.#frameAtMs = nowMs
    this.#coveredAtMs = nowMs
  }

  /** Samples received so far. */
  get samples(): number {
    return this.#audio.total
  }

  get seconds(): number {
    return this.#audio.total / listenRateHz
  }

  /** Samples in memory. Those whose transcript is final are dropped. */
  get heldSamples(): number {
    return this.#audio.heldSamples
  }

  /** The newest hypothesis. */
  get hypothesis(): LiveHypothesis {
    return this.#newest
  }

  get hasEnded(): boolean {
    return this.#state.end !== undefined
  }

  /** True if it needs nothing more of its engine: its `run` has ended, or it has ended before `run` was started. */
  get isOver(): boolean {
    return this.#state.life === "over" || (this.#state.life === "waits" && this.hasEnded)
  }

  // ------------------------------------------------------------ what happens

  /** Takes 16 kHz s16 little-endian, an even number of bytes; ignored once the session has ended. */
  push(bytes: Uint8Array, nowMs: number): void {
    if (this.hasEnded) return
    this.#frameAtMs = nowMs
    if (bytes.length === 0) return
    this.#audio.append(bytes)
    this.#report.audioReceived(nowMs)
    if (this.#audio.isFull) this.stop("limit")
    else if (this.#audio.total >= this.#state.dueAt && !this.#state.isDue)
      this.#happened({ is: "window full" })
    this.#roused()
  }

  /**
   * The audio so far ends with a silence. Called with each frame of the silence. The audio may be transcribed ahead, as if it were
   * complete. `lately`: how long such a transcription (a preview) and the answer to it took in earlier silences.
   */
  paused(pause: Pause, lately?: PreviewTimes): void {
    this.#happened({ is: "paused", pause, lately })
  }

  /** Speech goes on, so the silence was not the end. Its preview is dropped. */
  resumed(): void {
    this.#happened({ is: "resumed" })
  }

  /**
   * The last silence is the end of the turn. Removes from the audio the part of the silence that the newest preview does not cover, so
   * that the preview is the final result of exactly the audio that is left. Returns the number of removed samples.
   */
  leaveOutUnheard(): number {
    const { total } = this.#audio
    this.#audio.endAt(endOf(this.#state, total))
    return total - this.#audio.total
  }

  /** Ends the audio. After several calls the reason of the first one counts. */
  stop(end: LiveEnd): void {
    this.#happened({ is: "ended", why: end })
    this.#roused()
  }

  /** Ends the session if it has received no frame for too long. Called at intervals. */
  endIfIdle(nowMs: number): void {
    const { hasEnded } = this
    this.#happened({ is: "quiet", ms: nowMs - this.#frameAtMs })
    if (this.hasEnded && !hasEnded) this.#roused()
  }

  /** `rouse` is called at the first audio, or at the end of a session without audio. Until then no fiber need run. */
  whenRoused(rouse: () => void): void {
    this.#rouse = rouse
  }

  #roused(): void {
    const wake = this.#rouse
    this.#rouse = undefined
    wake?.()
  }

  get paceSamples(): number {
    return secondsToSamples(this.#report.paceSeconds?.() ?? 0, listenRateHz)
  }

  get canClose(): boolean {
    return this.#transcriber.hasToClose(this.#audio.total)
  }

  get closesBeside(): boolean {
    return this.#transcriber.closesBeside
  }

  #happened(event: ListeningEvent<LiveHypothesis>): void {
    const [state, commands] = decide(this.#state, event, this)
    this.#state = state
    for (const command of commands) this.#carryOut(command)
  }

  // ------------------------------------------------------------ what is told

  /** Completes when there is a newer hypothesis than when it completed last. */
  get nextHypothesis(): Effect.Effect<LiveHypothesis> {
    return Effect.map(this.#news.wait, () => {
      this.#news.clear()
      return this.#newest
    })
  }

  /** Completes when there is a newer preview than when it completed last; undefined if speech went on since. */
  get nextPreview(): Effect.Effect<LiveHypothesis | undefined> {
    return Effect.map(this.#previewNews.wait, () => {
      this.#previewNews.clear()
      return this.#preview
    })
  }

  /** Milliseconds that the newest preview took. Undefined if there was none. */
  get previewMs(): number | undefined {
    return this.#state.previewMs
  }

  /**
   * Transcribes until the session ends, then once more: the final result. Runs the session's actor, which ends with its caller.
   * Before that a session has no fiber and no mailbox: thousands of silent ones wait on a node.
   */
  get run(): Effect.Effect<FinalResult, E> {
    return Effect.gen({ self: this }, function* (this: LiveSession<E>) {
      this.#services = yield* Effect.context<never>()
      const actor = yield* startSession<E>(
        { carryOut: (work) => this.#work(work), memoryBytes: () => this.#audio.capacitySamples * 2 },
        this.#inTree,
      )
      this.#actor = actor
      if (this.closesBeside) this.#closingFailed = Deferred.makeUnsafe()
      this.#happened({ is: "began" })
      if (this.#closingFailed === undefined) return yield* actor.result
      return yield* Effect.raceFirst(actor.result, Deferred.await(this.#closingFailed))
    }).pipe(
      Effect.scoped,
      Effect.ensuring(
        Effect.sync(() => {
          this.#closing?.interruptUnsafe()
          this.#happened({ is: "left" })
        }),
      ),
    )
  }

  // ------------------------------------------------------------ what is done

  #carryOut(command: ListeningCommand<LiveHypothesis>): void {
    switch (command.do) {
      case "interrupt":
        return this.#interrupted.set()
      case "show":
        return this.#show(command.as, command.transcript)
      case "forget preview":
        this.#preview = undefined
        return
      case "close beside": {
        const close = Effect.matchCause(this.#unlessBusy(this.#transcriber.close(command.until)), {
          onSuccess: () => this.#happened({ is: "closed beside" }),
          onFailure: (cause) => {
            if (this.#closingFailed !== undefined)
              Deferred.doneUnsafe(this.#closingFailed, Effect.failCause(cause))
          },
        })
        this.#closing = Effect.runForkWith(this.#services)(close)
        return
      }
      default:
        this.#interrupted.clear()
        return this.#actor?.begin(command)
    }
  }

  #show(as: "caption" | "preview" | "final", transcript: LiveHypothesis): void {
    const nowMs = monotonicMsOf(Context.get(this.#services, Clock.Clock))
    // What a preview says of the rest of the audio may change where speech goes on, and captions that only grow must not show it.
    if (as !== "preview" || !this.#transcriber.grows) this.#newest = transcript
    const heardMs = Math.max(0, transcript.audioMs - this.#heardMs)
    this.#heardMs += heardMs
    const calls = this.#transcriber.takeCalls()
    this.#report.windowDone(nowMs, calls, nowMs - this.#coveredAtMs, heardMs, as === "final")
    if (as === "caption") this.#news.set()
    if (as !== "preview") return
    this.#preview = transcript
    this.#previewNews.set()
  }

  #work(work: Work): Effect.Effect<FinalResult | undefined, E> {
    return Effect.gen({ self: this }, function* (this: LiveSession<E>) {
      this.#coveredAtMs = this.#frameAtMs
      switch (work.do) {
        case "close":
          yield* this.#unlessBusy(this.#transcriber.close(work.until))
          this.#happened({ is: "closed" })
          return undefined
        case "caption": {
          const newest = () => {
            this.#happened({ is: "caption begins" })
            this.#coveredAtMs = this.#frameAtMs
            return this.#audio.total
          }
          const transcript = yield* this.#unlessInterrupted(this.#transcriber.caption(newest))
          this.#happened({ is: "captioned", transcript })
          return undefined
        }
        case "preview": {
          const beganMs = yield* monotonicMs
          const transcript = yield* this.#unlessInterrupted(this.#transcriber.open(work.until, true))
          this.#happened({ is: "previewed", transcript, tookMs: (yield* monotonicMs) - beganMs })
          return undefined
        }
        case "finish": {
          const preview = work.preview ? this.#preview : undefined
          const hypothesis = preview ?? (yield* this.#transcriber.open(work.until, true))
          this.#happened({ is: "finished", transcript: hypothesis })
          return { hypothesis, end: this.#state.end ?? "stop" }
        }
      }
    })
  }

  #unlessBusy<A>(work: Effect.Effect<A, E>): Effect.Effect<A | undefined, E> {
    return Effect.catchIf(
      work,
      (error) => this.#isBusy(error),
      () => Effect.succeed(undefined),
    )
  }

  #unlessInterrupted(work: Effect.Effect<LiveHypothesis, E>): Effect.Effect<LiveHypothesis | undefined, E> {
    return Effect.raceFirst(this.#unlessBusy(work), Effect.as(this.#interrupted.wait, undefined))
  }
}

/** Milliseconds of audio that a session with so many samples may still receive. */
export const remainingMs = (samples: number): number =>
  longestSessionSeconds * 1000 - Math.floor(samplesToMs(samples, listenRateHz))
