// The engine's token loop against the library's own on the same weights: processor time a token, run alternately, the
// best of each. Processor time and not speed, because another test on the same core takes time from either at random;
// the bench compares speeds.
import { fileURLToPath } from "node:url"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { compareLoops } from "../../../../bench/text/engineLoop.ts"

const weights = fileURLToPath(import.meta.resolve("../../../../models/llama-demo/llama-demo-Q8_0.gguf"))

for (const streams of [1, 16])
  it.live(`spends no more processor time a token than the bare loop does with ${streams} streams`, () =>
    Effect.gen(function* () {
      const load = { weights, streams, threads: 1, tokens: 128, prompt: "Once upon a time there was a fox " }
      const { bare, engine } = yield* compareLoops(load, 6)
      expect(engine.tokens).toBe(bare.tokens)
      expect(bare.cpuMs / engine.cpuMs).toBeGreaterThan(0.95)
    }),
  )
