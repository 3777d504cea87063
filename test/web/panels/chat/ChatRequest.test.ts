// The body of the playground's chat requests, and the answer that grows from their chunks.
import { describe, expect, it } from "vitest"
import { addChunk, chatBody, toolsOf } from "../../../../src/web/panels/chat/ChatRequest.js"

const settings = {
  model: "llm",
  system: "",
  temperature: undefined,
  topP: undefined,
  maxTokens: undefined,
  seed: undefined,
  effort: "none",
  tools: [],
}

const chunk = (delta: object, more: object = {}) => ({
  choices: [{ index: 0, delta, finish_reason: null }],
  ...more,
})
type Answer = Parameters<typeof addChunk>[0]

it("sends what was set, and nothing else", () => {
  expect(chatBody(settings, [{ role: "user", text: "Hi" }])).toEqual({
    model: "llm",
    messages: [{ role: "user", content: "Hi" }],
    stream: true,
    stream_options: { include_usage: true },
  })
  expect(
    chatBody(
      { ...settings, system: "Be brief.", temperature: 0, topP: 1, maxTokens: 5, seed: 7, effort: "low" },
      [],
    ),
  ).toMatchObject({
    messages: [{ role: "system", content: "Be brief." }],
    temperature: 0,
    top_p: 1,
    max_tokens: 5,
    seed: 7,
    reasoning_effort: "low",
  })
})

it("sends pictures before the text, and calls with their results", () => {
  const { messages } = chatBody(settings, [
    { role: "user", text: "What?", pictures: ["data:image/png;base64,AA=="] },
    { role: "assistant", text: "", calls: [{ id: "call_1", name: "f", arguments: "{}" }] },
    { role: "tool", text: "7", callId: "call_1" },
  ]) as { messages: ReadonlyArray<unknown> }
  expect(messages).toEqual([
    {
      role: "user",
      content: [
        { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
        { type: "text", text: "What?" },
      ],
    },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "call_1", content: "7" },
  ])
})

describe("an answer", () => {
  it("grows from text, thoughts and calls", () => {
    const answer: Answer = { role: "assistant", text: "" }
    expect(addChunk(answer, chunk({ role: "assistant", content: "" })).grew).toBe(false)
    expect(addChunk(answer, chunk({ reasoning_content: "Hm" })).grew).toBe(true)
    addChunk(answer, chunk({ content: "Ro" }))
    addChunk(answer, chunk({ content: "me" }))
    addChunk(
      answer,
      chunk({
        tool_calls: [{ index: 0, id: "a", type: "function", function: { name: "f", arguments: "" } }],
      }),
    )
    addChunk(
      answer,
      chunk({
        tool_calls: [{ index: 1, id: "b", type: "function", function: { name: "g", arguments: "" } }],
      }),
    )
    addChunk(answer, chunk({ tool_calls: [{ index: 0, function: { arguments: '{"x":' } }] }))
    addChunk(answer, chunk({ tool_calls: [{ index: 0, function: { arguments: "1}" } }] }))
    expect(answer).toEqual({
      role: "assistant",
      text: "Rome",
      reasoning: "Hm",
      calls: [
        { id: "a", name: "f", arguments: '{"x":1}' },
        { id: "b", name: "g", arguments: "" },
      ],
    })
    expect(addChunk(answer, { choices: [], usage: { completion_tokens: 9 } }).tokens).toBe(9)
  })

  it("that the node ends with an error fails with a sentence", () => {
    const answer: Answer = { role: "assistant", text: "Ro" }
    expect(() => addChunk(answer, { error: { message: "The model failed", type: "server_error" } })).toThrow(
      "The node ended the answer (The model failed): what came so far is shown; try again.",
    )
  })
})

it("tools may be a list, one tool or bare functions, and a mistake is named", () => {
  const bare = { name: "f", parameters: { type: "object" } }
  const whole = { type: "function", function: bare }
  expect(toolsOf("")).toEqual({ tools: [], problem: "" })
  for (const text of [[bare], whole, [whole]]) expect(toolsOf(JSON.stringify(text)).tools).toEqual([whole])
  expect(toolsOf("[1]").problem).toBe("Tools: each one must be a JSON object.")
  expect(toolsOf("{").problem).toMatch(/^Tools: this is no JSON/)
})
