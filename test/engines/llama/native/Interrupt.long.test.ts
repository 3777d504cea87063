// A cancel ends the native call under way, whatever its size, and the sequence keeps what it held before.
import { fileURLToPath } from "node:url"
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import { loadModel } from "#engines/llama/model/LoadedGguf.ts"
import { Interrupted } from "#engines/llama/native/Native.ts"
import { decodeOptions } from "#engines/llama/Options.ts"
import { generateText, openText, startText, textRequest } from "../../../support/engines/EngineHarness.ts"

const weights = fileURLToPath(import.meta.resolve("../../../../models/llama-demo/llama-demo-Q8_0.gguf"))
/** Of one call and one sequence. */
const most = 1_024

it.live("an interrupted call ends early, and the next one is as if it had never been", () =>
  Effect.gen(function* () {
    const spec = { modelId: "demo", adapter: "llama-gguf", files: { weights }, options: {}, threads: 2 }
    const options = yield* decodeOptions({ contextTokens: most, slots: 1, batchTokens: most })
    const { native } = (yield* loadModel(spec, options)).stepped
    const greedy = { temperature: 0, topP: 1, topK: 0, frequencyPenalty: 0, presencePenalty: 0, seed: 0 }
    const sampler = native.sampler(greedy)
    const call = (position: number, count: number) => {
      const tokens = Array.from({ length: count }, (_, at) => 300 + ((at * 7) % 900))
      return native.decode([{ sequenceId: 0, position, tokens, logits: true }])
    }
    const timed = async (run: () => Promise<unknown>): Promise<number> => {
      const started = performance.now()
      await run()
      return performance.now() - started
    }
    yield* Effect.promise(async () => {
      await call(0, 40)
      const [row] = await call(40, 20)
      const expected = await sampler.sample(row ?? -1)
      const times: Array<readonly [wholeMs: number, cutMs: number]> = []
      for (let round = 0; round < 3; round++) {
        native.cut(0, 40, most)
        const wholeMs = await timed(() => call(40, most - 100))
        native.cut(0, 40, most)
        const cutMs = await timed(async () => {
          const running = call(40, most - 100)
          native.interrupt()
          await expect(running).rejects.toBeInstanceOf(Interrupted)
        })
        times.push([wholeMs, cutMs])
      }
      // The best of them: other work on the machine delays single calls.
      expect(Math.min(...times.map(([, cutMs]) => cutMs))).toBeLessThan(
        Math.min(...times.map(([wholeMs]) => wholeMs)) / 2,
      )
      native.cut(0, 40, most)
      const [again] = await call(40, 20)
      expect(await sampler.sample(again ?? -1)).toBe(expected)
    })
  }).pipe(Effect.scoped),
)

it.live("a cancelled prompt leaves what its sequence held before, and the same text comes after it", () =>
  Effect.gen(function* () {
    const engine = yield* openText(llamaGguf, { weights }, { contextTokens: most, slots: 1 })
    const first = "Once upon a time there was a fox who lived in a wood. ".repeat(10)
    const held = yield* generateText(engine, textRequest({ text: first }, { maxTokens: 4 }))
    const long = { text: `${first}${"The fox and the robot went on and on. ".repeat(60)}` }
    const cancelled = yield* startText(engine, textRequest(long, { maxTokens: 4 }))
    yield* cancelled.reached(0)
    yield* Fiber.interrupt(cancelled.fiber)
    const after = yield* generateText(engine, textRequest(long, { maxTokens: 12 }))
    expect(after.started.cachedTokens).toBeGreaterThanOrEqual(held.started.promptTokens - 8)
    const fresh = yield* openText(llamaGguf, { weights }, { contextTokens: most, slots: 1 })
    expect(after.text).toBe((yield* generateText(fresh, textRequest(long, { maxTokens: 12 }))).text)
  }).pipe(Effect.scoped),
)
