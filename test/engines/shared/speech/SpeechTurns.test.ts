// Who speaks next: deadlines, cancellation in line, and that a turn is never lost or held twice.
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import fc from "fast-check"
import { earliest, makeTurns } from "#engines/shared/speech/SpeechTurns.ts"

describe("turns", () => {
  it.effect("go to the earliest deadline, and to the first comer among equals", () =>
    Effect.gen(function* () {
      const turns = makeTurns()
      const order: Array<string> = []
      const gate = yield* Deferred.make<void>()
      const holder = yield* Effect.forkChild(turns.take(0, Deferred.await(gate)), { startImmediately: true })
      const others = yield* Effect.forEach(
        [
          ["late", 30],
          ["early", 10],
          ["middle", 20],
          ["early too", 10],
        ] as const,
        ([name, dueAtMs]) =>
          Effect.forkChild(
            turns.take(
              dueAtMs,
              Effect.sync(() => order.push(name)),
            ),
            { startImmediately: true },
          ),
      )
      expect(turns.waiting()).toBe(4)
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(holder)
      yield* Effect.forEach(others, Fiber.join)
      expect(order).toEqual(["early", "early too", "middle", "late"])
    }),
  )

  it.effect("pass on when the one in line is interrupted, fails or dies", () =>
    Effect.gen(function* () {
      const turns = makeTurns()
      const gate = yield* Deferred.make<void>()
      const holder = yield* Effect.forkChild(turns.take(0, Deferred.await(gate)), { startImmediately: true })
      const gone = yield* Effect.forkChild(turns.take(1, Effect.die("never runs")), {
        startImmediately: true,
      })
      yield* Fiber.interrupt(gone)
      expect(turns.waiting()).toBe(0)
      const failing = yield* Effect.forkChild(Effect.exit(turns.take(2, Effect.fail("no"))), {
        startImmediately: true,
      })
      const dying = yield* Effect.forkChild(Effect.exit(turns.take(3, Effect.die("broken"))), {
        startImmediately: true,
      })
      yield* Fiber.interrupt(holder)
      expect((yield* Fiber.join(failing))._tag).toBe("Failure")
      expect((yield* Fiber.join(dying))._tag).toBe("Failure")
      expect(yield* turns.take(4, Effect.succeed("still open"))).toBe("still open")
    }),
  )

  it("are held by one at a time, whoever is interrupted and when", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({ dueAtMs: fc.nat(20), yields: fc.nat(4), interruptAfter: fc.option(fc.nat(12)) }),
          { minLength: 1, maxLength: 12 },
        ),
        (plans) =>
          Effect.runPromise(
            Effect.gen(function* () {
              const turns = makeTurns()
              let holders = 0
              const fibers = yield* Effect.forEach(plans, (plan) =>
                Effect.forkChild(
                  turns.take(
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
              expect(turns.waiting()).toBe(0)
              expect(yield* turns.take(0, Effect.succeed("free"))).toBe("free")
            }),
          ),
      ),
    ))

  it("choose an index that no other deadline precedes", () => {
    fc.assert(
      fc.property(fc.array(fc.record({ dueAtMs: fc.integer() }), { minLength: 1 }), (places) => {
        const chosen = earliest(places)
        const due = places[chosen]!.dueAtMs
        expect(
          places.every((place, index) => place.dueAtMs > due || (place.dueAtMs === due && index >= chosen)),
        ).toBe(true)
      }),
    )
  })
})
