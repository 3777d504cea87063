// How many times a measurement is repeated.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { repeatRounds } from "../../bench/support/Rounds.ts"

it.effect("stops at its rounds or its time, whichever comes first, and never without a reading", () =>
  Effect.gen(function* () {
    const secondsLong = (nth: number) => Effect.as(Effect.sleep(1_000), nth)
    const take = (rounds: number, withinMs: number) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(repeatRounds({ rounds, withinMs }, secondsLong))
        yield* TestClock.adjust(20_000)
        return yield* Fiber.join(fiber)
      })
    expect(yield* take(3, 10_000)).toEqual([0, 1, 2])
    expect(yield* take(10, 2_500)).toEqual([0, 1, 2])
    expect(yield* take(10, 0)).toEqual([0])
  }),
)
