// The input of POST /v1/responses: which prompts its items become, and which items and fields are refused under which name
// (protocol 7.12). The replies of a refused request cost nothing and start nothing.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { script } from "../../support/nodes/FakeNode.ts"
import { orgWith, receiptsOf } from "../../support/nodes/Ledger.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"
import { path } from "./Replies.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [fakeModel] })
})
afterAll(() => node.stop())

const refused = async (request: object, key?: string): Promise<readonly [number, unknown]> => {
  const response = await node.post(
    path,
    { model: "fake", input: "Hello", ...request },
    key === undefined ? {} : { key },
  )
  const { detail } = (await response.json()) as { detail?: unknown }
  return [response.status, detail]
}
const item = (value: object) => ({ input: [value] })
const user = { role: "user", content: "x" }
const call = { type: "function_call", call_id: "c", name: "f", arguments: "{}" }

describe("a refusal names", () => {
  it.each<readonly [object, string]>([
    [{ input: undefined }, "input: is required"],
    [{ input: [] }, "input: must not be empty"],
    [{ input: 1 }, "input: must be a text or a list of items"],
    [item({ type: "message", content: "x" }), "input[0].role: is required"],
    [item({ role: "user" }), "input[0].content: is required"],
    [item({ role: "tool", content: "x" }), "input[0].role: must be user, assistant, system or developer"],
    [{ input: [user, { role: "user", content: 1 }] }, "input[1].content: must be a text or a list of parts"],
    [item({ role: "user", content: [{ text: "x" }] }), "input[0].content[0].type: is required"],
    [item({ role: "user", content: [{ type: "input_text" }] }), "input[0].content[0].text: is required"],
    [
      {
        instructions: "i",
        input: [user, { role: "user", content: [{ type: "input_image", image_url: "u" }] }],
      },
      "input[1].content[0]: only text is supported by fake",
    ],
    [
      item({ type: "item_reference", id: "msg_1" }),
      "input[0].type: refers to a stored item and nothing is stored",
    ],
    [item({ type: "web_search_call" }), "input[0].type: must be message, function_call"],
    [item({ ...call, call_id: "" }), "input[0].call_id: is required"],
    [item({ ...call, name: undefined }), "input[0].name: is required"],
    [item({ ...call, name: "a b" }), "input[0].name: must be 1 to 64 letters"],
    [item({ ...call, arguments: undefined }), "input[0].arguments: is required"],
    [
      { instructions: "i", input: [user, call, { ...call, arguments: "[1]" }] },
      "input[2].arguments: must be the JSON text of an object",
    ],
    [
      { input: [user, { type: "function_call_output", call_id: "c", output: "x" }] },
      "input[1].call_id: no earlier message has a call of this id",
    ],
    [{ input: [user, call, { type: "function_call_output", call_id: "c" }] }, "input[2].output: is required"],
    [
      { input: [call, { type: "function_call_output", call_id: "c", output: [{ type: "input_file" }] }] },
      "input[1].output[0]: only text is supported by fake",
    ],
    [{ tools: [{ type: "function", name: "f" }, { type: "web_search" }] }, "tools[1].type: must be function"],
    [
      {
        tools: [
          { type: "function", name: "f" },
          { type: "function", name: "f" },
        ],
      },
      "tools[1].name: is the name of an",
    ],
    [
      { tools: [{ type: "function", name: "f", parameters: { a: "x".repeat(300_000) } }] },
      "tools[0].parameters: must be at most 262144 bytes of JSON",
    ],
    [
      { tools: [{ type: "function", name: "f" }], tool_choice: { type: "function", name: "g" } },
      "tool_choice.name: no tool of the request has this name",
    ],
    [
      {
        tools: [{ type: "function", name: "f" }],
        tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "g" }] },
      },
      "tool_choice.tools[0].name: no tool of the request has this name",
    ],
    [{ tool_choice: { type: "web_search" } }, "tool_choice: must be auto, none, required, a function"],
    [{ text: { format: { type: "xml" } } }, "text.format.type: must be text, json_object or json_schema"],
    [{ text: { format: { type: "json_schema", name: "p" } } }, "text.format.schema: is required"],
    [{ reasoning: { effort: "huge" } }, "reasoning.effort: must be one of none"],
    [{ reasoning: { summary: "long" } }, "reasoning.summary: must be auto, concise or detailed"],
    [{ max_output_tokens: 0 }, "max_output_tokens: must be between 1 and 4096"],
    [{ temperature: 3 }, "temperature: must be between 0 and 2"],
    [{ top_logprobs: 21 }, "top_logprobs: must be between 0 and 20"],
    [{ metadata: { a: 1 } }, "metadata: must have texts of at most 512 characters as values"],
    [
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [at, ""])) },
      "metadata: must have at most 16",
    ],
    [{ truncation: "some" }, "truncation: must be auto or disabled"],
    [{ previous_response_id: "resp_1" }, "previous_response_id: must be absent: nothing is stored"],
    [{ conversation: { id: "conv_1" } }, "conversation: must be absent: nothing is stored"],
    [{ prompt: { id: "pmpt_1" } }, "prompt: must be absent: nothing is stored"],
    [{ background: true }, "background: must be false: nothing is stored"],
  ])("%j", async (request, detail) => {
    expect(await refused(request)).toEqual([400, expect.stringContaining(detail)])
  })

  it("a schema that the engine refuses, by its place", async () => {
    const refuses = (field: string) => script({ refuses: { field, detail: "is unknown" } })
    const tools = [{ type: "function", name: "f", parameters: { type: "object" } }]
    expect(await refused({ input: refuses("tools[0].properties.a"), tools })).toEqual([
      400,
      "tools[0].parameters.properties.a: is unknown",
    ])
    const text = { format: { type: "json_schema", name: "p", schema: {} } }
    expect(await refused({ input: refuses("format.anyOf[1]"), text })).toEqual([
      400,
      "text.format.schema.anyOf[1]: is unknown",
    ])
  })

  it("a prompt that is too long", async () => {
    const [status, detail] = await refused({ input: `${"word ".repeat(10_000)}` })
    expect([status, detail]).toEqual([400, expect.stringMatching(/^input: \d+ prompt tokens do not fit/)])
  })

  it("a model that is not a text model, and one that is not there", async () => {
    expect(await refused({ model: "none" })).toEqual([404, "Model not loaded"])
    expect(await refused({ model: "" })).toEqual([400, expect.stringContaining("model: ")])
  })

  it("nothing that costs: no receipt is written", async () => {
    const key = await orgWith(node, "refused", 1_000_000)
    await refused({ background: true }, key)
    await refused({ input: [call, { type: "function_call_output", call_id: "d", output: "" }] }, key)
    expect(await receiptsOf(node, "refused")).toEqual([])
  })
})

describe("fields that need what this node does not have", () => {
  it("may be there with the value that says so", async () => {
    const none = { previous_response_id: null, conversation: null, prompt: null, background: false }
    const response = await node.post(path, { model: "fake", input: "x", ...none, store: true, tools: null })
    expect(response.status).toBe(200)
  })
})
