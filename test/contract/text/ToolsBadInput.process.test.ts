// Tools, formats and histories that cannot be used: each is refused with the path of what is wrong, and costs nothing.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { fn, refusals, userSays } from "../../support/clients/TextRefusals.ts"
import { receiptsOf } from "../../support/nodes/Ledger.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilIdle, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [{ ...fakeModel, options: { slots: 4 } }] })
  await untilLoaded(node, "fake")
})
afterAll(() => node.stop())

const { expectRefusal } = refusals(() => node)

const call = (id: string, text: unknown = "{}") => ({
  id,
  type: "function",
  function: { name: "f", arguments: text },
})
const assistant = (...tool_calls: ReadonlyArray<unknown>) => ({
  role: "assistant",
  content: null,
  tool_calls,
})

describe("tools", () => {
  it.each<readonly [string, object, string]>([
    ["no list", { tools: "x" }, "tools"],
    ["an entry that is no tool", { tools: [[]] }, "tools[0]"],
    ["no function", { tools: [{ type: "function" }] }, "tools[0].function"],
    ["no name", { tools: [{ type: "function", function: {} }] }, "tools[0].function.name"],
    ["a name with spaces", { tools: [fn("a"), fn("turn on")] }, "tools[1].function.name"],
    ["a long name", { tools: [fn("a".repeat(65))] }, "tools[0].function.name"],
    ["two of one name", { tools: [fn("a"), fn("b"), fn("a")] }, "tools[2].function.name"],
    [
      "parameters that are no schema",
      { tools: [fn("a", { parameters: [] })] },
      "tools[0].function.parameters",
    ],
    ["strict as a text", { tools: [fn("a", { strict: "yes" })] }, "tools[0].function.strict"],
    ["129 of them", { tools: Array.from({ length: 129 }, (_, i) => fn(`f${i}`)) }, "tools"],
    ["two functions of one name", { functions: [{ name: "a" }, { name: "a" }] }, "functions[1].name"],
    ["a function with a bad name", { functions: [{ name: "ä" }] }, "functions[0].name"],
    ["an unknown choice", { tools: [fn("a")], tool_choice: "maybe" }, "tool_choice"],
    ["a choice of another type", { tools: [fn("a")], tool_choice: 5 }, "tool_choice"],
    ["a choice of an unknown name", { tools: [fn("a")], tool_choice: fn("b") }, "tool_choice.function.name"],
    [
      "a call of an unknown function",
      { functions: [{ name: "a" }], function_call: { name: "b" } },
      "function_call.name",
    ],
    ["an unknown function_call", { functions: [{ name: "a" }], function_call: "yes" }, "function_call"],
    [
      "an unknown allowed tool",
      {
        tools: [fn("a")],
        tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [fn("a"), fn("b")] } },
      },
      "tool_choice.allowed_tools.tools[1].function.name",
    ],
    ["parallel_tool_calls as a text", { parallel_tool_calls: "no" }, "parallel_tool_calls"],
  ])("%s", (_, more, field) => expectRefusal(more, field))
})

describe("formats and numbers", () => {
  it.each<readonly [string, object, string]>([
    ["an unknown format", { response_format: { type: "yaml" } }, "response_format.type"],
    ["a format that is a text", { response_format: "json" }, "response_format"],
    ["no schema", { response_format: { type: "json_schema" } }, "response_format.json_schema.schema"],
    [
      "a schema that is a list",
      { response_format: { type: "json_schema", json_schema: { name: "x", schema: [] } } },
      "response_format.json_schema.schema",
    ],
    [
      "a name with spaces",
      { response_format: { type: "json_schema", json_schema: { name: "a b", schema: {} } } },
      "response_format.json_schema.name",
    ],
    ["logprobs as a number", { logprobs: 3 }, "logprobs"],
    ["21 alternatives", { logprobs: true, top_logprobs: 21 }, "top_logprobs"],
    [
      "more log probabilities than fit",
      { logprobs: true, top_logprobs: 20, n: 4, max_tokens: 4096 },
      "top_logprobs",
    ],
    ["an unknown effort", { reasoning_effort: "huge" }, "reasoning_effort"],
    ["a negative budget", { max_thinking_tokens: -1 }, "max_thinking_tokens"],
    ["more replies than slots", { n: 5 }, "n"],
    ["more tokens at least than at most", { min_tokens: 20, max_tokens: 10 }, "min_tokens"],
  ])("%s", (_, more, field) => expectRefusal(more, field))

  it.each<readonly [string, object, string]>([
    ["best_of below n", { n: 3, best_of: 2 }, "best_of"],
    ["best_of in a stream", { best_of: 2, stream: true }, "best_of"],
    ["best_of over the slots", { best_of: 5 }, "best_of"],
    ["logprobs as a boolean", { logprobs: true }, "logprobs"],
    ["logprobs of 21", { logprobs: 21 }, "logprobs"],
    ["echo as a text", { echo: "yes" }, "echo"],
    ["suffix as a list", { suffix: [] }, "suffix"],
  ])("%s of a text completion", (_, more, field) =>
    expectRefusal(JSON.stringify({ model: "fake", prompt: "hi", ...more }), field, "/v1/completions"),
  )
})

describe("histories", () => {
  it.each<readonly [string, ReadonlyArray<object>, string]>([
    ["a result without an id", [{ role: "tool", content: "x" }], "messages[1].tool_call_id"],
    [
      "a result without its call",
      [{ role: "tool", tool_call_id: "c", content: "x" }],
      "messages[1].tool_call_id",
    ],
    [
      "a result before its call",
      [{ role: "tool", tool_call_id: "c", content: "x" }, assistant(call("c"))],
      "messages[1].tool_call_id",
    ],
    ["a function's result without a name", [{ role: "function", content: "x" }], "messages[1].name"],
    [
      "a function's result without its call",
      [{ role: "function", name: "f", content: "x" }],
      "messages[1].name",
    ],
    [
      "arguments that are no JSON",
      [assistant(call("c", "{a:1}"))],
      "messages[1].tool_calls[0].function.arguments",
    ],
    [
      "arguments that are a list",
      [assistant(call("c", "[1]"))],
      "messages[1].tool_calls[0].function.arguments",
    ],
    [
      "arguments that are an object",
      [assistant(call("c", {}))],
      "messages[1].tool_calls[0].function.arguments",
    ],
    [
      "arguments of 10,000 levels",
      [assistant(call("c", `${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`))],
      "messages[1].tool_calls[0].function.arguments",
    ],
    [
      "arguments of a megabyte",
      [assistant(call("c", JSON.stringify({ a: "x".repeat(1_000_000) })))],
      "messages[1].tool_calls[0].function.arguments",
    ],
    [
      "a call without an id",
      [assistant({ function: { name: "f", arguments: "{}" } })],
      "messages[1].tool_calls[0].id",
    ],
    [
      "a function_call that is no JSON",
      [{ role: "assistant", content: null, function_call: { name: "f", arguments: "nope" } }],
      "messages[1].function_call.arguments",
    ],
    [
      "neither content nor calls",
      [{ role: "assistant", content: null, tool_calls: [] }],
      "messages[1].content",
    ],
    [
      "a result without content",
      [assistant(call("c")), { role: "tool", tool_call_id: "c" }],
      "messages[2].content",
    ],
  ])("%s", (_, more, field) => expectRefusal({ messages: [userSays("hi"), ...more] }, field))
})

it("nothing was charged, and nothing is held", async () => {
  await untilIdle(node)
  expect(await receiptsOf(node, "credit")).toEqual([])
})
