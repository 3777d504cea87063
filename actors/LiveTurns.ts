// Whose turn it is at an engine, among live sessions: the earliest deadline first, so that a session whose speaker has
// stopped comes before one that speaks on. Every session waits with at most one call, so the line is as long as there
// are sessions and never fills the model's own. Called by LiveDesk.
import { Effect } from "effect"

/** One call at work and one on its way: the engine never waits for a message to cross. */
const atOnce = 2

interface Waiting {
  readonly deadlineMs: number
  readonly wake: () => void
}

export class LiveTurns {
  /** Sorted, the most urgent last. */
  private readonly line: Array<Waiting> = []
  private running = 0

  get waiting(): number {
    return this.line.length
  }

  /** Runs `work` when it is its turn. */
  take<A, E, R>(deadlineMs: number, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.andThen(restore(this.turn(deadlineMs)), Effect.ensuring(restore(work), this.pass)),
    )
  }

  private turn(deadlineMs: number): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (this.running < atOnce) {
        this.running++
        return resume(Effect.void)
      }
      const one: Waiting = { deadlineMs, wake: () => resume(Effect.void) }
      // Behind those of the same deadline, which were there first.
      const place = this.line.findIndex((other) => other.deadlineMs <= deadlineMs)
      this.line.splice(place < 0 ? this.line.length : place, 0, one)
      return Effect.sync(() => void this.line.splice(this.line.indexOf(one), 1))
    })
  }

  private readonly pass: Effect.Effect<void> = Effect.sync(() => {
    const next = this.line.pop()
    if (next === undefined) this.running--
    else next.wake()
  })
}
