// The condition that live sessions wait on: plain code sets it, any number of fibers wait for it, and a fiber that stopped
// waiting is not called.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Signal } from "#domain/queues/Signal.ts"

it.effect(
  "wakes every waiting fiber, lets later ones pass until it is cleared, and drops interrupted ones",
  () =>
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

it.effect("can be cleared and awaited again by a fiber that it wakes", () =>
  Effect.gen(function* () {
    const signal = new Signal()
    let wakeUps = 0
    const loop = Effect.forever(
      Effect.map(signal.wait, () => {
        signal.clear()
        wakeUps++
      }),
    )
    const fiber = yield* Effect.forkChild(loop, { startImmediately: true })
    for (const expected of [1, 2, 3]) {
      signal.set()
      yield* Effect.yieldNow
      expect(wakeUps).toBe(expected)
    }
    yield* Fiber.interrupt(fiber)
  }),
)
