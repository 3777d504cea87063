// Two thousand answers of the built-in chat model, drawn as a request without settings draws them: the text that people read has no
// markup, although the model was trained on the markup of tool calls.
import { fileURLToPath } from "node:url"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import type { ChatTurn, TextEngine } from "#engines/protocol/Engine.ts"
import { generateText, openText, textRequest } from "../../test/support/engines/EngineHarness.ts"
import { markup, rubric } from "../eval/ChatRubric.ts"

const weights = fileURLToPath(import.meta.resolve("../llama-demo/llama-demo-Q8_0.gguf"))
const answers = 2000

class Demo extends Context.Service<Demo, TextEngine>()("test/Demo") {
  static readonly layer = Layer.effect(
    Demo,
    openText(llamaGguf, { weights }, { contextTokens: 1024, slots: 16 }),
  )
}

const chats = rubric.prompts
  .filter(({ schema, tool }) => schema === undefined && tool === undefined)
  .map(({ system, turns }): ReadonlyArray<ChatTurn> => {
    const user: ChatTurn = { role: "user", content: turns[0]![0] }
    return system === undefined ? [user] : [{ role: "system", content: system }, user]
  })

layer(Demo.layer, { excludeTestServices: true })("sampled answers", (it) => {
  it.effect("have no markup", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const texts = yield* Effect.forEach(
        Array.from({ length: answers }, (_, seed) => seed),
        (seed) =>
          generateText(
            engine,
            textRequest(chats[seed % chats.length]!, {
              maxTokens: 120,
              sampling: { temperature: 0.7, topP: 0.9, seed },
            }),
          ).pipe(Effect.map(({ text }) => text)),
        { concurrency: 16 },
      )
      expect(texts.filter((text) => text.trim() === "")).toEqual([])
      expect(texts.filter((text) => markup.test(text))).toEqual([])
    }),
  )
})
