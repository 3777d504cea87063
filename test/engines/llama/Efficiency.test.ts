// The engine's token loop against the library's own on the same weights. A ratio, both by turns, the best of each:
// whatever else the machine does, it does to both.
import { fileURLToPath } from "node:url"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { compareLoops } from "../../../bench/text/engineLoop.ts"

const weights = fileURLToPath(import.meta.resolve("../../../models/llama-demo/llama-demo-Q8_0.gguf"))

for (const streams of [1, 16])
  it.live(`decodes at least 0.95 times as fast as the bare loop with ${streams} streams`, () =>
    Effect.gen(function* () {
      const load = { weights, streams, threads: 1, tokens: 128, prompt: "Once upon a time there was a fox " }
      const { bare, engine } = yield* compareLoops(load, 2)
      expect(engine.tokens).toBe(bare.tokens)
      expect(engine.tokensPerSecond / bare.tokensPerSecond).toBeGreaterThan(0.95)
    }),
  )
