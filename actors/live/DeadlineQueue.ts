// Order of the calls of live sessions at an engine: the earliest deadline first, so that a final result comes before every
// caption. Every session waits with at most one call, so the queue is as long as there are sessions and never fills the
// model's own. Called by LiveSessions.
import { Effect } from "effect"

/** One call at work and one on its way: the engine never waits for a message to cross. */
export const pipelined = 2
/** For calls so long that a message's way is nothing beside them: a second one would only slow the first. */
export const alone = 1

interface Waiting {
  readonly deadlineMs: number
  readonly atOnce: number
  readonly wake: () => void
}

export class DeadlineQueue {
  /** Sorted, the most urgent last. */
  private readonly line: Array<Waiting> = []
  private running = 0

  get waiting(): number {
    return this.line.length
  }

  /** Runs `work` when it is first in the queue and fewer than `atOnce` calls run. */
  take<A, E, R>(
    deadlineMs: number,
    work: Effect.Effect<A, E, R>,
    atOnce: number = pipelined,
  ): Effect.Effect<A, E, R> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.andThen(restore(this.turn(deadlineMs, atOnce)), Effect.ensuring(restore(work), this.pass)),
    )
  }

  private turn(deadlineMs: number, atOnce: number): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (this.running < atOnce) {
        this.running++
        return resume(Effect.void)
      }
      const one: Waiting = { deadlineMs, atOnce, wake: () => resume(Effect.void) }
      // Behind those of the same deadline, which were there first.
      const place = this.line.findIndex((other) => other.deadlineMs <= deadlineMs)
      this.line.splice(place < 0 ? this.line.length : place, 0, one)
      return Effect.sync(() => void this.line.splice(this.line.indexOf(one), 1))
    })
  }

  private readonly pass: Effect.Effect<void> = Effect.sync(() => {
    this.running--
    for (let next = this.line.at(-1); next !== undefined; next = this.line.at(-1)) {
      if (this.running >= next.atOnce) return
      this.line.pop()
      this.running++
      next.wake()
    }
  })
}
