// The machine's matrix product, measured for real: two threads at most, and a result that can be stored.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { chooseThreads } from "#engines/shared/onnx/ThreadProbe.ts"
import { engineSpec } from "../../../support/engines/EngineHarness.ts"

const spec = engineSpec("kokoro-onnx", {})

it.live("measures one and two threads, or says that the machine was busy", () =>
  Effect.gen(function* () {
    const choice = yield* chooseThreads(spec, { counts: [1, 2], otherwise: 2 })
    const [work] = choice.works
    expect([1, 2]).toContain(work.threads)
    expect(["measured", "size"]).toContain(choice.source)
    if (choice.source === "measured") expect(work.ms["1"]).toBeGreaterThan(0)
  }),
)

it.effect("takes what was kept, and has nothing to choose on one core", () =>
  Effect.gen(function* () {
    const kept = { source: "kept", works: [{ threads: 2, ms: {} }] } as const
    expect(yield* chooseThreads(spec, { counts: [1, 2], otherwise: 2, kept })).toEqual(kept)
    expect(yield* chooseThreads(spec, { counts: [1], otherwise: 1 })).toEqual({
      source: "size",
      works: [{ threads: 1, ms: {} }],
    })
  }),
)
