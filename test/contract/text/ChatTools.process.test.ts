// Tools of POST /v1/chat/completions: the exact records and chunks of calls, and conversations with results (protocol 7.7).
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { callId, fakeChat, light, rome, user, weather } from "../../support/clients/FakeChat.ts"
import { fingerprint } from "../../support/clients/TextRecords.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [fakeModel] })
})
afterAll(() => node.stop())

const { choices, post, whole } = fakeChat(() => node)

describe("a call", () => {
  it("is answered whole", async () => {
    const reply = await whole({ calls: [rome] }, { tools: [weather] })
    expect(reply.choices).toStrictEqual([
      {
        index: 0,
        message: {
          role: "assistant",
          content: null,
          tool_calls: [
            { id: callId, type: "function", function: { name: "get_weather", arguments: '{"city":"Rome"}' } },
          ],
        },
        finish_reason: "tool_calls",
      },
    ])
    expect(reply.system_fingerprint).toEqual(fingerprint)
  })

  it("comes after its text, and calls have different ids", async () => {
    const steps = {
      tokens: 2,
      text: ["I ", "look."],
      calls: [rome, { name: "turn_on_light", arguments: {} }],
    }
    const { choices } = await whole(steps, { tools: [weather, light] })
    expect(choices[0]?.message).toMatchObject({
      content: "I look.",
      tool_calls: [
        { function: { name: "get_weather" } },
        { function: { name: "turn_on_light", arguments: "{}" } },
      ],
    })
    const calls = choices[0]?.message.tool_calls as ReadonlyArray<{ id: string }>
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
  })

  it("is streamed in OpenAI's deltas", async () => {
    const steps = { calls: [rome, { name: "turn_on_light", arguments: {} }] }
    const delta = (value: object) => ({ index: 0, delta: value, finish_reason: null })
    const piece = (index: number, text: string) =>
      delta({ tool_calls: [{ index, function: { arguments: text } }] })
    const begin = (index: number, name: string) =>
      delta({ tool_calls: [{ index, id: callId, type: "function", function: { name, arguments: "" } }] })
    expect(await choices(steps, { tools: [weather, light] })).toStrictEqual([
      delta({ role: "assistant", content: null }),
      begin(0, "get_weather"),
      ...['{"ci', 'ty":', '"Rom', 'e"}'].map((text) => piece(0, text)),
      begin(1, "turn_on_light"),
      piece(1, "{}"),
      { index: 0, delta: {}, finish_reason: "tool_calls" },
    ])
  })

  it("after a text begins with the text, as plain streams do", async () => {
    const [first, second] = await choices({ tokens: 1, text: "Well.", calls: [rome] }, { tools: [weather] })
    expect(first?.delta).toStrictEqual({ role: "assistant", content: "Well." })
    expect(second?.delta).toMatchObject({ tool_calls: [{ index: 0, function: { arguments: "" } }] })
  })

  it("that is cut by its length says so", async () => {
    const { choices } = await whole({ calls: [rome] }, { tools: [weather], max_tokens: 3 })
    expect(choices[0]).toMatchObject({ finish_reason: "length", message: { content: null } })
  })

  it("in the older form is function_call, whole and streamed", async () => {
    const request = { functions: [weather.function], function_call: { name: "get_weather" } }
    const { choices: answered } = await whole({ calls: [rome] }, request)
    expect(answered).toStrictEqual([
      {
        index: 0,
        message: {
          role: "assistant",
          content: null,
          function_call: { name: "get_weather", arguments: '{"city":"Rome"}' },
        },
        finish_reason: "function_call",
      },
    ])
    const deltas = (await choices({ calls: [rome] }, request)).map(({ delta }) => delta)
    expect(deltas).toStrictEqual([
      { role: "assistant", content: null },
      { function_call: { name: "get_weather", arguments: "" } },
      ...['{"ci', 'ty":', '"Rom', 'e"}'].map((text) => ({ function_call: { arguments: text } })),
      {},
    ])
  })
})

describe("a conversation", () => {
  const talk = (more: ReadonlyArray<object>) =>
    post({
      model: "fake",
      tools: [weather],
      messages: [user(script({ steps: [{ calls: [rome] }, { tokens: 1, text: "It is sunny." }] })), ...more],
    })

  it("goes on with the call's result", async () => {
    const first = await talk([])
    const { message } = first.choices[0]!
    const [call] = message.tool_calls as ReadonlyArray<{ id: string }>
    const result = { role: "tool", tool_call_id: call?.id, content: "22 degrees" }
    const { choices, usage: used } = await talk([message, result])
    expect(choices[0]).toMatchObject({ message: { content: "It is sunny." }, finish_reason: "stop" })
    expect(used).toMatchObject({ completion_tokens: 1 })
  })

  it("may be in the older form, with content as parts, and with thoughts", async () => {
    const { choices } = await talk([
      { role: "assistant", content: null, function_call: { name: "get_weather", arguments: "" } },
      { role: "function", name: "get_weather", content: null },
      { role: "assistant", content: "Sunny.", reasoning_content: "The tool says so.", tool_calls: [] },
      {
        role: "user",
        content: [
          { type: "text", text: 'fake:{"tokens":1,' },
          { type: "text", text: '"text":"Yes."}' },
        ],
      },
    ])
    expect(choices[0]?.message.content).toBe("Yes.")
  })
})
