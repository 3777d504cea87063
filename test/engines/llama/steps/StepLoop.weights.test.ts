// Models written at test time whose output is a known text, so the borders of tokens, characters, stop sequences and of
// the context are exact.
import { describe, expect, it, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { ChatTurn, TextEngine } from "#engines/protocol/Engine.ts"
import { generateText, textRequest } from "../../../support/engines/EngineHarness.ts"
import { openToy } from "../../../support/engines/ToyEngine.ts"

const user = (content: string): ChatTurn => ({ role: "user", content })
const assistant = (content: string): ChatTurn => ({ role: "assistant", content })

/** The last character of a prompt selects the chain that follows. */
const script = [
  ["1", "▁Hello", "▁world", "!"],
  ["2", "a", "<0xE2>", "<0x82>", "<0xAC>", "b"],
  ["3", "c", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>"],
  ["4", "▁is", "S", "T", "O", "P", "▁that"],
  ["5", "▁of", "s", "t"],
  ["6", "d", "<0xE3>", "<0x81>", "e", "<0xFF>", "<0xBE>", "f", "<0xEF>", "<0xBF>", "<0xBD>", "g"],
  ["\n", "▁man", "▁our"],
  ["<s>", "▁the"],
]

class Scripted extends Context.Service<Scripted, TextEngine>()("test/Scripted") {
  static readonly layer = Layer.effect(Scripted, openToy("llama", { script }))
}

layer(Scripted.layer, { excludeTestServices: true })("scripted", (it) => {
  const say = (prompt: string, changes: Parameters<typeof textRequest>[1] = {}) =>
    Effect.flatMap(Scripted, (engine) => generateText(engine, textRequest({ text: prompt }, changes)))

  it.effect("gives its script and stops at the end-of-turn token, which is not counted", () =>
    Effect.gen(function* () {
      const { text, end, deltas } = yield* say("1")
      expect(text).toBe(" Hello world!")
      expect(end).toMatchObject({ finishReason: "stop", completionTokens: 3 })
      expect(deltas.map((delta) => delta.text)).toEqual([" Hello", " world", "!"])
    }),
  )

  it.effect("a character spread over tokens arrives whole, with its last token", () =>
    Effect.gen(function* () {
      const { deltas } = yield* say("2")
      expect(deltas).toEqual([
        { text: "a", completionTokens: 1 },
        { text: "€", completionTokens: 4 },
        { text: "b", completionTokens: 5 },
      ])
    }),
  )

  it.effect("a character cut off by the token limit is dropped, at each of its bytes", () =>
    Effect.gen(function* () {
      for (const maxTokens of [2, 3, 4]) {
        const { text, end, deltas } = yield* say("3", { maxTokens })
        expect({ text, deltas: deltas.length }).toEqual({ text: "c", deltas: 1 })
        expect(end).toMatchObject({ finishReason: "length", completionTokens: maxTokens })
      }
    }),
  )

  it.effect("bytes that are no character, and a written U+FFFD, are dropped", () =>
    Effect.gen(function* () {
      const { text, deltas } = yield* say("6")
      expect(text).toBe("defg")
      expect(deltas.map((delta) => delta.text)).toEqual(["d", "e", "f", "g"])
    }),
  )

  it.effect("a stop sequence across tokens ends the reply, its text stays out, its tokens count", () =>
    Effect.gen(function* () {
      const { text, end, deltas } = yield* say("4", { stop: ["STOP", "x"] })
      expect(text).toBe(" is")
      expect(end).toMatchObject({ finishReason: "stop", completionTokens: 5 })
      expect(deltas).toHaveLength(1)
    }),
  )

  it.effect("what only looked like a stop sequence is released at the end", () =>
    Effect.gen(function* () {
      const { text, end } = yield* say("5", { stop: ["stone"] })
      expect(text).toBe(" ofst")
      expect(end).toMatchObject({ finishReason: "stop", completionTokens: 3 })
    }),
  )

  it.effect("an empty text starts from the beginning-of-text token", () =>
    Effect.gen(function* () {
      const { text, end } = yield* say("")
      expect({ text, promptTokens: end.promptTokens }).toEqual({ text: " the", promptTokens: 1 })
    }),
  )

  it.effect("a chat ends where its template opens the next reply", () =>
    Effect.gen(function* () {
      const engine = yield* Scripted
      expect((yield* generateText(engine, textRequest("fox"))).text).toBe(" man our")
    }),
  )
})

describe("limits", () => {
  it.live("a reply ends where the context ends", () =>
    Effect.gen(function* () {
      const engine = yield* openToy("llama", { contextTokens: 96 }, { contextTokens: 4096 })
      expect(engine.facts.contextTokens).toBe(96)
      const { started, end } = yield* generateText(
        engine,
        textRequest("tell me a story", { maxTokens: 4096 }),
      )
      expect(end.finishReason).toBe("length")
      expect(started.promptTokens + end.completionTokens).toBe(96)
      // The sequence works as before.
      const again = yield* generateText(engine, textRequest("tell me a story", { maxTokens: 4096 }))
      expect(again.end).toEqual(end)
    }).pipe(Effect.scoped),
  )

  it.live("a hybrid model gives its script too", () =>
    Effect.gen(function* () {
      const engine = yield* openToy("qwen35", { script })
      expect((yield* generateText(engine, textRequest("hi"))).text).toBe(" man our")
    }).pipe(Effect.scoped),
  )

  it.live("penalties count generated tokens and work both ways", () =>
    Effect.gen(function* () {
      const engine = yield* openToy("llama")
      /** Share of distinct deltas in a few replies; a reply may end early. */
      const distinct = Effect.fnUntraced(function* (penalties: {
        frequencyPenalty?: number
        presencePenalty?: number
      }) {
        let count = 0
        let all = 0
        for (const seed of [11, 12, 13, 14]) {
          const sampling = { temperature: 0.4, seed, ...penalties }
          const request = textRequest({ text: "the fox and the robot" }, { maxTokens: 120, sampling })
          const { deltas } = yield* generateText(engine, request)
          count += new Set(deltas.map(({ text }) => text)).size
          all += deltas.length
        }
        return count / all
      })
      const none = yield* distinct({})
      expect(yield* distinct({ frequencyPenalty: -2 })).toBeLessThan(none)
      expect(yield* distinct({ frequencyPenalty: 2 })).toBeGreaterThan(none)
      expect(yield* distinct({ presencePenalty: 2 })).toBeGreaterThan(none)
    }).pipe(Effect.scoped),
  )

  it.live("a template may refuse a conversation: the caller's fault, in its own words", () =>
    Effect.gen(function* () {
      const chatTemplate =
        "{% for m in messages %}{% if loop.first and m['role'] == 'assistant' %}" +
        "{{ raise_exception('a user speaks first') }}{% endif %}[{{ m['role'] }}]{{ m['content'] }}\n{% endfor %}"
      const engine = yield* openToy("llama", { chatTemplate })
      const fine = yield* generateText(
        engine,
        textRequest([user("a"), assistant("b"), user("c")], { maxTokens: 2 }),
      )
      expect(fine.end.completionTokens).toBe(2)
      const refused = yield* Effect.flip(generateText(engine, textRequest([assistant("b"), user("c")])))
      expect(refused).toMatchObject({ reason: "InvalidInput", field: "messages" })
      expect(refused.detail).toBe("the model's chat template: a user speaks first")
    }).pipe(Effect.scoped),
  )

  it.live("a model without a template still chats", () =>
    Effect.gen(function* () {
      const engine = yield* openToy("llama", { chatTemplate: null })
      const reply = yield* generateText(engine, textRequest("hi", { maxTokens: 3 }))
      expect(reply.end.completionTokens).toBe(3)
    }).pipe(Effect.scoped),
  )
})
