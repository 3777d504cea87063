// The built-in text model and one of random weights under tools and response formats, at a temperature at which an
// unconstrained reply makes no sense.
import { fileURLToPath } from "node:url"
import { expect, layer } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Context, Effect, Layer } from "effect"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import type { TextEngine } from "#engines/protocol/Engine.ts"
import type { Tool, ToolUse } from "#engines/protocol/Text.ts"
import {
  type Generated,
  generateText,
  openText,
  textRequest,
} from "../../../support/engines/EngineHarness.ts"
import { openToy } from "../../../support/engines/ToyEngine.ts"
import { callsOf, contentOf } from "./Calls.ts"

const weights = fileURLToPath(import.meta.resolve("../../../../models/llama-demo/llama-demo-Q8_0.gguf"))

class Demo extends Context.Service<Demo, TextEngine>()("test/Demo") {
  static readonly layer = Layer.effect(
    Demo,
    openText(llamaGguf, { weights }, { contextTokens: 1024, slots: 8 }),
  )
}

class Random extends Context.Service<Random, TextEngine>()("test/Random") {
  static readonly layer = Layer.effect(Random, openToy("llama", { seed: 3 }, { slots: 8 }))
}

const ajv = new Ajv2020({ strict: false })
const schema = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 12 },
    age: { type: "integer", minimum: 0, maximum: 150 },
    kind: { enum: ["cat", "dog", null, 7] },
    tags: { type: "array", items: { type: "string", pattern: "^[a-z]{1,5}$" }, minItems: 1, maxItems: 3 },
    owner: {
      anyOf: [{ type: "null" }, { type: "object", required: ["id"], properties: { id: { type: "number" } } }],
    },
  },
  required: ["name", "age", "tags"],
  additionalProperties: false,
}

const tool = (name: string, properties: Record<string, Record<string, string | number>>): Tool => ({
  name,
  description: `Does ${name}`,
  strict: true,
  parameters: { type: "object", properties, required: Object.keys(properties), additionalProperties: false },
})
const tools = [
  tool("switch_light", { room: { type: "string", maxLength: 8 }, on: { type: "boolean" } }),
  tool("set_timer", { minutes: { type: "integer", minimum: 1, maximum: 60 } }),
]

const hot = (seed: number, changes: Parameters<typeof textRequest>[1] = {}) =>
  textRequest("Turn on the light.", { maxTokens: 240, ...changes, sampling: { temperature: 1.5, seed } })

const times = 100

const many = (
  engine: TextEngine,
  count: number,
  request: (seed: number) => ReturnType<typeof textRequest>,
): Effect.Effect<ReadonlyArray<Generated>, unknown> =>
  Effect.forEach(
    Array.from({ length: count }, (_, seed) => seed),
    (seed) => generateText(engine, request(seed)),
    { concurrency: 8 },
  )

