// Repeats a measurement a planned number of times, or until its share of the bench's time is used up: a busy machine gets
// fewer readings, not a longer bench.
import { Clock, Effect } from "effect"

export interface RoundsPlan {
  readonly rounds: number
  /** Milliseconds after which no further round begins; the first always does. */
  readonly withinMs: number
}

export const repeatRounds = <A, E, R>(
  { rounds, withinMs }: RoundsPlan,
  round: (nth: number) => Effect.Effect<A, E, R>,
): Effect.Effect<ReadonlyArray<A>, E, R> =>
  Effect.gen(function* () {
    const readings: Array<A> = []
    const startedMs = yield* Clock.currentTimeMillis
    while (readings.length < rounds) {
      const spentMs = (yield* Clock.currentTimeMillis) - startedMs
      if (readings.length > 0 && spentMs >= withinMs) break
      readings.push(yield* round(readings.length))
    }
    return readings
  })
