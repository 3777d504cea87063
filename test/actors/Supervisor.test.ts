import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Ref } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { backoffMs, type RestartPolicy, supervise, withinPeriod } from "#actors/Supervisor.ts"

const policy: RestartPolicy = { intensity: 3, periodMs: 30_000, backoffBaseMs: 100, backoffCapMs: 10_000 }

/** A child that runs for `lifeMs` and then dies, counting its starts. */
const mortal = (starts: Ref.Ref<number>, lifeMs: number) =>
  Ref.update(starts, (n) => n + 1).pipe(
    Effect.andThen(Effect.sleep(lifeMs)),
    Effect.andThen(Effect.die(new Error("dead"))),
  )

const noNews = () => Effect.void

it.effect("gives up after more restarts than the window allows", () =>
  Effect.gen(function* () {
    const starts = yield* Ref.make(0)
    const fiber = yield* Effect.forkChild(
      mortal(starts, 0).pipe(supervise("child", policy, noNews), Effect.flip),
    )
    yield* TestClock.adjust("29 seconds")
    const error = yield* Fiber.join(fiber)
    expect(error).toMatchObject({ _tag: "RestartIntensityExceeded", child: "child", restarts: 3 })
    expect(yield* Ref.get(starts)).toBe(4)
  }),
)

it.effect("keeps restarting a child that dies more seldom than the window", () =>
  Effect.gen(function* () {
    const starts = yield* Ref.make(0)
    const fiber = yield* Effect.forkChild(supervise("child", policy, noNews)(mortal(starts, 15_000)))
    yield* TestClock.adjust("10 minutes")
    expect(fiber.pollUnsafe()).toBeUndefined()
    expect(yield* Ref.get(starts)).toBeGreaterThan(35)
    yield* Fiber.interrupt(fiber)
  }),
)

it.effect("passes a success and an interruption through", () =>
  Effect.gen(function* () {
    expect(yield* supervise("child", policy, noNews)(Effect.succeed(7))).toBe(7)
    const fiber = yield* Effect.forkChild(supervise("child", policy, noNews)(Effect.never), {
      startImmediately: true,
    })
    yield* Fiber.interrupt(fiber)
    expect(fiber.pollUnsafe()?._tag).toBe("Failure")
  }),
)

it("backs off exponentially, within its cap and half a step of jitter", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 40 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (nth, jitter) => {
        const step = Math.min(policy.backoffCapMs, policy.backoffBaseMs * 2 ** (nth - 1))
        const pause = backoffMs(policy, nth, jitter)
        expect(pause).toBeGreaterThanOrEqual(step / 2)
        expect(pause).toBeLessThanOrEqual(step)
      },
    ),
  )
})

it("counts only what lies inside the window", () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(100_000)),
      fc.nat(100_000),
      fc.integer({ min: 1, max: 50_000 }),
      (times, now, period) => {
        const sorted = times.filter((at) => at <= now).sort((a, b) => a - b)
        expect(withinPeriod(sorted, now, period)).toEqual(sorted.filter((at) => at > now - period))
      },
    ),
  )
})
