// Repeats a measurement as often as planned, or as often as its share of the bench's time allows: a busy machine gets
// fewer readings, not a longer bench. Called by the sections of a suite.
import { Clock, Effect } from "effect"

export interface RoundsPlan {
  readonly rounds: number
  /** No round begins after this; the first always does. */
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
