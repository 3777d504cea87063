// The condition that live sessions wait on: set by plain code, waited for by any number of fibers, and nobody who has
// left is called.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Signal } from "#actors/live/Signal.ts"

it.effect("wakes all who wait, lets late ones pass until it is cleared, and forgets who left", () =>
  Effect.gen(function* () {
    const signal = new Signal()
    const wait = Effect.forkChild(signal.wait, { startImmediately: true })
    const [first, second, gone] = [yield* wait, yield* wait, yield* wait]
    yield* Fiber.interrupt(gone)
    expect(first.pollUnsafe()).toBeUndefined()
    signal.set()
    signal.set()
    yield* Fiber.join(first)
    yield* Fiber.join(second)
    yield* signal.wait
    signal.clear()
    const third = yield* wait
    yield* Effect.yieldNow
    expect(third.pollUnsafe()).toBeUndefined()
    signal.set()
    yield* Fiber.join(third)
  }),
)

it.effect("may be cleared and waited for again by whom it wakes", () =>
  Effect.gen(function* () {
    const signal = new Signal()
    let turns = 0
    const turn = Effect.forever(
      Effect.map(signal.wait, () => {
        signal.clear()
        turns++
      }),
    )
    const fiber = yield* Effect.forkChild(turn, { startImmediately: true })
    for (const expected of [1, 2, 3]) {
      signal.set()
      yield* Effect.yieldNow
      expect(turns).toBe(expected)
    }
    yield* Fiber.interrupt(fiber)
  }),
)
