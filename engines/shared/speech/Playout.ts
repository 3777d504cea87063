// The playback clock of one speech request: when its next piece is due, how many samples were delivered and how much
// time they took to compute. Knows deadlines and samples only, not text.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { msToSamples } from "#domain/audio/Audio.ts"
import type { SpokenWord } from "#domain/audio/TimedWords.ts"
import type { DeadlineQueue } from "#domain/queues/DeadlineQueue.ts"
import { monotonicMsOf } from "#domain/queues/Monotonic.ts"
import type { EngineError, Outlet, SynthesizeEnd } from "../../protocol/Engine.ts"

/**
 * Pieces of a batch reply have no playback time, so each is due this long after it is requested: after every stream
 * that would run out of audio sooner, before one that is further ahead. A guess.
 */
const batchPatienceMs = 10_000

/**
 * Milliseconds of the first part of the first piece, which fits a pipe's buffer. What does not fit waits for the next
 * tick of the event loop, and that comes after the next piece's phonemes (12 ms for a long text, measured).
 */
const firstChunkMs = 250

interface PlayoutOptions {
  readonly calls: DeadlineQueue
  readonly rateHz: number
  readonly priority: "stream" | "batch"
}

type PieceOutlet = Omit<Outlet<"speech">, "started">

export class Playout {
  readonly #clock: Clock.Clock
  readonly #out: PieceOutlet
  readonly #options: PlayoutOptions
  readonly #arrivedAtMs: number
  #playsFromMs: number | undefined
  #computeNs = 0n
  #samples = 0

  private constructor(clock: Clock.Clock, options: PlayoutOptions, out: PieceOutlet) {
    this.#clock = clock
    this.#options = options
    this.#out = out
    this.#arrivedAtMs = monotonicMsOf(clock)
  }

  static make(options: PlayoutOptions, out: PieceOutlet): Effect.Effect<Playout> {
    return Clock.clockWith((clock) => Effect.sync(() => new Playout(clock, options, out)))
  }

  /** The result of the verb. */
  get end(): Required<SynthesizeEnd> {
    return { samples: this.#samples, computeMs: Number(this.#computeNs) / 1e6 }
  }

  /** Runs blocking work once this request has the earliest deadline of the waiting ones, and measures its time. */
  whenDue<A>(work: Effect.Effect<A, EngineError>): Effect.Effect<A, EngineError> {
    return Effect.suspend(() => this.#options.calls.take(this.#dueAtMs(), this.#timed(work)))
  }

  /** Waits while the reader is behind. */
  get wanted(): Effect.Effect<void> {
    return Effect.suspend(() => (this.#out.paused() ? this.#out.resumed : Effect.void))
  }

  /** Samples delivered so far. */
  get samples(): number {
    return this.#samples
  }

  /** Delivers samples, and the words that begin with them. The caller must not change them afterwards. */
  push(chunk: Int16Array, words: ReadonlyArray<SpokenWord> = []): void {
    if (chunk.length === 0) return
    this.#playsFromMs ??= monotonicMsOf(this.#clock)
    this.#samples += chunk.length
    this.#out.push(words.length === 0 ? { samples: chunk } : { samples: chunk, words })
  }

  /** Delivers a whole piece and yields, so that it is sent before the next work blocks the event loop. */
  give(piece: Int16Array, words: ReadonlyArray<SpokenWord> = []): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { rateHz } = this.#options
      const first = this.#samples === 0 ? Math.min(piece.length, msToSamples(firstChunkMs, rateHz)) : 0
      this.push(piece.slice(0, first), words)
      const rest = Effect.suspend(() => {
        this.push(piece.slice(first), first === 0 ? words : [])
        return Effect.yieldNow
      })
      return first === 0 ? rest : Effect.andThen(Effect.yieldNow, rest)
    })
  }

  #dueAtMs(): number {
    const { priority, rateHz } = this.#options
    if (priority === "batch") return monotonicMsOf(this.#clock) + batchPatienceMs
    if (this.#playsFromMs === undefined) return this.#arrivedAtMs
    return this.#playsFromMs + (this.#samples * 1000) / rateHz
  }

  #timed<A>(work: Effect.Effect<A, EngineError>): Effect.Effect<A, EngineError> {
    return Effect.suspend(() => {
      const beganNs = this.#clock.monotonicTimeNanosUnsafe()
      const stop = Effect.sync(() => {
        this.#computeNs += this.#clock.monotonicTimeNanosUnsafe() - beganNs
      })
      return Effect.ensuring(work, stop)
    })
  }
}
