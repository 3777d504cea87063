// Random schemas and forced calls of tools through the whole adapter: the built-in model and one of random weights, at a
// temperature at which replies make no sense.
import { fileURLToPath } from "node:url"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer, Result } from "effect"
import * as fc from "fast-check"
import { compile } from "#engines/grammar/compile/Compile.ts"
import { Matcher } from "#engines/grammar/test/Matcher.ts"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import { replyShape } from "#engines/llama/model/Shapes.ts"
import type { TextEngine } from "#engines/protocol/Engine.ts"
import type { ResponseFormat, Tool } from "#engines/protocol/Text.ts"
import { validatorOf } from "../../../../engines/grammar/test/schema/Check.ts"
import { randomSchema } from "../../../../engines/grammar/test/schema/RandomSchemas.ts"
import { generateText, openText, textRequest } from "../../../support/engines/EngineHarness.ts"
import { openToy } from "../../../support/engines/ToyEngine.ts"
import { callsOf, contentOf } from "./Calls.ts"

const weights = fileURLToPath(import.meta.resolve("../../../../models/llama-demo/llama-demo-Q8_0.gguf"))
const slots = 16
const maxTokens = 200

class Demo extends Context.Service<Demo, TextEngine>()("test/Demo") {
  static readonly layer = Layer.effect(Demo, openText(llamaGguf, { weights }, { contextTokens: 1024, slots }))
}

class Random extends Context.Service<Random, TextEngine>()("test/Random") {
  static readonly layer = Layer.effect(Random, openToy("llama", { seed: 3 }, { slots }))
}

const formatOf = (schema: Extract<ResponseFormat, { kind: "schema" }>["schema"]): ResponseFormat => ({
  kind: "schema",
  strict: true,
  schema,
})

/** The grammar of a schema as the engine makes it; undefined if it is refused. */
const matcherOf = (format: ResponseFormat): Matcher | undefined => {
  try {
    const compiled = compile(replyShape({ family: "general", format }).shape)
    return "grammar" in compiled ? new Matcher(compiled.grammar) : undefined
  } catch {
    return undefined
  }
}

const utf8 = new TextEncoder()

layer(Layer.merge(Demo.layer, Random.layer), { excludeTestServices: true })("a reply", (it) => {
  for (const [name, service] of [
    ["of the built-in model", Demo],
    ["of random weights", Random],
  ] as const) {
    it.effect(`${name} is valid under 4,000 random schemas, of which about half are refused`, () =>
      Effect.gen(function* () {
        const engine = yield* service
        const schemas = fc.sample(randomSchema, { numRuns: 4_000, seed: 19 })
        const counts = { refused: 0, slow: 0, whole: 0, cut: 0, cutWithSpace: 0 }
        const one = Effect.fnUntraced(function* (schema: (typeof schemas)[number], seed: number) {
          if (
            typeof schema !== "boolean" &&
            (typeof schema !== "object" || schema === null || Array.isArray(schema))
          )
            return
          const format = formatOf(schema as Parameters<typeof formatOf>[0])
          const matcher = matcherOf(format)
          const request = textRequest("A cat.", {
            maxTokens,
            format,
            sampling: { temperature: 1.5, seed },
          })
          const reply = yield* Effect.result(generateText(engine, request))
          if (Result.isFailure(reply)) {
            // On a busy machine the time limit is reached by grammars that compile.
            const isSlow = reply.failure.detail.includes("longer than")
            if (!isSlow) expect(matcher, `${reply.failure.detail}: ${JSON.stringify(schema)}`).toBeUndefined()
            counts[isSlow ? "slow" : "refused"]++
            return
          }
          const { end, text } = reply.success
          if (end.finishReason === "stop") {
            counts.whole++
            expect(validatorOf(schema)(JSON.parse(text)), `${JSON.stringify(schema)}: ${text}`).toBe(true)
            return
          }
          expect(end.finishReason).toBe("length")
          counts.cut++
          if (matcher!.shortestLength <= maxTokens) counts.cutWithSpace++
          expect(matcher!.accept(utf8.encode(text)), `${JSON.stringify(schema)}: ${text}`).toBe(true)
        })
        yield* Effect.forEach(schemas, one, { concurrency: slots, discard: true })
        console.log(name, JSON.stringify(counts))
        expect(counts.whole).toBeGreaterThan(1_900)
        expect(counts.cutWithSpace).toBeLessThan(0.05 * (counts.whole + counts.cutWithSpace))
      }),
    )

    it.effect(`${name}: 5,000 forced calls reassemble, are valid, and leave nothing in the content`, () =>
      Effect.gen(function* () {
        const engine = yield* service
        const tools: ReadonlyArray<Tool> = [
          {
            name: "switch_light",
            strict: true,
            parameters: {
              type: "object",
              properties: { room: { type: "string", maxLength: 6 }, on: { type: "boolean" } },
              required: ["room", "on"],
              additionalProperties: false,
            },
          },
          {
            name: "set-timer_2",
            strict: true,
            parameters: {
              type: "object",
              properties: {
                minutes: { type: "integer", minimum: 1, maximum: 60 },
                label: { enum: ["tea", "<tool_call>"] },
              },
              required: ["minutes"],
              additionalProperties: false,
            },
          },
        ]
        const validators = new Map(tools.map((tool) => [tool.name, validatorOf(tool.parameters)]))
        const choices = ["required", { name: "switch_light" }, { name: "set-timer_2" }] as const
        const one = Effect.fnUntraced(function* (seed: number) {
          const choice = choices[seed % choices.length]!
          const { deltas, end } = yield* generateText(
            engine,
            textRequest("Do it.", {
              maxTokens: 160,
              tools: { tools, choice, parallel: seed % 2 === 0 },
              sampling: { temperature: 1.5, seed },
            }),
          )
          expect(end.finishReason).toBe("tool_calls")
          expect(contentOf(deltas).trim()).toBe("")
          const calls = callsOf(deltas)
          expect(calls.length).toBeGreaterThan(0)
          for (const call of calls)
            expect(validators.get(call.name)!(JSON.parse(call.arguments)), call.arguments).toBe(true)
        })
        const seeds = Array.from({ length: 5_000 }, (_, seed) => seed)
        yield* Effect.forEach(seeds, one, { concurrency: slots, discard: true })
      }),
    )
  }
})
