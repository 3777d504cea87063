// Who uses a model beside the requests that its engine counts: requests that wait for a load, and work of several requests.
import { Effect, type Scope } from "effect"

export class ModelUse {
  #waitingCount = 0
  #holdCount = 0
  #keepCount = 0

  /** For work of several requests that need the same engine: a reload waits for it. */
  get hold(): Effect.Effect<void, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => void this.#holdCount++),
      () => Effect.sync(() => void this.#holdCount--),
    )
  }

  /** For work whose requests follow each other within seconds: the model is not idle between them. */
  get keep(): Effect.Effect<void, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => void this.#keepCount++),
      () => Effect.sync(() => void this.#keepCount--),
    )
  }

  /** Counts a request that waits for a load which it started. */
  whileWaiting<A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      this.#waitingCount++
      return Effect.ensuring(
        work,
        Effect.sync(() => this.#waitingCount--),
      )
    })
  }

  /** Whether a reload may end the model. */
  get isQuiet(): boolean {
    return this.#waitingCount === 0 && this.#holdCount === 0
  }

  /** Whether the model may be unloaded. */
  get isIdle(): boolean {
    return this.#waitingCount === 0 && this.#keepCount === 0
  }
}
