import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Message, spawn } from "#actors/Actor.ts"
import type { ChildTerms } from "#actors/Child.ts"

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
class End extends Message<string> {
  readonly _tag = "End"
}
class Wait extends Message<void> {
  readonly _tag = "Wait"
  readonly until: Deferred.Deferred<void>
  constructor(until: Deferred.Deferred<void>) {
    super()
    this.until = until
  }
}

const terms: ChildTerms = {
  kind: "worker",
  restart: "transient",
  intensity: { intensity: 2, periodMs: 1_000, backoffBaseMs: 10, backoffCapMs: 100 },
  shutdownMs: 1_000,
}

const counter = (capacity = 8) =>
  spawn<number, Add | Crash | End | Wait, number>({
    name: "counter",
    terms,
    capacity,
    initial: () => Effect.succeed(0),
    handle: {
      Add: (state, { by }) =>
        by < 0 ? Effect.fail("negative" as const) : Effect.succeed({ state: state + by, reply: state + by }),
      Crash: () => Effect.die(new Error("crash")),
      End: (state) => Effect.succeed({ state, reply: "ended", end: { value: state } }),
      Wait: (state, { until }) => Effect.as(Deferred.await(until), { state, reply: undefined }),
    },
  })

it.effect("handles one message at a time, in order, keeping and publishing its state", () =>
  Effect.gen(function* () {
    const ref = yield* counter()
    const sums = yield* Effect.forEach([1, 2, 3, 4], (by) => ref.ask(new Add(by)), {
      concurrency: "unbounded",
    })
    expect(sums).toEqual([1, 3, 6, 10])
    expect(ref.state()).toBe(10)
  }),
)

it.effect("answers an expected failure without ending", () =>
  Effect.gen(function* () {
    const ref = yield* counter()
    yield* ref.ask(new Add(5))
    expect(yield* Effect.flip(ref.ask(new Add(-1)))).toBe("negative")
    expect(yield* ref.ask(new Add(1))).toBe(6)
  }),
)

it.effect("restarts after a defect with its initial state, and ends when that happens too often", () =>
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
    expect(yield* ref.ended).toMatchObject({ reason: "gave-up", restarts: 2 })
    expect(ref.node).toMatchObject({ state: "gave up", restarts: 2 })
  }),
)

it.effect("ends with a message that requests it, and gives its result to those that watch it", () =>
  Effect.gen(function* () {
    const ref = yield* counter()
    yield* ref.ask(new Add(7))
    const after = yield* Effect.forkChild(Effect.flip(ref.ask(new Add(1))))
    expect(yield* ref.ask(new End())).toBe("ended")
    expect(yield* ref.ended).toEqual({ reason: "finished", value: 7 })
    expect(yield* Fiber.join(after)).toMatchObject({ _tag: "ActorStopped" })
    expect(ref.tell(new Add(1))).toBe(false)
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
    expect(ref.node.details.mailbox?.()).toEqual({ depth: 2, bound: 2 })
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(waiting)
    expect(yield* ref.ask(new Add(1))).toBe(3)
  }),
)

it.effect("keeps a message that must not be lost until there is room for it, or until it has ended", () =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const ref = yield* counter(1).pipe(Scope.provide(scope))
    const gate = yield* Deferred.make<void>()
    const fork = <A, E>(effect: Effect.Effect<A, E>) =>
      Effect.tap(Effect.forkChild(effect, { startImmediately: true }), () => Effect.yieldNow)
    const running = yield* fork(ref.ask(new Wait(gate)))
    const kept = yield* Effect.forEach([1, 2, 3], (by) => fork(ref.deliver(new Add(by))))
    expect(yield* Effect.flip(ref.ask(new Add(9)))).toMatchObject({ _tag: "MailboxFull" })
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(running)
    expect(yield* Effect.forEach(kept, Fiber.join)).toEqual([1, 3, 6])
    const held = yield* Deferred.make<void>()
    const last = yield* Effect.forEach([new Wait(held), new Wait(held), new Wait(held)], (wait) =>
      fork(Effect.flip(ref.deliver(wait))),
    )
    yield* Scope.close(scope, Exit.void)
    for (const fiber of last) expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "ActorStopped" })
  }),
)

it.effect("gives the next incarnation the state before the crash", () =>
  Effect.gen(function* () {
    const ref = yield* spawn<number, Add | Crash>({
      name: "keeper",
      terms,
      capacity: 8,
      initial: (before) => Effect.succeed(before ?? 100),
      handle: {
        Add: (state, { by }) => Effect.succeed({ state: state + by, reply: state + by }),
        Crash: () => Effect.die(new Error("crash")),
      },
    })
    expect(yield* ref.ask(new Add(1))).toBe(101)
    yield* Effect.exit(ref.ask(new Crash()))
    yield* TestClock.adjust(100)
    expect(yield* ref.ask(new Add(1))).toBe(102)
  }),
)

it.effect("fails the running message and those in its mailbox when its scope closes", () =>
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
    expect(yield* ref.ended).toEqual({ reason: "stopped" })
  }),
)
