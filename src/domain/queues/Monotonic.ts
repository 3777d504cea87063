// Milliseconds of a monotonic clock, for measuring durations: rate limits, caches, deadlines, idle times. The wall
// clock may be set while the node runs; it is for dates that are shown, stored or compared with another machine's. The
// zero is arbitrary and differs between processes.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

export const monotonicMsOf = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

export const monotonicMs: Effect.Effect<number> = Effect.map(
  Clock.monotonicTimeNanos,
  (nanos) => Number(nanos) / 1e6,
)
