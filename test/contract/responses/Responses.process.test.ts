// POST /v1/responses: the exact replies that callers get, and what the engine is sent (protocol 7.12, 7.13).
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"
import { call, echo, id, lamp, message, parameters, rome, usage, weather, whole } from "./Replies.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [fakeModel] })
})
afterAll(() => node.stop())

/** What the engine was sent, without the prompt. */
const sent = async (more: object) => {
  const { output } = await whole(node, { request: true }, more)
  return JSON.parse(output[0]!.content![0]!.text) as Readonly<Record<string, unknown>>
}

describe("a whole reply", () => {
  it("has exactly these fields", async () => {
    const before = Math.floor(Date.now() / 1000)
    const reply = await whole(node, { tokens: 2, text: ["a\n", "ü"], cachedTokens: 1 }, { store: true })
    expect(reply).toStrictEqual({
      id: id("resp"),
      object: "response",
      created_at: expect.any(Number),
      completed_at: expect.any(Number),
      model: "fake",
      status: "completed",
      error: null,
      incomplete_details: null,
      output: [message("a\nü")],
      usage: usage(1, 2, { cached: 1 }),
      ...echo,
    })
    expect(reply.created_at).toBeGreaterThanOrEqual(before)
    expect(reply.completed_at).toBeGreaterThanOrEqual(Number(reply.created_at))
  })

  it("repeats the request, and says what counted", async () => {
    const format = {
      type: "json_schema",
      name: "place",
      schema: parameters,
      strict: true,
      description: "A place",
    }
    const request = {
      instructions: "Be brief.",
      max_output_tokens: 9,
      metadata: { a: "1" },
      parallel_tool_calls: false,
      reasoning: { effort: "low", summary: "auto" },
      temperature: 0,
      top_p: 1,
      text: { format, verbosity: "low" },
      tool_choice: { type: "function", name: "lamp" },
      tools: [weather, lamp],
      top_logprobs: 2,
      truncation: "auto",
      user: "u",
    }
    const more = { include: ["message.output_text.logprobs"], service_tier: "auto", prompt_cache_key: "k" }
    expect(await whole(node, { tokens: 1 }, { ...request, ...more })).toMatchObject({
      ...request,
      text: { format },
      tools: [
        weather,
        { ...lamp, description: null, parameters: { type: "object", properties: {} }, strict: false },
      ],
      truncation: "disabled",
      service_tier: "default",
    })
  })

  it("has thoughts, text and calls as items in their order", async () => {
    const steps = {
      reasoning: ["Hm, ", "so."],
      tokens: 1,
      text: "I look.",
      calls: [rome, { name: "lamp", arguments: {} }],
    }
    const reply = await whole(node, steps, { tools: [weather, lamp], reasoning: { effort: "low" } })
    expect(reply.output).toStrictEqual([
      {
        id: id("rs"),
        type: "reasoning",
        status: "completed",
        summary: [],
        content: [{ type: "reasoning_text", text: "Hm, so." }],
      },
      message("I look."),
      call("get_weather", '{"city":"Rome"}'),
      call("lamp", "{}"),
    ])
    expect(reply).toMatchObject({ status: "completed", usage: usage(5, 10, { reasoning: 2 }) })
  })

  it("has the thoughts as a summary where the request asks for one", async () => {
    const reasoning = { effort: "low", summary: "detailed" }
    const { output } = await whole(node, { reasoning: "Hm.", tokens: 1, text: "Yes." }, { reasoning })
    expect(output[0]).toMatchObject({ summary: [{ type: "summary_text", text: "Hm." }], content: [] })
  })

  it.each<readonly [string, object, object, object]>([
    ["text", { tokens: 9, text: "x" }, {}, message("xx", "incomplete")],
    ["a call", { calls: [rome] }, { tools: [weather] }, call("get_weather", '{"ci', "incomplete")],
  ])("that was cut in %s is incomplete", async (_, steps, more, item) => {
    const reply = await whole(node, steps, { ...more, max_output_tokens: 2 })
    expect(reply.output).toStrictEqual([item])
    expect(reply).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      max_output_tokens: 2,
    })
  })

  it("without anything is an empty message", async () => {
    expect((await whole(node, { tokens: 0 })).output).toStrictEqual([message("")])
  })

  it("has log probabilities where the request includes them", async () => {
    const more = { include: ["message.output_text.logprobs"], top_logprobs: 1 }
    const { output } = await whole(node, { tokens: 2, text: ["x", "y"] }, more)
    expect(output[0]?.content?.[0]?.logprobs).toMatchObject([
      { token: "x", bytes: [120], top_logprobs: [{ token: "x" }] },
      { token: "y", bytes: [121], top_logprobs: [{ token: "y" }] },
    ])
    expect((await whole(node, { tokens: 1 }, { top_logprobs: 1 })).output[0]?.content?.[0]?.logprobs).toEqual(
      [],
    )
  })
})

describe("the engine is sent", () => {
  it("what chat would send it", async () => {
    const request = await sent({
      max_output_tokens: 50,
      temperature: 0.5,
      top_p: 0.4,
      tools: [weather, lamp],
      tool_choice: {
        type: "allowed_tools",
        mode: "required",
        tools: [{ type: "function", name: "get_weather" }],
      },
      parallel_tool_calls: false,
      reasoning: { effort: "minimal" },
      include: ["message.output_text.logprobs"],
    })
    expect(request).toMatchObject({
      maxTokens: 50,
      sampling: { temperature: 0.5, topP: 0.4 },
      tools: {
        tools: [{ name: "get_weather", parameters, strict: true }],
        choice: "required",
        parallel: false,
      },
      thinkingTokens: 25,
      logprobs: 0,
    })
    expect(await sent({})).toMatchObject({
      maxTokens: 4096,
      sampling: { temperature: 0.7, topP: 0.9, topK: 0 },
    })
  })

  it.each([
    [{ type: "json_object" }, { kind: "json" }],
    [
      { type: "json_schema", name: "p", schema: parameters, strict: true },
      { kind: "schema", schema: parameters, strict: true },
    ],
  ])("the format %j", async (format, expected) => {
    expect((await sent({ text: { format } })).format).toEqual(expected)
  })
})
