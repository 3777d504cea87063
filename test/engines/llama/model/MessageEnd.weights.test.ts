// How probable the built-in text model takes the end of a user's message.
import { fileURLToPath } from "node:url"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import type { ChatTurn, TextEngine } from "#engines/protocol/Engine.ts"
import { generateText, openText, textRequest } from "../../../support/engines/EngineHarness.ts"

const weights = fileURLToPath(import.meta.resolve("../../../../models/llama-demo/llama-demo-Q8_0.gguf"))

class Demo extends Context.Service<Demo, TextEngine>()("test/Demo") {
  static readonly layer = Layer.effect(
    Demo,
    openText(llamaGguf, { weights }, { contextTokens: 1024, slots: 4 }),
  )
}

const history: ReadonlyArray<ChatTurn> = [
  { role: "system", content: "You are kind." },
  { role: "user", content: "Hello." },
  { role: "assistant", content: "Hello! How can I help you?" },
]

const asked = (content: string, withinMs = 60_000, before: ReadonlyArray<ChatTurn> = history) =>
  textRequest([...before, { role: "user", content }], { messageEnd: { withinMs } })

const endOf = Effect.fnUntraced(function* (content: string) {
  const { deltas, end } = yield* generateText(yield* Demo, asked(content))
  expect(deltas).toEqual([])
  expect(end.completionTokens).toBe(0)
  const { messageEnd } = end
  if (typeof messageEnd !== "object") throw new Error(`no probability: ${messageEnd}`)
  return messageEnd
})

layer(Demo.layer, { excludeTestServices: true })("the end of a message", (it) => {
  it.effect("is probable behind a question that is complete, not behind half of it", () =>
    Effect.gen(function* () {
      for (const [half, whole] of [
        ["What is the capital", "What is the capital of France"],
        ["Tell me a", "Tell me a joke"],
        ["Turn on the kitchen", "Turn on the kitchen light"],
      ] as const) {
        const [part, all] = [yield* endOf(half), yield* endOf(whole)]
        expect(all.stops.at(-1)!, whole).toBeGreaterThan(part.stops.at(-1)! + 1)
        // Words that both have are judged alike: what follows is not known there.
        for (const [at, value] of part.stops.entries()) expect(all.stops[at]).toBeCloseTo(value, 2)
        expect(all.stops).toHaveLength(whole.split(" ").length)
      }
    }),
  )

  it.effect("counts the end, or a mark that ends a sentence, as probabilities", () =>
    Effect.gen(function* () {
      const { ends, stops } = yield* endOf("The weather is nice and I am well today")
      for (const [at, stop] of stops.entries()) {
        expect(stop).toBeLessThanOrEqual(1e-6)
        expect(ends[at]).toBeLessThan(stop)
      }
    }),
  )

  it.effect("looks at the last twelve words only, and leaves the answer as it is", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const content = "What is the capital of Italy"
      const chat = textRequest([...history, { role: "user", content }])
      const before = yield* generateText(engine, chat)
      yield* endOf(content)
      const after = yield* generateText(engine, chat)
      expect(after.text).toBe(before.text)
      expect((yield* endOf("one two three four ".repeat(8).trim())).stops).toHaveLength(12)
    }),
  )

  it.effect(
    "is refused where there is no message of the user, and is not computed where time does not suffice",
    () =>
      Effect.gen(function* () {
        const engine = yield* Demo
        const { end } = yield* generateText(engine, asked("Some words that no one said before", 0))
        expect(end).toMatchObject({ messageEnd: "slow", completionTokens: 0 })
        const refused = yield* Effect.flip(
          generateText(engine, textRequest(history, { messageEnd: { withinMs: 9 } })),
        )
        expect(refused).toMatchObject({ reason: "InvalidInput", field: "messages" })
        const long = yield* Effect.flip(generateText(engine, asked("word ".repeat(2_000))))
        expect(long).toMatchObject({ reason: "PromptTooLong" })
      }),
  )
})
