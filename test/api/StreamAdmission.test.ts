// The arithmetic of stream admission and the places it gives out.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { StreamAdmission } from "../../src/api/StreamAdmission.ts"
import { admits, MAX_STREAM_LOAD, nextFactor, weightOf } from "../../src/domain/StreamLoad.ts"

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
          if (open > 1) expect(weight * factor).toBeLessThanOrEqual(MAX_STREAM_LOAD)
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
    body: (admission: StreamAdmission["Service"]) => Effect.Effect<A, E, Scope.Scope>,
  ) => Effect.scoped(Effect.flatMap(StreamAdmission, body)).pipe(Effect.provide(StreamAdmission.layer))

  it.effect("counts places until they are given back, once each, model by model", () =>
    withAdmission((admission) =>
      Effect.gen(function* () {
        const enter = admission.enter("a", 1, 0.3)
        const first = yield* enter
        const second = yield* enter
        const refused = yield* Effect.flip(enter)
        expect(refused).toMatchObject({ _tag: "AtCapacity", model: "a", retryAfterMs: 1_000 })
        yield* admission.enter("b", 1, 0.3)
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
        admission.observe("a", 0, 100, 0.3)
        expect(admission.factor("a")).toBeCloseTo(0.3, 2)
        admission.observe("b", 20, 100, undefined)
        expect(admission.factor("b")).toBe(0.2)
        yield* admission.enter("unknown", 1, undefined)
        yield* admission.enter("unknown", 4, undefined)
      }),
    ),
  )

  it.effect("gives a place back with its scope", () =>
    withAdmission((admission) =>
      Effect.gen(function* () {
        for (let i = 0; i < 10; i++) yield* Effect.scoped(admission.enter("a", 4, 0.9))
        const scope = yield* Scope.make()
        yield* admission.enter("a", 1, 0.9).pipe(Scope.provide(scope))
        yield* Effect.flip(admission.enter("a", 1, 0.9))
        yield* Scope.close(scope, Exit.void)
        yield* admission.enter("a", 1, 0.9)
      }),
    ),
  )

  it.effect("takes what replies cost for what was measured at the start, and fast speech for more", () =>
    withAdmission((admission) =>
      Effect.gen(function* () {
        yield* admission.enter("a", 1, 0.3)
        expect(admission.factor("a")).toBe(0.3)
        for (let i = 0; i < 20; i++) admission.observe("a", 1_000, 10_000, 0.3)
        expect(admission.factor("a")).toBeCloseTo(0.1, 2)
        yield* admission.enter("a", 4, 0.3)
        yield* Effect.flip(admission.enter("a", 4, 0.3))
        yield* admission.enter("a", 0.25, 0.3)
      }),
    ),
  )

  it.effect("says when to come back by how long places are held", () =>
    withAdmission((admission) =>
      Effect.gen(function* () {
        for (let i = 0; i < 40; i++) {
          const scope = yield* Scope.make()
          yield* admission.enter("a", 1, 0.5).pipe(Scope.provide(scope))
          yield* TestClock.adjust("8 seconds")
          yield* Scope.close(scope, Exit.void)
        }
        yield* admission.enter("a", 1, 0.5)
        const { retryAfterMs } = yield* Effect.flip(admission.enter("a", 1, 0.5))
        expect(retryAfterMs).toBeGreaterThan(7_500)
        expect(retryAfterMs).toBeLessThanOrEqual(8_000)
      }),
    ),
  )
})
