// The arithmetic of stream admission and its leases of slots.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { admits, maxStreamLoad, nextFactor, weightOf } from "#domain/models/StreamLoad.ts"
import { SpeechAdmission, type SpeechModel } from "#services/SpeechAdmission.ts"

describe("the moving real-time factor", () => {
  const replies = fc.array(
    fc.record({
      audioMs: fc.double({ min: 1, max: 600_000, noNaN: true }),
      factor: fc.double({ min: 0, max: 5, noNaN: true }),
    }),
    { minLength: 1 },
  )

  it("lies between the smallest and the largest that was seen", () => {
    fc.assert(
      fc.property(replies, (all) => {
        let moving: number | undefined
        for (const { audioMs, factor } of all) moving = nextFactor(moving, factor * audioMs, audioMs)
        const factors = all.map(({ factor }) => factor)
        expect(moving).toBeGreaterThanOrEqual(Math.min(...factors) - 1e-9)
        expect(moving).toBeLessThanOrEqual(Math.max(...factors) + 1e-9)
      }),
    )
  })

  it("is the first reading, follows the newer ones, long replies more than short ones", () => {
    expect(nextFactor(undefined, 300, 1_000)).toBe(0.3)
    let moving: number | undefined = 0.1
    for (let i = 0; i < 40; i++) moving = nextFactor(moving, 1_500, 5_000)
    expect(moving).toBeCloseTo(0.3, 2)
    expect(nextFactor(0.1, 300, 1_000)).toBeLessThan(nextFactor(0.1, 30_000, 100_000)!)
  })

  it("ignores what is no measurement", () => {
    for (const [computeMs, audioMs] of [
      [1, 0],
      [Number.NaN, 1],
      [1, Number.NaN],
      [-1, 5],
      [Number.POSITIVE_INFINITY, 5],
    ] as const) {
      expect(nextFactor(0.2, computeMs, audioMs)).toBe(0.2)
      expect(nextFactor(undefined, computeMs, audioMs)).toBeUndefined()
    }
  })
})

const model = (
  id: string,
  realTimeFactor: number | undefined,
  slots = 4,
  waitingLine = 2,
  taken = 0,
): SpeechModel => ({
  id,
  waitingLine,
  taken,
  facts: realTimeFactor === undefined ? undefined : { slots, realTimeFactor },
})

