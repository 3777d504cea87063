// The requests of all sessions to one detection model: one call at a time, and what arrives while it runs shares the next one. A session has
// one piece under way at most, so what waits is bounded by the sessions.
import { Effect } from "effect"
import type { Detected, DetectPiece } from "#engines/protocol/Detection.ts"

/** Pieces of one call. A guess: more of them would make the first wait for the last. */
const mostPieces = 64

interface Waiting {
  readonly piece: DetectPiece
  readonly done: (detected: Detected | undefined) => void
}

export class DetectionCalls {
  readonly #run: (pieces: ReadonlyArray<DetectPiece>) => Effect.Effect<ReadonlyArray<Detected>, unknown>
  readonly #fork: (work: Effect.Effect<void>) => void
  #waiting: Array<Waiting> = []
  #isServing = false

  /** `run`: one call, with a result for each piece in their order. `fork`: runs the calls beside the sessions. */
  constructor(
    run: (pieces: ReadonlyArray<DetectPiece>) => Effect.Effect<ReadonlyArray<Detected>, unknown>,
    fork: (work: Effect.Effect<void>) => void,
  ) {
    this.#run = run
    this.#fork = fork
  }

  /** Undefined where the call has failed. Interruption gives up the result. */
  detect(piece: DetectPiece): Effect.Effect<Detected | undefined> {
    return Effect.callback((resume) => {
      const one: Waiting = { piece, done: (detected) => resume(Effect.succeed(detected)) }
      this.#waiting.push(one)
      if (!this.#isServing) {
        this.#isServing = true
        this.#fork(this.#serve)
      }
      return Effect.sync(() => {
        this.#waiting = this.#waiting.filter((other) => other !== one)
      })
    })
  }

  readonly #serve: Effect.Effect<void> = Effect.gen({ self: this }, function* (this: DetectionCalls) {
    // Pieces that arrive in the same tick share the first call.
    yield* Effect.yieldNow
    while (this.#waiting.length > 0) {
      const taken = this.#waiting.slice(0, mostPieces)
      this.#waiting = this.#waiting.slice(mostPieces)
      const found = yield* Effect.orElseSucceed(
        this.#run(taken.map(({ piece }) => piece)),
        (): ReadonlyArray<Detected> => [],
      )
      for (const [i, { done }] of taken.entries()) done(found[i])
    }
    this.#isServing = false
  })
}
