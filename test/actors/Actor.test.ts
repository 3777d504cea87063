import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Message, spawn } from "#actors/Actor.ts"

class Add extends Message<number, "negative"> {
  readonly _tag = "Add"
  readonly by: number
  constructor(by: number) {
    super()
    this.by = by
  }
}
class Crash extends Message<void> {
  readonly _tag = "Crash"
}
class Wait extends Message<void> {
  readonly _tag = "Wait"
  readonly until: Deferred.Deferred<void>
  constructor(until: Deferred.Deferred<void>) {
    super()
    this.until = until
  }
}

const counter = (capacity = 8) =>
  spawn<number, Add | Crash | Wait>({
    name: "counter",
    capacity,
    restart: { intensity: 2, periodMs: 1_000, backoffBaseMs: 10, backoffCapMs: 100 },
    initial: Effect.succeed(0),
    handle: (state, message) => {
      switch (message._tag) {
        case "Add":
          return message.by < 0
            ? Effect.fail("negative" as const)
            : Effect.succeed([state + message.by, state + message.by] as const)
        case "Crash":
          return Effect.die(new Error("crash"))
        case "Wait":
          return Effect.as(Deferred.await(message.until), [state, undefined] as const)
      }
    },
  })

it.effect("handles one message at a time, in order, keeping its state", () =>
  Effect.gen(function* () {
    const ref = yield* counter()
    const sums = yield* Effect.forEach([1, 2, 3, 4], (by) => ref.ask(new Add(by)), {
      concurrency: "unbounded",
    })
    expect(sums).toEqual([1, 3, 6, 10])
  }),
)

it.effect("answers an expected failure without dying", () =>
  Effect.gen(function* () {
    const ref = yield* counter()
    yield* ref.ask(new Add(5))
    expect(yield* Effect.flip(ref.ask(new Add(-1)))).toBe("negative")
    expect(yield* ref.ask(new Add(1))).toBe(6)
  }),
)

it.effect("restarts after a defect with its initial state, and stops when that happens too often", () =>
  Effect.gen(function* () {
    const ref = yield* counter()
    yield* ref.ask(new Add(5))
    expect(Exit.isFailure(yield* Effect.exit(ref.ask(new Crash())))).toBe(true)
    yield* TestClock.adjust(100)
    expect(yield* ref.ask(new Add(1))).toBe(1)
    for (let i = 0; i < 2; i++) {
      yield* Effect.exit(ref.ask(new Crash()))
      yield* TestClock.adjust(100)
    }
    expect(yield* Effect.flip(ref.ask(new Add(1)))).toMatchObject({ _tag: "ActorStopped" })
  }),
)

it.effect("refuses at once when its mailbox is full", () =>
  Effect.gen(function* () {
    const ref = yield* counter(2)
    const gate = yield* Deferred.make<void>()
    const waiting = yield* Effect.forkChild(ref.ask(new Wait(gate)), { startImmediately: true })
    yield* Effect.yieldNow
    expect([ref.tell(new Add(1)), ref.tell(new Add(1))]).toEqual([true, true])
    expect(yield* Effect.flip(ref.ask(new Add(1)))).toMatchObject({ _tag: "MailboxFull" })
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(waiting)
    expect(yield* ref.ask(new Add(1))).toBe(3)
  }),
)

it.effect("fails what is in flight and in its mailbox when its scope closes", () =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const ref = yield* counter().pipe(Scope.provide(scope))
    const gate = yield* Deferred.make<void>()
    const first = yield* Effect.forkChild(Effect.flip(ref.ask(new Wait(gate))), { startImmediately: true })
    const second = yield* Effect.forkChild(Effect.flip(ref.ask(new Add(1))), { startImmediately: true })
    yield* Effect.yieldNow
    yield* Scope.close(scope, Exit.void)
    expect(yield* Fiber.join(first)).toMatchObject({ _tag: "ActorStopped" })
    expect(yield* Fiber.join(second)).toMatchObject({ _tag: "ActorStopped" })
    expect(yield* Effect.flip(ref.ask(new Add(1)))).toMatchObject({ _tag: "ActorStopped" })
  }),
)
