// Forced calls through the whole adapter in the syntax of each family: random weights, at a temperature at which a reply makes no
// sense, with the family's markers as special tokens of the vocabulary.
import { expect, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Effect } from "effect"
import type { Tool, ToolUse } from "#engines/protocol/Text.ts"
import { generateText, textRequest } from "../../../support/engines/EngineHarness.ts"
import { openToy } from "../../../support/engines/ToyEngine.ts"
import { syntaxes } from "../tools/Calls.ts"
import { templates } from "../tools/Templates.ts"
import { callsOf, contentOf } from "./Calls.ts"

const ajv = new Ajv2020({ strict: false })

const tools: ReadonlyArray<Tool> = [
  {
    name: "set_timer",
    strict: true,
    parameters: {
      type: "object",
      properties: { minutes: { type: "integer", minimum: 1, maximum: 60 }, loud: { type: "boolean" } },
      required: ["minutes"],
      additionalProperties: false,
    },
  },
  {
    name: "send",
    strict: true,
    parameters: {
      type: "object",
      properties: {
        to: { type: "array", items: { type: "string", maxLength: 3 }, minItems: 1, maxItems: 3 },
        body: { type: "string", maxLength: 4 },
        options: {
          type: "object",
          properties: { urgent: { type: ["boolean", "null"] }, kind: { enum: ["a", "<b>", 7] } },
          required: ["urgent", "kind"],
          additionalProperties: false,
        },
      },
      required: ["to", "options"],
      additionalProperties: false,
    },
  },
]

const choices: ReadonlyArray<Pick<ToolUse, "choice" | "parallel">> = [
  { choice: "required", parallel: true },
  { choice: { name: "send" }, parallel: true },
]

it.live.each(syntaxes)("%s: forced calls are valid and leave nothing in the content", ([name, syntax]) =>
  Effect.gen(function* () {
    const toy = { seed: 5, chatTemplate: templates[name] ?? null, special: syntax.markers }
    const engine = yield* openToy("llama", toy, { slots: 8, contextTokens: 4096 })
    for (const { choice, parallel } of choices) {
      const seeds = Array.from({ length: 7 }, (_, seed) => seed + 1)
      const one = (seed: number) =>
        generateText(
          engine,
          textRequest("Send it.", {
            maxTokens: 700,
            tools: { tools, choice, parallel },
            sampling: { temperature: 1.5, seed },
          }),
        )
      // The first one compiles the grammar for all.
      const first = yield* one(0)
      const replies = [first, ...(yield* Effect.forEach(seeds, one, { concurrency: 8 }))]
      for (const reply of replies) {
        const calls = callsOf(reply.deltas)
        expect(reply.end.finishReason).toBe("tool_calls")
        expect(contentOf(reply.deltas)).toBe("")
        expect(calls.length).toBeGreaterThan(0)
        if (typeof choice === "object") expect(calls.map((call) => call.name)).toEqual([choice.name])
        for (const call of calls) {
          const parameters = tools.find((tool) => tool.name === call.name)?.parameters
          expect(ajv.validate(parameters ?? false, JSON.parse(call.arguments)), call.arguments).toBe(true)
        }
      }
    }
  }).pipe(Effect.scoped),
)
