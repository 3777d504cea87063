// The requests of all sessions to one detection model: one call at a time, and what arrives while it runs shares the next one. A session has
// one piece under way at most, so what waits is bounded by the sessions. Thirty pieces come a second from each session, so one fiber serves all
// calls and a plain timer is the deadline: fibers for each of them would cost the gateway's thread more than the network that the model replaces.
import { Effect, Exit } from "effect"
import { Signal } from "#domain/queues/Signal.ts"
import type { Detected, DetectPiece } from "#engines/protocol/Detection.ts"

/** Pieces of one call. A guess: more of them would make the first wait for the last. */
const mostPieces = 64

interface Waiting {
  readonly piece: DetectPiece
  readonly done: (detected: Detected | undefined) => void
}

type Run = (pieces: ReadonlyArray<DetectPiece>) => Effect.Effect<ReadonlyArray<Detected>, unknown>

export class DetectionCalls {
  readonly #run: Run
  readonly #mostMs: number
  #waiting: Array<Waiting> = []
  readonly #news = new Signal()

  /** `run`: one call, with a result for each piece in their order. `mostMs`: a result that comes later is none. */
  constructor(run: Run, mostMs: number) {
    this.#run = run
    this.#mostMs = mostMs
  }

  /** Undefined where the call has failed, or took too long. Interruption gives up the result. */
  detect(piece: DetectPiece): Effect.Effect<Detected | undefined> {
    return Effect.callback((resume) => {
      const leave = () => {
        clearTimeout(deadline)
        this.#waiting = this.#waiting.filter((other) => other !== one)
      }
      const done = (detected: Detected | undefined) => {
        leave()
        resume(Effect.succeed(detected))
      }
      const one: Waiting = { piece, done }
      const deadline = setTimeout(() => done(undefined), this.#mostMs)
      this.#waiting.push(one)
      this.#news.set()
      return Effect.sync(leave)
    })
  }

  /** Makes the calls, as long as it runs. */
  readonly serve: Effect.Effect<never> = Effect.forever(
    Effect.gen({ self: this }, function* (this: DetectionCalls) {
      yield* this.#news.wait
      this.#news.clear()
      while (this.#waiting.length > 0) {
        const taken = this.#waiting.slice(0, mostPieces)
        this.#waiting = this.#waiting.slice(mostPieces)
        const exit = yield* Effect.exit(this.#run(taken.map(({ piece }) => piece)))
        const found = Exit.isSuccess(exit) ? exit.value : []
        for (const [i, { done }] of taken.entries()) done(found[i])
      }
    }),
  )
}
