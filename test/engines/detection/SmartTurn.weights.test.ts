// Smart Turn on an export with the published names: the window that is heard, scores of turns that end low and high, and what a load refuses.
import { rmSync, truncateSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { smartTurnOnnx, turnWindow } from "#engines/detection/SmartTurn.ts"
import type { DetectionEngine } from "#engines/protocol/Engine.ts"
import { CollectingOutlet } from "../../support/engines/EngineHarness.ts"
import { type ToyDetection, writtenSilero, writtenSmartTurn } from "../../support/engines/ToyDetection.ts"

const rateHz = 16_000

const written = (make: () => ToyDetection) =>
  Effect.acquireRelease(Effect.sync(make), ({ folder }) =>
    Effect.sync(() => rmSync(folder, { recursive: true })),
  )

const tone = (hz: number, seconds: number): ReadonlyArray<number> =>
  Array.from({ length: seconds * rateHz }, (_, i) =>
    Math.round(8_000 * Math.sin((2 * Math.PI * hz * i) / rateHz)),
  )

describe("the window", () => {
  it("is the newest 8 s, at mean 0 and deviation 1, with zeros before a shorter turn", () => {
    const long = Int16Array.from({ length: 10 * rateHz }, (_, i) =>
      i < 2 * rateHz ? 30_000 : 50 * ((i % 200) - 80),
    )
    const window = turnWindow(long)
    expect(window.length).toBe(8 * rateHz)
    const mean = window.reduce((sum, x) => sum + x, 0) / window.length
    const deviation = Math.sqrt(window.reduce((sum, x) => sum + x * x, 0) / window.length)
    expect(mean).toBeCloseTo(0, 4)
    expect(deviation).toBeCloseTo(1, 3)
    // The loud beginning is not heard: it would flatten the rest.
    expect(window.every((x) => x < 3)).toBe(true)
    const short = turnWindow(Int16Array.from(tone(440, 1)))
    expect(new Set(short.subarray(0, 7 * rateHz)).size).toBe(1)
    expect(short[7.5 * rateHz + 7]).not.toBe(short[0])
  })

  it("of silence is finite", () => {
    expect(turnWindow(new Int16Array(100)).every(Number.isFinite)).toBe(true)
    expect(turnWindow(new Int16Array(0)).every((x) => x === 0)).toBe(true)
  })
})

it.effect("scores each turn by its own end", () =>
  Effect.gen(function* () {
    const { spec } = yield* written(writtenSmartTurn)
    const engine = (yield* smartTurnOnnx.acquire(spec)) as DetectionEngine
    expect(engine.facts).toMatchObject({ detects: "turn ends" })
    const turns = [
      [...tone(4_000, 1), ...tone(300, 1)],
      [...tone(300, 1), ...tone(4_000, 1)],
      [...tone(4_000, 9), ...tone(300, 1)],
    ]
    const out = new CollectingOutlet<"detection">()
    yield* engine.detect({ pieces: turns.map((turn) => ({ samples: Int16Array.from(turn) })) }, out)
    const scores = out.units.map(({ scores }) => scores[0]!)
    expect(scores.length).toBe(3)
    expect(scores[0]).toBeGreaterThan(0.9)
    expect(scores[1]).toBeLessThan(0.1)
    expect(scores[2]).toBeGreaterThan(0.9)
  }),
)

it.effect("a load names what is wrong with an export", () =>
  Effect.gen(function* () {
    const refusal = Effect.fnUntraced(function* (make: () => ToyDetection) {
      const { folder, spec } = yield* written(make)
      const error = yield* Effect.flip(smartTurnOnnx.acquire(spec))
      expect(error.reason).toBe("LoadFailed")
      expect(error.detail).not.toContain(folder)
      return error.detail
    })
    expect(yield* refusal(() => writtenSmartTurn(400))).toMatch(/80 mel bins by 400 frames.*80 by 800.*8 s/)
    expect(yield* refusal(writtenSilero)).toMatch(/no input named input_features; it declares input/)
    const cut = () => {
      const toy = writtenSmartTurn()
      truncateSync(toy.spec.files.model!, 500)
      return toy
    }
    expect(yield* refusal(cut)).toContain("smart-turn-v3.2-cpu.onnx")
  }),
)
