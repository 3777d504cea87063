// One speech request against its listener's clock: when its next piece is due, whose turn it is, what has been handed
// out and what it cost. Called by the verbs of the speech adapters; it knows deadlines and samples and nothing of
// speech.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { msToSamples } from "#domain/audio/Audio.ts"
import type { DeadlineQueue } from "#domain/queues/DeadlineQueue.ts"
import { monotonicMsOf } from "#domain/queues/Monotonic.ts"
import type { EngineError, Outlet, SynthesizeEnd } from "../../protocol/Engine.ts"

/**
 * Nobody listens to a batch reply while it is made, so its pieces are due this long after they are asked for:
 * behind every stream that would run dry sooner, ahead of one that is further ahead than that. A guess.
 */
const BATCH_PATIENCE_MS = 10_000

/**
 * The first piece leaves in two parts, the first of which fits a pipe's buffer: what does not fit waits for the next
 * turn of the event loop, and that comes after the next piece's phonemes (12 ms for a long text, measured).
 */
const FIRST_CHUNK_MS = 250

export interface PlayoutOptions {
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
  #heardFromMs: number | undefined
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

  /** What the verb ends with. */
  get end(): Required<SynthesizeEnd> {
    return { samples: this.#samples, computeMs: Number(this.#computeNs) / 1e6 }
  }

  /** Runs work that holds up everybody else, when it is this request's turn. */
  inTurn<A>(work: Effect.Effect<A, EngineError>): Effect.Effect<A, EngineError> {
    return Effect.suspend(() => this.#options.calls.take(this.#dueAtMs(), this.#timed(work)))
  }

  /** Waits while the reader has enough. */
  get wanted(): Effect.Effect<void> {
    return Effect.suspend(() => (this.#out.paused() ? this.#out.resumed : Effect.void))
  }

  /** Hands out samples that nobody writes to afterwards. */
  push(chunk: Int16Array): void {
    if (chunk.length === 0) return
    this.#heardFromMs ??= monotonicMsOf(this.#clock)
    this.#samples += chunk.length
    this.#out.push({ samples: chunk })
  }

  /** Hands out a whole piece and lets it leave: what comes next may hold the event loop for a while. */
  give(piece: Int16Array): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { rateHz } = this.#options
      const first = this.#samples === 0 ? Math.min(piece.length, msToSamples(FIRST_CHUNK_MS, rateHz)) : 0
      this.push(piece.slice(0, first))
      const rest = Effect.suspend(() => {
        this.push(piece.slice(first))
        return Effect.yieldNow
      })
      return first === 0 ? rest : Effect.andThen(Effect.yieldNow, rest)
    })
  }

  #dueAtMs(): number {
    const { priority, rateHz } = this.#options
    if (priority === "batch") return monotonicMsOf(this.#clock) + BATCH_PATIENCE_MS
    if (this.#heardFromMs === undefined) return this.#arrivedAtMs
    return this.#heardFromMs + (this.#samples * 1000) / rateHz
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
