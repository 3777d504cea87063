// Order by deadline, interruption of a waiting call, and that no place is lost or held twice.
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import fc from "fast-check"
import { DeadlineQueue } from "#domain/queues/DeadlineQueue.ts"

const settled = Effect.repeat(Effect.yieldNow, { times: 20 })

describe("DeadlineQueue", () => {
  it.effect("the earliest deadline goes first, and of equal ones the first that came", () =>
    Effect.gen(function* () {
      const queue = new DeadlineQueue()
      const order: Array<string> = []
      const gate = yield* Deferred.make<void>()
      const holder = yield* Effect.forkChild(queue.take(0, Deferred.await(gate)), { startImmediately: true })
      const others = yield* Effect.forEach(
        [
          ["late", 30],
          ["early", 10],
          ["middle", 20],
          ["early too", 10],
        ] as const,
        ([name, dueAtMs]) =>
          Effect.forkChild(
            queue.take(
              dueAtMs,
              Effect.sync(() => order.push(name)),
            ),
            { startImmediately: true },
          ),
      )
      expect(queue.waiting).toBe(4)
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(holder)
      yield* Effect.forEach(others, Fiber.join)
      expect(order).toEqual(["early", "early too", "middle", "late"])
    }),
  )

  it.effect("goes on when a call is interrupted, fails or dies", () =>
    Effect.gen(function* () {
      const queue = new DeadlineQueue()
      const gate = yield* Deferred.make<void>()
      const holder = yield* Effect.forkChild(queue.take(0, Deferred.await(gate)), { startImmediately: true })
      const gone = yield* Effect.forkChild(queue.take(1, Effect.die("never runs")), {
        startImmediately: true,
      })
      yield* Fiber.interrupt(gone)
      expect(queue.waiting).toBe(0)
      const failing = yield* Effect.forkChild(Effect.exit(queue.take(2, Effect.fail("no"))), {
        startImmediately: true,
      })
      const dying = yield* Effect.forkChild(Effect.exit(queue.take(3, Effect.die("broken"))), {
        startImmediately: true,
      })
      yield* Fiber.interrupt(holder)
      expect((yield* Fiber.join(failing))._tag).toBe("Failure")
      expect((yield* Fiber.join(dying))._tag).toBe("Failure")
      expect(yield* queue.take(4, Effect.succeed("still open"))).toBe("still open")
    }),
  )

  it("runs one call at a time, whichever is interrupted and when", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({ dueAtMs: fc.nat(20), yields: fc.nat(4), interruptAfter: fc.option(fc.nat(12)) }),
          { minLength: 1, maxLength: 12 },
        ),
        (plans) =>
          Effect.runPromise(
            Effect.gen(function* () {
              const queue = new DeadlineQueue()
              let holders = 0
              const fibers = yield* Effect.forEach(plans, (plan) =>
                Effect.forkChild(
                  queue.take(
                    plan.dueAtMs,
                    Effect.gen(function* () {
                      expect(++holders).toBe(1)
                      for (let i = 0; i < plan.yields; i++) yield* Effect.yieldNow
                    }).pipe(Effect.ensuring(Effect.sync(() => holders--))),
                  ),
                ),
              )
              yield* Effect.forEach(
                plans,
                ({ interruptAfter }, index) =>
                  Effect.gen(function* () {
                    if (interruptAfter === null) return
                    for (let i = 0; i < interruptAfter; i++) yield* Effect.yieldNow
                    yield* Fiber.interrupt(fibers[index]!)
                  }),
                { concurrency: "unbounded" },
              )
              yield* Effect.forEach(fibers, (fiber) => Fiber.await(fiber))
              expect(queue.waiting).toBe(0)
              expect(yield* queue.take(0, Effect.succeed("free"))).toBe("free")
            }),
          ),
      ),
    ))

  it.effect("two work at once; then the earliest deadline, then the first to arrive", () =>
    Effect.gen(function* () {
      const queue = new DeadlineQueue()
      const order: Array<string> = []
      const gates = new Map<string, Deferred.Deferred<void>>()
      const start = (name: string, deadlineMs: number) =>
        Effect.gen(function* () {
          const gate = yield* Deferred.make<void>()
          gates.set(name, gate)
          const work = Effect.andThen(
            Effect.sync(() => order.push(name)),
            Deferred.await(gate),
          )
          return yield* Effect.forkChild(queue.take(deadlineMs, work, 2), { startImmediately: true })
        })
      for (const [name, deadline] of [
        ["a", 9],
        ["b", 9],
        ["late", 500],
        ["first", 300],
        ["second", 300],
        ["stop", 0],
      ] as const) {
        yield* start(name, deadline)
      }
      expect(order).toEqual(["a", "b"])
      expect(queue.waiting).toBe(4)
      for (const name of ["a", "b", "stop", "first"]) {
        yield* Deferred.succeed(gates.get(name)!, undefined)
        yield* settled
      }
      expect(order).toEqual(["a", "b", "stop", "first", "second", "late"])
    }),
  )

  it.effect("a call that ends, fails or is interrupted makes place for the next", () =>
    Effect.gen(function* () {
      const queue = new DeadlineQueue()
      const forever = (deadlineMs: number) =>
        Effect.forkChild(queue.take(deadlineMs, Effect.never, 2), { startImmediately: true })
      const working = [yield* forever(1), yield* forever(1)]
      const waiting = yield* forever(1)
      yield* Fiber.interrupt(waiting)
      expect(queue.waiting).toBe(0)
      const failed = yield* Effect.forkChild(Effect.exit(queue.take(2, Effect.fail("no"), 2)))
      const died = yield* Effect.forkChild(Effect.exit(queue.take(3, Effect.die("no"), 2)))
      yield* settled
      expect(queue.waiting).toBe(2)
      yield* Fiber.interrupt(working[0]!)
      yield* Fiber.join(failed)
      yield* Fiber.join(died)
      yield* Fiber.interrupt(working[1]!)
      expect(yield* queue.take(0, Effect.succeed(1))).toBe(1)
    }),
  )
})
