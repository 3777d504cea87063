// An event as a log record, and how many lines a burst of events makes.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Logger, References } from "effect"
import { TestClock } from "effect/testing"
import { LogRate } from "#domain/process/LogRate.ts"
import { CurrentLogRate, report, reporter } from "#domain/process/OperatorLog.ts"
import { collectLines } from "../../support/process/LogLines.ts"

describe("report", () => {
  it.effect("writes one structured line, bounded and in one line", () =>
    Effect.gen(function* () {
      const { lines, layer } = collectLines()
      yield* report({
        event: "engine crashed",
        model: "m",
        device: "host",
        reason: `signal\nSIGKILL ${"x".repeat(1_000)}`,
        facts: { restart: 1 },
        requestId: "req-1",
        action: "look",
      }).pipe(Effect.provide(layer))
      expect(lines).toHaveLength(1)
      expect(lines[0]).toMatchObject({
        level: "WARN",
        message: "engine crashed",
        annotations: { model: "m", device: "host", restart: 1, request_id: "req-1", action: "look" },
      })
      expect(String(lines[0]!.annotations.reason)).toMatch(/^signal SIGKILL x+…$/)
      expect(String(lines[0]!.annotations.reason)).toHaveLength(300)
    }),
  )

  it.effect("makes 10,000 events of a kind one line, and gives the number in the next one", () =>
    Effect.gen(function* () {
      const { lines, layer } = collectLines()
      const burst = Effect.repeat(report({ event: "answer failed", model: "m" }), { times: 9_999 })
      yield* Effect.gen(function* () {
        yield* burst
        yield* TestClock.adjust(1_000)
        yield* report({ event: "answer failed", model: "m" })
        yield* report({ event: "answer failed", model: "another" })
      }).pipe(Effect.provide(layer))
      expect(lines.map(({ annotations }) => annotations)).toEqual([
        { model: "m" },
        { model: "m", suppressed: 9_999 },
        { model: "another" },
      ])
    }),
  )

  it.effect("is the same from a callback", () =>
    Effect.gen(function* () {
      const { lines, layer } = collectLines()
      const say = yield* Effect.provide(reporter, layer)
      for (let n = 0; n < 100; n++) say({ event: "engine hung", model: "m" })
      expect(lines).toHaveLength(1)
    }),
  )

  it.effect("is silent below the level that is asked for", () =>
    Effect.gen(function* () {
      let lines = 0
      yield* report({ event: "model ready" }).pipe(
        Effect.provide(Logger.layer([Logger.make(() => void lines++)])),
        Effect.provideService(References.MinimumLogLevel, "Warn"),
        Effect.provideService(CurrentLogRate, new LogRate()),
      )
      expect(lines).toBe(0)
    }),
  )
})
