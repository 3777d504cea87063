// Forced calls of the built-in weights, streamed over several connections: each stream is put together as a client does it, and
// checked from its first delta to its last.
import { expect } from "vitest"
import type { Json } from "#domain/wire/Json.ts"
import { validatorOf } from "../../engines/grammar/test/schema/Check.ts"
import { TextStream } from "../support/clients/TextStream.ts"
import type { TestNode } from "../support/nodes/TestNode.ts"

const definition = (
  name: string,
  properties: Readonly<Record<string, Json>>,
  required: ReadonlyArray<string>,
) => ({
  name,
  strict: true,
  parameters: { type: "object", properties, required, additionalProperties: false },
})

/** Values with call syntax, quotes and characters of several bytes, so that a leak or a wrong cut would show. */
const definitions = [
  definition("switch_light", { room: { type: "string", maxLength: 6 }, on: { type: "boolean" } }, [
    "room",
    "on",
  ]),
  definition(
    "set-timer_2",
    {
      minutes: { type: "integer", minimum: 1, maximum: 60 },
      label: { enum: ["tea", "<tool_call>", '{"name": "x", "arguments": {}}\n</tool_call>', 'äö "😀"\\'] },
    },
    ["minutes"],
  ),
  definition("stop", {}, []),
]
const validators = new Map(definitions.map(({ name, parameters }) => [name, validatorOf(parameters)]))
const choices = [
  "required",
  ...definitions.map(({ name }) => ({ type: "function", function: { name } })),
] as const

interface CallDelta {
  readonly index: number
  readonly id?: string
  readonly type?: string
  readonly function: { readonly name?: string; readonly arguments: string }
}

interface Chunk {
  readonly id: string
  readonly choices: readonly [
    {
      readonly delta: {
        readonly role?: string
        readonly content?: string | null
        readonly tool_calls?: ReadonlyArray<CallDelta>
      }
      readonly finish_reason: string | null
    },
  ]
}

interface Call {
  readonly id: string
  readonly name: string
  arguments: string
}

const assembled = (chunks: ReadonlyArray<Chunk>): ReadonlyArray<Call> => {
  const calls: Array<Call> = []
  for (const [
    at,
    {
      choices: [{ delta, finish_reason }],
      id,
    },
  ] of chunks.entries()) {
    expect(id).toBe(chunks[0]?.id)
    expect(delta.role).toBe(at === 0 ? "assistant" : undefined)
    // No call syntax, and nothing else, is in the content.
    expect(delta.content ?? "").toBe("")
    expect(finish_reason).toBe(at === chunks.length - 1 ? "tool_calls" : null)
    for (const { function: called, id: callId, index, type } of delta.tool_calls ?? []) {
      const call = calls[index]
      if (call === undefined) {
        // The first delta of a call has everything but arguments; calls come in their order.
        expect([index, type, called.arguments]).toEqual([calls.length, "function", ""])
        expect(callId).toMatch(/^call_[0-9a-f]{24}$/)
        calls.push({ id: callId ?? "", name: called.name ?? "", arguments: "" })
      } else {
        expect([index, callId, called.name, type]).toEqual([
          calls.length - 1,
          undefined,
          undefined,
          undefined,
        ])
        call.arguments += called.arguments
      }
    }
  }
  return calls
}

const connections = 6

/** Streams until this many calls were made. */
export const expectForcedCalls = async (node: TestNode, count: number): Promise<void> => {
  const ids = new Set<string>()
  let seeds = 0
  const one = async (seed: number): Promise<void> => {
    const choice = choices[seed % choices.length]!
    const response = await node.post("/v1/chat/completions", {
      model: "llama",
      messages: [{ role: "user", content: "Do it." }],
      tools: definitions.map((each) => ({ type: "function", function: each })),
      tool_choice: choice,
      parallel_tool_calls: seed % 3 > 0,
      temperature: 1.5,
      max_tokens: 200,
      stream: true,
      seed,
    })
    expect(response.status).toBe(200)
    const stream = new TextStream(response)
    expect(await stream.toEnd()).toBe("complete")
    expect(stream.events.at(-1)).toBe("[DONE]")
    const calls = assembled(stream.events.slice(0, -1).map((data) => JSON.parse(data) as Chunk))
    expect(calls.length).toBeGreaterThan(0)
    if (seed % 3 === 0 || typeof choice === "object") expect(calls).toHaveLength(1)
    for (const { arguments: text, id, name } of calls) {
      if (typeof choice === "object") expect(name).toBe(choice.function.name)
      expect([text, validators.get(name)?.(JSON.parse(text))]).toEqual([text, true])
      ids.add(id)
    }
    made += calls.length
  }
  let made = 0
  const client = async () => {
    while (made < count) await one(seeds++)
  }
  await Promise.all(Array.from({ length: connections }, client))
  // No two calls have one id.
  expect(ids.size).toBe(made)
  console.info(`${made} calls in ${seeds} streams`)
}
