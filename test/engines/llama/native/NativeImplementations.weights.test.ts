// The same weights on node-llama-cpp's binding and on llama.cpp's C interface: the same tokens, counts and refusals.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import { generateText, openText, textRequest } from "../../../support/engines/EngineHarness.ts"
import { writeToyLlama, writeToyQwen35 } from "../../../support/engines/ToyGguf.ts"

const demo = fileURLToPath(import.meta.resolve("../../../../models/llama-demo/llama-demo-Q8_0.gguf"))
let folder = ""
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "edgewise-both-"))
  writeToyLlama(join(folder, "llama.gguf"), { seed: 7 })
  writeToyQwen35(join(folder, "hybrid.gguf"), { seed: 7 })
})
afterAll(() => rmSync(folder, { recursive: true }))

const conversation = [
  { role: "user", content: "tell me a story of a fox and a robot who went out into the world" },
  { role: "assistant", content: "so it was" },
  { role: "user", content: "and then?" },
] as const

/** Results of a few greedy requests, alone and side by side, the second time with warm sequences. */
const repliesOn = (native: "addon" | "libllama", weights: string) =>
  Effect.gen(function* () {
    const engine = yield* openText(llamaGguf, { weights }, { contextTokens: 512, slots: 3, native })
    const requests = [
      textRequest({ text: "Once upon a time there was a fox" }, { maxTokens: 60 }),
      textRequest(conversation.slice(0, 1), { maxTokens: 30 }),
      textRequest(conversation, { maxTokens: 30, sampling: { frequencyPenalty: 0.5, presencePenalty: 0.5 } }),
    ]
    const alone = []
    for (const request of requests) alone.push(yield* generateText(engine, request))
    const together = yield* Effect.all(
      requests.map((request) => generateText(engine, request)),
      { concurrency: "unbounded" },
    )
    return [...alone, ...together].map(({ text, started, end }) => ({
      text,
      started,
      end,
      // Only llama.cpp's C interface prepares schemas before a slot.
      facts: { ...engine.facts, prepares: undefined },
    }))
  }).pipe(Effect.scoped)

for (const [name, path] of [
  ["the built-in model", () => demo],
  ["a llama of random weights", () => join(folder, "llama.gguf")],
  ["a hybrid of random weights", () => join(folder, "hybrid.gguf")],
] as const)
  it.live(`${name}: equal greedy replies`, () =>
    Effect.gen(function* () {
      const addon = yield* repliesOn("addon", path())
      const libllama = yield* repliesOn("libllama", path())
      expect(libllama).toEqual(addon)
    }),
  )
