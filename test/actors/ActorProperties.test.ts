// Random orders of messages, crashes, pauses and the actor's end. The test moves the clock.
import { Deferred, Effect, Exit, Fiber, References, Scope } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { expect, it } from "vitest"
import { type ActorRef, Message, spawn } from "#actors/Actor.ts"
import { type ChildTerms, withinPeriod } from "#actors/Child.ts"

class Echo extends Message<number, "refused"> {
  readonly _tag = "Echo"
  readonly id: number
  readonly takesMs: number
  readonly way: "reply" | "refuse" | "crash"
  constructor(id: number, takesMs: number, way: Echo["way"]) {
    super()
    this.id = id
    this.takesMs = takesMs
    this.way = way
  }
}

type Step =
  | {
      readonly do: "ask"
      readonly way: Echo["way"]
      readonly takesMs: number
    }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "stop" }

const steps: fc.Arbitrary<ReadonlyArray<Step>> = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        do: fc.constant("ask" as const),
        way: fc.constantFrom<Echo["way"]>("reply", "reply", "reply", "refuse", "crash"),
        takesMs: fc.constantFrom(0, 0, 5, 40),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 400 }) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("stop" as const) }) },
  ),
  { maxLength: 40 },
)

const silent = Effect.provideService(References.MinimumLogLevel, "None")

const run = <A>(test: Effect.Effect<A, unknown, Scope.Scope>): Promise<A> =>
  Effect.runPromise(test.pipe(silent, Effect.scoped, Effect.provide(TestClock.layer())))

it("gives every message exactly one reply, in order, within the mailbox's bound and the restart intensity", async () => {
  const intensity = { intensity: 3, periodMs: 500, backoffBaseMs: 10, backoffCapMs: 100 }
  const terms: ChildTerms = { kind: "worker", restart: "transient", intensity, shutdownMs: 1_000 }
  await fc.assert(
    fc.asyncProperty(steps, fc.integer({ min: 1, max: 4 }), (script, capacity) =>
      run(
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          const handled: Array<number> = []
          const crashes: Array<number> = []
          let atOnce = 0
          let nowMs = 0
          const ref: ActorRef<number, Echo> = yield* spawn<number, Echo>({
            name: "echo",
            terms,
            capacity,
            initial: () => Effect.succeed(0),
            handle: {
              Echo: (state, { id, takesMs, way }) =>
                Effect.gen(function* () {
                  expect(++atOnce).toBe(1)
                  handled.push(id)
                  yield* Effect.sleep(takesMs)
                  if (way === "crash") {
                    crashes.push(nowMs)
                    return yield* Effect.die(new Error("crash"))
                  }
                  if (way === "refuse") return yield* Effect.fail("refused" as const)
                  return { state: state + 1, reply: id }
                }).pipe(Effect.ensuring(Effect.sync(() => atOnce--))),
            },
          }).pipe(Scope.provide(scope))
          const outcomes: Array<ReadonlyArray<string>> = []
          const fibers: Array<Fiber.Fiber<unknown>> = []
          let id = 0
          for (const step of script) {
            if (step.do === "wait") {
              // In small steps, so that the time of a crash is known.
              for (let ms = 0; ms < step.ms; ms += 5) {
                nowMs += 5
                yield* TestClock.adjust(5)
                expect(ref.node.details.mailbox?.().depth ?? 0).toBeLessThanOrEqual(capacity)
              }
            } else if (step.do === "stop") yield* Scope.close(scope, Exit.void)
            else {
              const mine = id++
              const seen: Array<string> = []
              outcomes[mine] = seen
              const asked = ref.ask(new Echo(mine, step.takesMs, step.way)).pipe(
                Effect.matchCause({
                  onSuccess: (reply) => void seen.push(`reply ${reply}`),
                  onFailure: (cause) => {
                    const error = cause.reasons.find((one) => one._tag === "Fail")?.error
                    seen.push(
                      error === undefined
                        ? (cause.reasons[0]?._tag ?? "none")
                        : typeof error === "string"
                          ? error
                          : error._tag,
                    )
                  },
                }),
              )
              fibers.push(yield* Effect.forkDetach(asked, { startImmediately: true }))
              expect(ref.node.details.mailbox?.().depth ?? 0).toBeLessThanOrEqual(capacity)
            }
          }
          yield* Scope.close(scope, Exit.void)
          yield* TestClock.adjust(1_000)
          for (const fiber of fibers) yield* Fiber.join(fiber)
          for (const [mine, seen] of outcomes.entries()) {
            expect(seen).toHaveLength(1)
            expect([`reply ${mine}`, "refused", "Die", "ActorStopped", "MailboxFull"]).toContain(seen[0])
          }
          // Each at most once, in the order in which they were asked.
          expect(handled).toEqual([...new Set(handled)].sort((a, b) => a - b))
          for (const at of crashes)
            expect(withinPeriod(crashes, at, intensity.periodMs).filter((one) => one <= at).length)
              // The last one is the crash beyond the restart intensity.
              .toBeLessThanOrEqual(intensity.intensity + 1)
          expect(ref.tell(new Echo(-1, 0, "reply"))).toBe(false)
          expect((yield* ref.ended).reason).toMatch(/stopped|gave-up/)
        }),
      ),
    ),
    { numRuns: 150 },
  )
})

it("replies to a message whose actor is stopped while it handles it", () =>
  run(
    Effect.gen(function* () {
      const begun = Deferred.makeUnsafe<void>()
      const ref = yield* spawn<number, Echo>({
        name: "echo",
        terms: {
          kind: "worker",
          restart: "permanent",
          intensity: { intensity: 1, periodMs: 1, backoffBaseMs: 1, backoffCapMs: 1 },
          shutdownMs: 100,
        },
        capacity: 1,
        initial: () => Effect.succeed(0),
        // Native code that does not notice an interruption.
        handle: {
          Echo: () =>
            Effect.andThen(Deferred.succeed(begun, undefined), Effect.uninterruptible(Effect.never)),
        },
      })
      const asked = yield* Effect.forkDetach(Effect.flip(ref.ask(new Echo(0, 0, "reply"))))
      yield* Deferred.await(begun)
      const stopping = yield* Effect.forkDetach(ref.stop, { startImmediately: true })
      yield* TestClock.adjust(100)
      yield* Fiber.join(stopping)
      expect(yield* Fiber.join(asked)).toMatchObject({ _tag: "ActorStopped" })
    }),
  ))
