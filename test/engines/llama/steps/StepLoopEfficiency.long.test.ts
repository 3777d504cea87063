// The engine's token loop against the library's own on the same weights: processor time a token, run alternately, the best of each. Other tests
// on the same cores lengthen either at random (0.68 of it was measured beside them, 1 and more alone), so only several times as much fails; the
// bench (`text --section decode`) compares both loops to the hundredth.
import { fileURLToPath } from "node:url"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { compareLoops } from "../../../../bench/text/engineLoop.ts"

const weights = fileURLToPath(import.meta.resolve("../../../../models/llama-demo/llama-demo-Q8_0.gguf"))

for (const streams of [1, 16])
  it.live(`spends no multiple of the bare loop's processor time a token with ${streams} streams`, () =>
    Effect.gen(function* () {
      const load = { weights, streams, threads: 1, tokens: 128, prompt: "Once upon a time there was a fox " }
      const { bare, engine } = yield* compareLoops(load, 6)
      expect(engine.tokens).toBe(bare.tokens)
      expect(engine.cpuMs / bare.cpuMs).toBeLessThan(3)
    }),
  )
