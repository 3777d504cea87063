// The queue of a resource that serves a few calls at a time: the call with the earliest deadline goes first; of equal
// deadlines, the one that came first. The callers bound its length, because each has at most one call waiting.
import * as Effect from "effect/Effect"

interface Waiting {
  readonly deadlineMs: number
  readonly atOnce: number
  readonly wake: () => void
}

export class DeadlineQueue {
  /** Sorted, the most urgent last. */
  readonly #line: Array<Waiting> = []
  #running = 0

  /** Number of waiting calls, without those that run. */
  get waiting(): number {
    return this.#line.length
  }

  /**
   * Runs `work` when it is first in the queue and fewer than `atOnce` calls run. `deadlineMs` is on the caller's clock.
   * A call that is interrupted while it waits leaves the queue; the next call starts however `work` ends.
   */
  take<A, E, R>(deadlineMs: number, work: Effect.Effect<A, E, R>, atOnce = 1): Effect.Effect<A, E, R> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.andThen(restore(this.#enter(deadlineMs, atOnce)), Effect.ensuring(restore(work), this.#leave)),
    )
  }

  #enter(deadlineMs: number, atOnce: number): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (this.#running < atOnce) {
        this.#running++
        return resume(Effect.void)
      }
      const one: Waiting = { deadlineMs, atOnce, wake: () => resume(Effect.void) }
      // After those of the same deadline, which came first.
      const place = this.#line.findIndex((other) => other.deadlineMs <= deadlineMs)
      this.#line.splice(place < 0 ? this.#line.length : place, 0, one)
      return Effect.suspend(() => {
        const at = this.#line.indexOf(one)
        // It was started at the moment of the interruption: the next call starts in its place.
        if (at < 0) return this.#leave
        this.#line.splice(at, 1)
        return Effect.void
      })
    })
  }

  readonly #leave: Effect.Effect<void> = Effect.sync(() => {
    this.#running--
    for (let next = this.#line.at(-1); next !== undefined; next = this.#line.at(-1)) {
      if (this.#running >= next.atOnce) return
      this.#line.pop()
      this.#running++
      next.wake()
    }
  })
}
