// Greedy replies through llama.cpp's C interface and through node-llama-cpp's own sequences: the same text.
import { fileURLToPath } from "node:url"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import { openLibrary } from "#engines/llama/native/Library.ts"
import { generateText, openText, textRequest } from "../../../support/engines/EngineHarness.ts"

const weights = fileURLToPath(import.meta.resolve("../../../../models/llama-demo/llama-demo-Q8_0.gguf"))
const maxTokens = 40

/** By the library's own loop. */
const byLibrary = async (prompt: string): Promise<string> => {
  const llama = await openLibrary({ gpu: "off", threads: 1, logger: () => {} })
  const model = await llama.loadModel({ modelPath: weights })
  const context = await model.createContext({ contextSize: 512, sequences: 1, flashAttention: false })
  const sequence = context.getSequence()
  const tokens = []
  for await (const token of sequence.evaluate(model.tokenize(prompt, true), { temperature: 0 })) {
    if (model.isEogToken(token) || tokens.length >= maxTokens) break
    tokens.push(token)
  }
  const text = model.detokenize(tokens)
  await context.dispose()
  await model.dispose()
  return text
}

it.live("are equal", () =>
  Effect.gen(function* () {
    const engine = yield* openText(llamaGguf, { weights }, { contextTokens: 512, slots: 1 })
    for (const text of ["Once upon a time there was a fox", "The capital of Italy"]) {
      const reply = yield* generateText(engine, textRequest({ text }, { maxTokens }))
      expect(reply.text.length).toBeGreaterThan(20)
      expect(yield* Effect.promise(() => byLibrary(text))).toBe(reply.text)
    }
  }).pipe(Effect.scoped),
)
