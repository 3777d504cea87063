// The fields of POST /v1/chat/completions as the engine gets them (protocol 7.7 to 7.11).
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { fakeChat, light, weather } from "../../support/clients/FakeChat.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [fakeModel] })
})
afterAll(() => node.stop())

const { sent } = fakeChat(() => node)

describe("the engine is sent", () => {
  const use = (choice: unknown, ...names: ReadonlyArray<string>) => ({
    tools: expect.objectContaining({
      choice,
      tools: names.map((name) => expect.objectContaining({ name })),
    }),
  })
  const both = ["get_weather", "turn_on_light"]

  it("the tools as they are defined", async () => {
    expect((await sent({ tools: [weather, light], parallel_tool_calls: false })).tools).toStrictEqual({
      tools: [
        {
          name: "get_weather",
          description: "The weather of a city",
          parameters: weather.function.parameters,
          strict: false,
        },
        { name: "turn_on_light", parameters: { type: "object", properties: {} }, strict: false },
      ],
      choice: "auto",
      parallel: false,
    })
  })

  it.each<readonly [string, object, unknown]>([
    ["required", { tool_choice: "required" }, use("required", ...both)],
    [
      "a name",
      { tool_choice: { type: "function", function: { name: "turn_on_light" } } },
      use({ name: "turn_on_light" }, ...both),
    ],
    [
      "allowed tools",
      {
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: {
            mode: "required",
            tools: [{ type: "function", function: { name: "turn_on_light" } }],
          },
        },
      },
      use("required", "turn_on_light"),
    ],
    ["none", { tool_choice: "none" }, { tools: undefined }],
    ["null", { tool_choice: null }, use("auto", ...both)],
  ])("the choice %s", async (_, more, expected) => {
    // A demanded call would replace the text, so the script has none.
    const { tools } = await sent({ tools: [weather, light], ...more })
    expect({ tools }).toEqual(expected)
  })

  it.each<readonly [string, object]>([
    ["required without tools", { tool_choice: "required" }],
    ["a name without tools", { tool_choice: { type: "function", function: { name: "f" } }, tools: [] }],
    [
      "tools of other servers",
      { tools: [{ type: "web_search" }, { type: "custom", custom: { name: "x" } }] },
    ],
    ["functions that are not to be called", { functions: [weather.function], function_call: "none" }],
    ["a function_call without functions", { function_call: "auto", functions: [] }],
    [
      "nothing",
      { tools: null, functions: null, function_call: null, tool_choice: null, parallel_tool_calls: null },
    ],
  ])("no tools for %s", async (_, more) => {
    expect(await sent(more)).not.toHaveProperty("tools")
  })

  it("tools before functions, and the places of tools among others", async () => {
    const { tools } = await sent({ tools: [{ type: "mcp" }, light], functions: [weather.function] })
    expect(tools).toMatchObject({ tools: [{ name: "turn_on_light" }] })
  })

  it.each<readonly [string, unknown, unknown]>([
    ["text", { type: "text" }, undefined],
    ["an object", { type: "json_object" }, { kind: "json" }],
    [
      "a schema",
      { type: "json_schema", json_schema: { name: "n", schema: { type: "array" } } },
      { kind: "schema", schema: { type: "array" }, strict: false },
    ],
    [
      "a strict schema",
      { type: "json_schema", json_schema: { name: "n", schema: true, strict: true } },
      { kind: "schema", schema: true, strict: true },
    ],
  ])("the format of %s", async (_, response_format, expected) => {
    expect((await sent({ response_format })).format).toEqual(expected)
  })

  it.each<readonly [object, object]>([
    [{ logprobs: true }, { logprobs: 0 }],
    [{ logprobs: true, top_logprobs: 20 }, { logprobs: 20 }],
    [{ logprobs: false, top_logprobs: 3 }, {}],
    [{ n: 3 }, { replies: 3 }],
    [{ min_tokens: 4 }, { minTokens: 4 }],
    [
      { logit_bias: { 5: -100, 9: 2.5 } },
      {
        logitBias: [
          [5, -100],
          [9, 2.5],
        ],
      },
    ],
    [{ reasoning_effort: "none" }, {}],
    [{ reasoning_effort: "low" }, { thinkingTokens: 256, maxTokens: 150 + 256 }],
    [
      { reasoning_effort: "high", max_tokens: 100 },
      { thinkingTokens: 50, maxTokens: 100 },
    ],
    [
      { reasoning_effort: "high", max_thinking_tokens: 7 },
      { thinkingTokens: 7, maxTokens: 157 },
    ],
    [{ reasoning_effort: "high", max_thinking_tokens: 0 }, {}],
    [{ reasoning_effort: "medium", max_tokens: 1 }, { maxTokens: 1 }],
  ])("%j", async (more, expected) => {
    const { sampling: _, stop: __, ...terms } = await sent({ seed: 1, ...more })
    expect(terms).toEqual({ maxTokens: 150, ...expected })
  })
})
