// Admits requests to the sequences of a context. A semaphore alone would let small requests pass a large one, which could
// then wait for ever; here requests that come after a waiting request for several sequences wait until it was admitted.
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Semaphore from "effect/Semaphore"

export class Entrance {
  readonly #permits: Semaphore.Semaphore
  /** Opens when the last waiting request for several sequences was admitted or has left. */
  #last: Latch.Latch | undefined

  constructor(permits: Semaphore.Semaphore) {
    this.#permits = permits
  }

  /** Runs `use` with `count` sequences. All of them are taken at once, so two requests never wait for each other. */
  enter<A, E>(count: number, use: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      const before = this.#last
      if (count === 1) {
        const admitted = this.#permits.withPermits(1)(use)
        return before === undefined ? admitted : Effect.andThen(before.await, admitted)
      }
      const latch = Latch.makeUnsafe(false)
      this.#last = latch
      const open = Effect.sync(() => {
        latch.openUnsafe()
        if (this.#last === latch) this.#last = undefined
      })
      const admitted = this.#permits.withPermits(count)(Effect.andThen(open, use))
      return Effect.ensuring(before === undefined ? admitted : Effect.andThen(before.await, admitted), open)
    })
  }
}
