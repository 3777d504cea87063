// The poll of regions, with the clock in hand and a probe that says what the test wants.
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { httpProbe, type Probe, RegionHealth } from "#api/RegionHealth.ts"

const everyMs = 10_000
const regions = Array.from({ length: 20 }, (_, i) => ({ code: `r-${i}`, endpoint: `http://r-${i}.test` }))

const open = (probe: Probe) =>
  Effect.flatMap(Layer.build(RegionHealth.watched({ regions, everyMs, probe })), (context) =>
    Effect.provideContext(RegionHealth, context),
  )
/** Longer than the longest round. */
const aRound = TestClock.adjust(everyMs * 1.2 + 1)

it.effect("believes the last answer, and takes nobody for sick before the first", () =>
  Effect.gen(function* () {
    const sick = new Set(["r-3"])
    const { isHealthy } = yield* open(({ code }) => Effect.sync(() => !sick.has(code)))
    expect(isHealthy("r-3")).toBe(true)
    yield* TestClock.adjust(1)
    expect([isHealthy("r-3"), isHealthy("r-4"), isHealthy("nobody")]).toEqual([false, true, true])
    sick.clear()
    sick.add("r-4")
    yield* aRound
    expect([isHealthy("r-3"), isHealthy("r-4")]).toEqual([true, false])
  }).pipe(Effect.scoped),
)

it.effect("asks each region about once a round, few at a time, and stops with its scope", () =>
  Effect.gen(function* () {
    let asked = 0
    let now = 0
    let most = 0
    const probe: Probe = () =>
      Effect.gen(function* () {
        asked++
        now++
        most = Math.max(most, now)
        yield* Effect.sleep(100)
        now--
        return true
      })
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* open(probe)
        yield* TestClock.adjust(everyMs * 100)
      }),
    )
    expect(most).toBe(8)
    expect(asked / regions.length).toBeGreaterThan(80)
    expect(asked / regions.length).toBeLessThan(126)
    const then = asked
    yield* TestClock.adjust(everyMs * 10)
    expect(asked).toBe(then)
  }),
)

it.live("a probe of nobody is no answer", () =>
  Effect.gen(function* () {
    const probe = httpProbe(1_000)
    expect(yield* probe({ code: "gone", endpoint: "http://127.0.0.1:9" })).toBe(false)
    expect(yield* probe({ code: "odd", endpoint: "not an address" })).toBe(false)
  }),
)