describe("admission", () => {
  it("never gives more than its share of a model to more than one stream, and always takes the first", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0.25, max: 4, noNaN: true }), { maxLength: 40 }),
        fc.double({ min: 0.001, max: 3, noNaN: true }),
        (speeds, factor) => {
          let weight = 0
          let open = 0
          for (const speed of speeds) {
            if (!admits(weight, weightOf(speed), factor)) continue
            weight += weightOf(speed)
            open++
          }
          if (speeds.length > 0) expect(open).toBeGreaterThan(0)
          if (open > 1) expect(weight * factor).toBeLessThanOrEqual(maxStreamLoad)
          // And refuses none that would still have been in time.
          if (open < speeds.length) {
            const smallest = Math.min(...speeds.map(weightOf))
            if (admits(weight, smallest, factor)) expect(open).toBeGreaterThan(0)
          }
        },
      ),
    )
  })

  const withAdmission = <A, E>(
    body: (admission: SpeechAdmission["Service"]) => Effect.Effect<A, E, Scope.Scope>,
  ) => Effect.scoped(Effect.flatMap(SpeechAdmission, body)).pipe(Effect.provide(SpeechAdmission.layer))

  it.effect("counts places until they are given back, once each, model by model", () =>
    withAdmission((admission) =>
      Effect.gen(function* () {
        const enter = admission.stream(model("a", 0.3), 1)
        const first = yield* enter
        first.sounded()
        const second = yield* enter
        const refused = yield* Effect.flip(enter)
        expect(refused).toMatchObject({ _tag: "AtCapacity", model: "a", retryAfterMs: 1_000 })
        yield* admission.stream(model("b", 0.3), 1)
        first.leave()
        first.leave()
        const third = yield* enter
        yield* Effect.flip(enter)
        second.leave()
        third.leave()
        for (let i = 0; i < 2; i++) yield* enter
        yield* Effect.flip(enter)
      }),
    ),
  )

  it.effect("starts from what the engine measured, also when batch replies come first", () =>
    withAdmission((admission) =>
      Effect.gen(function* () {
        admission.observe(model("a", 0.3), 0, 100)
        expect(admission.factor("a")).toBeCloseTo(0.3, 2)
        admission.observe(model("b", undefined), 20, 100)
        expect(admission.factor("b")).toBe(0.2)
        yield* admission.stream(model("unknown", undefined), 1)
        yield* admission.stream(model("unknown", undefined), 4)
      }),
    ),
  )

  it.effect("admits a stream only to a free slot, whatever holds the others", () =>
    withAdmission((admission) =>
      Effect.gen(function* () {
        const enter = (taken: number) => admission.stream(model("a", 0.001, 4, 2, taken), 1)
        const first = yield* enter(4)
        yield* Effect.flip(enter(4))
        for (let taken = 1; taken < 4; taken++) yield* enter(taken)
        // The engine has not received the last one yet.
        yield* Effect.flip(enter(3))
        first.leave()
        yield* enter(3)
        yield* Effect.flip(enter(3))
      }),
    ),
  )

  it.effect("admits no more streams at once than begin to sound in time", () =>
    withAdmission((admission) =>
      Effect.gen(function* () {
        const enter = admission.stream(model("a", 0.01, 64), 1)
        const alone = yield* enter
        yield* TestClock.adjust("450 millis")
        alone.sounded()
        const places = [yield* enter, yield* enter, yield* enter]
        expect(yield* Effect.flip(enter)).toMatchObject({ _tag: "AtCapacity", model: "a" })
        yield* TestClock.adjust("450 millis")
        places[0]!.sounded()
        places[0]!.sounded()
        yield* enter
        yield* Effect.flip(enter)
        // A stream that ends without audio frees its place as well.
        places[1]!.leave()
        yield* enter
        yield* Effect.flip(enter)
      }),
    ),
  )

  it.effect("gives a place back with its scope", () =>
    withAdmission((admission) =>
      Effect.gen(function* () {
        for (let i = 0; i < 10; i++) yield* Effect.scoped(admission.stream(model("a", 0.9), 4))
        const scope = yield* Scope.make()
        yield* admission.stream(model("a", 0.9), 1).pipe(Scope.provide(scope))
        yield* Effect.flip(admission.stream(model("a", 0.9), 1))
        yield* Scope.close(scope, Exit.void)
        yield* admission.stream(model("a", 0.9), 1)
      }),
    ),
  )

  it.effect("takes what replies cost for what was measured at the start, and fast speech for more", () =>
    withAdmission((admission) =>
      Effect.gen(function* () {
        yield* admission.stream(model("a", 0.3), 1)
        expect(admission.factor("a")).toBe(0.3)
        for (let i = 0; i < 20; i++) admission.observe(model("a", 0.3), 1_000, 10_000)
        expect(admission.factor("a")).toBeCloseTo(0.1, 2)
        yield* admission.stream(model("a", 0.3), 4)
        yield* Effect.flip(admission.stream(model("a", 0.3), 4))
        yield* admission.stream(model("a", 0.3), 0.25)
      }),
    ),
  )

  it.effect("computes Retry-After from how long places are held", () =>
    withAdmission((admission) =>
      Effect.gen(function* () {
        for (let i = 0; i < 40; i++) {
          const scope = yield* Scope.make()
          yield* admission.stream(model("a", 0.5), 1).pipe(Scope.provide(scope))
          yield* TestClock.adjust("8 seconds")
          yield* Scope.close(scope, Exit.void)
        }
        yield* admission.stream(model("a", 0.5), 1)
        const { retryAfterMs } = yield* Effect.flip(admission.stream(model("a", 0.5), 1))
        expect(retryAfterMs).toBeGreaterThan(7_500)
        expect(retryAfterMs).toBeLessThanOrEqual(8_000)
      }),
    ),
  )

  it.effect("keeps one slot from batch work, whose queue has a bound", () =>
    withAdmission((admission) =>
      Effect.gen(function* () {
        const enter = admission.batch(model("a", 0.1))
        const places = [yield* enter, yield* enter, yield* enter]
        const waiting = [
          yield* Effect.forkChild(enter, { startImmediately: true }),
          yield* Effect.forkChild(enter, { startImmediately: true }),
        ]
        expect(yield* Effect.flip(enter)).toMatchObject({ _tag: "AtCapacity", model: "a" })
        // Streams are not counted among them.
        yield* admission.stream(model("a", 0.1), 1)
        expect(waiting.map((fiber) => fiber.pollUnsafe())).toEqual([undefined, undefined])
        places[0]!.leave()
        places[0]!.leave()
        yield* Fiber.join(waiting[0]!)
        expect(waiting[1]!.pollUnsafe()).toBeUndefined()
        // One that stops waiting frees its place in the queue.
        yield* Fiber.interrupt(waiting[1]!)
        const next = yield* Effect.forkChild(enter, { startImmediately: true })
        places[1]!.leave()
        yield* Fiber.join(next)
        yield* Effect.forkChild(enter, { startImmediately: true })
        yield* Effect.forkChild(enter, { startImmediately: true })
        yield* Effect.flip(enter)
      }),
    ),
  )

  it.effect("lets batch work by while the model is loading, and one at a time where there is one slot", () =>
    withAdmission((admission) =>
      Effect.gen(function* () {
        for (let i = 0; i < 20; i++) yield* admission.batch(model("loading", undefined, 0, 0))
        const single = admission.batch(model("single", 0.1, 1, 0))
        const { leave } = yield* single
        yield* Effect.flip(single)
        leave()
        yield* single
      }),
    ),
  )
})
