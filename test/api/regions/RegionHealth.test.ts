// The poll of regions, on a test clock and with a probe whose results the test sets.
import { expect, it } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { RegionHealth } from "#api/regions/RegionHealth.ts"
import type { Probe, Probed } from "#api/regions/RegionProbe.ts"

const everyMs = 10_000
const regions = Array.from({ length: 20 }, (_, i) => ({ code: `r-${i}`, endpoint: `http://r-${i}.test` }))

const open = (probe: Probe) =>
  Effect.flatMap(Layer.build(RegionHealth.watched({ regions, everyMs, probe })), (context) =>
    Effect.provideContext(RegionHealth, context),
  )
const sickAnswer: Probed = { healthy: false }
const answer = (roundTripMs: number): Probed => ({ healthy: true, roundTripMs })
/** Longer than the longest round. */
const aRound = TestClock.adjust(everyMs * 1.2 + 1)

it.effect("believes the last answer, and takes no region for unhealthy before the first", () =>
  Effect.gen(function* () {
    const sick = new Set(["r-3"])
    const { isHealthy } = yield* open(({ code }) =>
      Effect.sync(() => (sick.has(code) ? sickAnswer : answer(1))),
    )
    expect(isHealthy("r-3")).toBe(true)
    yield* TestClock.adjust(1)
    expect([isHealthy("r-3"), isHealthy("r-4"), isHealthy("unknown")]).toEqual([false, true, true])
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
        return answer(100)
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

it.effect("measures the shortest of the last five answers, and forgets what is too old", () =>
  Effect.gen(function* () {
    const delaysMs = [40, 25, 90, 70, 60, 80, 55]
    let round = 0
    const probe: Probe = ({ code }) =>
      Effect.sync(() => {
        if (code !== "r-0") return code === "r-1" ? sickAnswer : answer(5)
        const ms = delaysMs[round++]
        return ms === undefined ? sickAnswer : answer(ms)
      })
    const health = yield* open(probe)
    const measured = (code: string) =>
      Effect.map(Clock.currentTimeMillis, (nowMs) => health.roundTripMs(code, nowMs))
    expect(yield* measured("r-0")).toBeUndefined()
    yield* TestClock.adjust(1)
    const seen: Array<number | undefined> = [yield* measured("r-0")]
    while (round < delaysMs.length) {
      const before = round
      while (round === before) yield* TestClock.adjust(1_000)
      seen.push(yield* measured("r-0"))
    }
    expect(seen).toEqual([40, 25, 25, 25, 25, 25, 55])
    expect([yield* measured("r-1"), yield* measured("r-2"), yield* measured("none")]).toEqual([
      undefined,
      5,
      undefined,
    ])
    // It fails from now on: a measurement expires after five of the longest rounds, 18 s each here.
    yield* TestClock.adjust(80_000)
    expect([health.isHealthy("r-0"), yield* measured("r-0")]).toEqual([false, 55])
    yield* TestClock.adjust(22_000)
    expect([health.isHealthy("r-0"), yield* measured("r-0")]).toEqual([false, undefined])
    const [first, second, third] = health.readings(yield* Clock.currentTimeMillis)
    expect([first, second, third]).toEqual([
      { region: "r-0", healthy: false, roundTripMs: undefined },
      { region: "r-1", healthy: false, roundTripMs: undefined },
      { region: "r-2", healthy: true, roundTripMs: 5 },
    ])
  }).pipe(Effect.scoped),
)