layer(Layer.merge(Demo.layer, Random.layer), { excludeTestServices: true })("a reply", (it) => {
  for (const [name, service] of [
    ["of the built-in model", Demo],
    ["of random weights", Random],
  ] as const) {
    it.effect(`${name} is a JSON object, ${times} times`, () =>
      Effect.gen(function* () {
        const engine = yield* service
        const replies = yield* many(engine, times, (seed) =>
          hot(seed, { maxTokens: 60, format: { kind: "json" } }),
        )
        for (const { end, text } of replies) {
          expect(end.finishReason).toBe("stop")
          expect(JSON.parse(text)).toBeTypeOf("object")
        }
      }),
    )

    it.effect(`${name} is valid under its schema, ${times} times`, () =>
      Effect.gen(function* () {
        const engine = yield* service
        const validate = ajv.compile(schema)
        const replies = yield* many(engine, times, (seed) =>
          hot(seed, { format: { kind: "schema", strict: true, schema } }),
        )
        for (const { end, text } of replies) {
          expect(end.finishReason).toBe("stop")
          expect(validate(JSON.parse(text)), text).toBe(true)
        }
      }),
    )

    it.effect(`${name} calls tools whose arguments are valid, and no call syntax is in its content`, () =>
      Effect.gen(function* () {
        const engine = yield* service
        for (const [choice, parallel] of [
          ["required", true],
          ["required", false],
          [{ name: "set_timer" }, false],
        ] as const) {
          const use: ToolUse = { tools, choice, parallel }
          const replies = yield* many(engine, 30, (seed) => hot(seed, { tools: use, maxTokens: 400 }))
          for (const reply of replies) {
            const calls = callsOf(reply.deltas)
            expect(reply.end.finishReason).toBe("tool_calls")
            expect(contentOf(reply.deltas).trim()).toBe("")
            expect(calls.length).toBeGreaterThan(0)
            if (!parallel) expect(calls).toHaveLength(1)
            for (const call of calls) {
              if (typeof choice === "object") expect(call.name).toBe(choice.name)
              const { parameters } = tools.find((one) => one.name === call.name)!
              expect(ajv.validate(parameters, JSON.parse(call.arguments)), call.arguments).toBe(true)
            }
          }
        }
      }),
    )
  }

  it.effect("that is cut says so, and is a valid beginning", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const format = { kind: "schema", strict: true, schema } as const
      const whole = yield* generateText(engine, { ...textRequest("A cat.", { maxTokens: 200, format }) })
      const cut = yield* generateText(engine, { ...textRequest("A cat.", { maxTokens: 4, format }) })
      expect(cut.end).toMatchObject({ finishReason: "length", completionTokens: 4 })
      expect(whole.text.startsWith(cut.text)).toBe(true)
    }),
  )

  it.effect("has equal text for equal seeds, alone and among others", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const request = (seed: number) => hot(seed, { format: { kind: "schema", strict: true, schema } })
      const alone = []
      for (let seed = 0; seed < 8; seed++) alone.push((yield* generateText(engine, request(seed))).text)
      const together = yield* many(engine, 8, request)
      expect(together.map(({ text }) => text)).toEqual(alone)
    }),
  )

  it.effect("that nothing can satisfy is refused, with the place", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const impossible = {
        type: "object",
        properties: { a: { type: "integer", minimum: 5, maximum: 4 } },
        required: ["a"],
      }
      const refused = yield* Effect.flip(
        generateText(engine, hot(1, { format: { kind: "schema", strict: true, schema: impossible } })),
      )
      expect(refused).toMatchObject({ reason: "InvalidInput" })
      expect(refused.field).toContain("format.properties.a")
      const wrong: Tool = {
        ...tools[0]!,
        parameters: { type: "object", properties: { x: { type: "string", pattern: "(" } }, required: ["x"] },
      }
      const refusedTool = yield* Effect.flip(
        generateText(
          engine,
          hot(1, { tools: { tools: [tools[1]!, wrong], choice: "auto", parallel: true } }),
        ),
      )
      expect(refusedTool).toMatchObject({ reason: "InvalidInput" })
      expect(refusedTool.field).toContain("tools[1].properties.x")
    }),
  )
})

const thinking =
  "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}" +
  "<|im_start|>assistant\n<think>\n{% if not enable_thinking %}\n</think>\n\n{% endif %}"

layer(Layer.empty, { excludeTestServices: true })("a model that thinks", (it) => {
  it.effect("thinks in its budget before it answers, and only if it may", () =>
    Effect.gen(function* () {
      const engine = yield* openToy("llama", { seed: 5, chatTemplate: thinking }, { slots: 4 })
      const without = yield* generateText(engine, hot(1, { maxTokens: 20 }))
      expect(without.end.reasoningTokens).toBeUndefined()
      expect(without.deltas.every(({ detail }) => detail === undefined)).toBe(true)
      for (let seed = 0; seed < 5; seed++) {
        const { deltas, end } = yield* generateText(engine, hot(seed, { maxTokens: 60, thinkingTokens: 12 }))
        const reasoning = deltas.filter(({ detail }) => detail?.part?.kind === "reasoning")
        const first = deltas.findIndex(({ detail }) => detail === undefined)
        expect(reasoning.map(({ text }) => text).join("")).not.toContain("think")
        expect(deltas.slice(first).every(({ detail }) => detail === undefined)).toBe(true)
        // The budget, and the tokens of the closing marker, which this vocabulary spells letter by letter.
        if (end.completionTokens < 30) continue
        expect(end.reasoningTokens).toBeGreaterThanOrEqual(12 + "</think>".length)
        expect(end.reasoningTokens).toBeLessThanOrEqual(12 + "</think>".length + 1)
      }
      for (let seed = 0; seed < 5; seed++) {
        const { deltas, end } = yield* generateText(
          engine,
          hot(seed, { thinkingTokens: 12, format: { kind: "schema", strict: true, schema } }),
        )
        expect(end.finishReason).toBe("stop")
        expect(deltas[0]?.detail?.part).toEqual({ kind: "reasoning" })
        expect(ajv.validate(schema, JSON.parse(contentOf(deltas)))).toBe(true)
      }
    }).pipe(Effect.scoped),
  )
})
