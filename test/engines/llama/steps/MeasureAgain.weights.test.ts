// Threads that were not measured at the load, because the machine was busy, are measured while no request runs.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { fixedThreads } from "#domain/threads/ThreadChoice.ts"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import { engineSpec, generateText, textRequest } from "../../../support/engines/EngineHarness.ts"
import { writeToyLlama } from "../../../support/engines/ToyGguf.ts"

it.effect("a measurement after requests finds empty sequences, and so do the requests after it", () =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "edgewise-toy-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true })),
    )
    const weights = join(folder, "toy.gguf")
    writeToyLlama(weights, { seed: 7 })
    const engine = yield* llamaGguf.acquire({
      ...engineSpec("llama-gguf", { weights }, { contextTokens: 256, slots: 4 }),
      trial: { counts: [1, 2], otherwise: 1, kept: fixedThreads(1, "size") },
    })
    if (engine.kind !== "text") return expect.unreachable()
    const content = "tell me a story of a fox and a robot who went out into the world"
    const request = textRequest([{ role: "user", content }], { maxTokens: 8 })
    const first = yield* generateText(engine, request)
    const warm = yield* generateText(engine, request)
    expect(warm.started.cachedTokens).toBeGreaterThan(0)
    yield* TestClock.adjust("2 seconds")
    const next = yield* generateText(engine, request)
    expect(next.started.cachedTokens).toBe(0)
    expect(next.text).toBe(first.text)
  }).pipe(Effect.scoped),
)
