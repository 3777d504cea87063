// Milliseconds of a clock that never jumps, for everything that measures how long ago something was: rate limits, caches,
// deadlines, idle times. The wall clock may be set forwards or backwards while the node runs; it is for dates that are
// shown, written to the store or checked against another machine's. The zero is arbitrary and differs between processes.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

export const monotonicMsOf = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

export const monotonicMs: Effect.Effect<number> = Effect.map(
  Clock.monotonicTimeNanos,
  (nanos) => Number(nanos) / 1e6,
)
