// What a load leaves undone is done while no request runs: threads and durations of calls are measured, once.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { vi } from "vitest"
import type { CallCosts } from "#domain/threads/CallCosts.ts"
import { fixedThreads } from "#domain/threads/ThreadChoice.ts"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import type { EngineSpec, TextEngine } from "#engines/protocol/Engine.ts"
import { engineSpec, generateText, textRequest } from "../../../support/engines/EngineHarness.ts"
import { writeToyLlama } from "../../../support/engines/ToyGguf.ts"

afterEach(() => {
  vi.restoreAllMocks()
})

const toyWeights = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "edgewise-toy-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true })),
  )
  const weights = join(folder, "toy.gguf")
  writeToyLlama(weights, { seed: 7 })
  return weights
})

const opened = (weights: string, more: Partial<EngineSpec> = {}) =>
  Effect.gen(function* () {
    const spec = engineSpec("llama-gguf", { weights }, { contextTokens: 256, slots: 4 })
    const engine = yield* llamaGguf.acquire({ ...spec, ...more })
    return engine.kind === "text" ? engine : expect.unreachable()
  })

const told: Array<CallCosts> = []
const listen = ({ costs }: TextEngine) =>
  Effect.callback<CallCosts>((resume) => {
    costs?.onMeasured((measured) => {
      told.push(measured)
      resume(Effect.succeed(measured))
    })
  })

it.effect("durations of calls are measured after the load, and a kept result is used instead", () =>
  Effect.gen(function* () {
    told.length = 0
    // Each look at the clock is 10 us later than the one before. Where the machine stands still, a measurement ends with fewer sizes.
    let looks = 0
    vi.spyOn(performance, "now").mockImplementation(() => ++looks / 100)
    const weights = yield* toyWeights
    const engine = yield* opened(weights)
    const measuring = yield* Effect.forkChild(listen(engine), { startImmediately: true })
    expect(told).toEqual([])
    yield* TestClock.adjust("250 millis")
    const costs = yield* Fiber.join(measuring)
    expect(costs.replies.map(([size]) => size)).toEqual([1, 2, 4])
    expect(costs.prompt[0]?.[0]).toBe(8)
    for (const [, ms] of [...costs.prompt, ...costs.replies]) expect(ms).toBeGreaterThan(0)
    const next = yield* opened(weights, { costs })
    yield* Effect.forkChild(listen(next), { startImmediately: true })
    yield* TestClock.adjust("10 minutes")
    // Whatever it does in these moments ends before a request begins.
    yield* generateText(next, textRequest([{ role: "user", content: "hello" }], { maxTokens: 2 }))
    expect(told).toEqual([costs])
  }).pipe(Effect.scoped),
)

it.effect(
  "a measurement empties sequences only the last time, and then requests after it find them empty",
  () =>
    Effect.gen(function* () {
      const weights = yield* toyWeights
      const engine = yield* opened(weights, {
        trial: { counts: [1, 2], otherwise: 1, kept: fixedThreads(1, "size") },
      })
      const content = "tell me a story of a fox and a robot who went out into the world"
      const request = textRequest([{ role: "user", content }], { maxTokens: 8 })
      const first = yield* generateText(engine, request)
      const warm = yield* generateText(engine, request)
      expect(warm.started.cachedTokens).toBeGreaterThan(0)
      // Its four sequences are not all empty. A request begins when what is done between two pauses has ended.
      const cached: Array<number> = []
      for (let pause = 0; pause < 8; pause++) {
        yield* TestClock.adjust("300 seconds")
        const next = yield* generateText(engine, request)
        expect(next.text).toBe(first.text)
        cached.push(next.started.cachedTokens)
      }
      const { cachedTokens } = warm.started
      const emptied = cached.indexOf(0)
      expect(emptied).toBeGreaterThan(0)
      expect(cached.toSpliced(emptied, 1)).toEqual(new Array(7).fill(cachedTokens))
    }).pipe(Effect.scoped),
)
