// Durations must not change when the wall clock is set.
import { expect, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { RateLimit } from "#api/access/RateLimit.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"

/** A clock whose wall time and monotonic time are set by the test. */
const settable = () => {
  const times = { wallMs: 1_000_000_000, monotonicMs: 5_000 }
  const nanos = (ms: number): bigint => BigInt(ms) * 1_000_000n
  const clock: Clock.Clock = {
    currentTimeMillisUnsafe: () => times.wallMs,
    currentTimeMillis: Effect.sync(() => times.wallMs),
    currentTimeNanosUnsafe: () => nanos(times.wallMs),
    currentTimeNanos: Effect.sync(() => nanos(times.wallMs)),
    monotonicTimeNanosUnsafe: () => nanos(times.monotonicMs),
    monotonicTimeNanos: Effect.sync(() => nanos(times.monotonicMs)),
    sleep: () => Effect.never,
  }
  return { times, clock }
}

it("a wall clock that is set back an hour admits as many requests as before", async () => {
  const { clock, times } = settable()
  const admitted = await Effect.runPromise(
    Effect.gen(function* () {
      const limit = yield* RateLimit
      let count = 0
      const second = (requests: number) =>
        Effect.gen(function* () {
          for (let i = 0; i < requests; i++) {
            if ((yield* Effect.exit(limit.admit("user")))._tag === "Success") count++
          }
          times.monotonicMs += 1_000
          times.wallMs += 1_000
        })
      yield* second(10)
      times.wallMs -= 3_600_000
      for (let i = 0; i < 300; i++) yield* second(1)
      return count
    }).pipe(Effect.provide(RateLimit.layer(10)), Effect.provideService(Clock.Clock, clock)),
  )
  // Ten at once, ten a minute after each of the next four minutes has passed, and one in the 300th second.
  expect(admitted).toBe(51)
})

it("is in milliseconds", async () => {
  const { clock } = settable()
  expect(await Effect.runPromise(Effect.provideService(monotonicMs, Clock.Clock, clock))).toBe(5_000)
})
