// The built-in chat model calls the right tool, with the right arguments, in everyday requests. Greedy decoding, so the answers
// are the same on every machine with the same instructions; one of ten may differ, because rounding differs between processors.
import { afterAll, beforeAll, expect, it } from "vitest"
import { toolRequests } from "../../../models/eval/ChatTools.ts"
import { llamaModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [llamaModel] })
})
afterAll(() => node.stop())

interface Answer {
  readonly choices: ReadonlyArray<{
    readonly finish_reason: string
    readonly message: {
      readonly content: string | null
      readonly tool_calls?: ReadonlyArray<{
        readonly function: { readonly name: string; readonly arguments: string }
      }>
    }
  }>
}

const everyday = toolRequests.requests.filter(({ group }) => group === "everyday")

it("calls what was asked for, and ends with tool_calls", async () => {
  const wrong: Array<string> = []
  for (const { calls, message, tools } of everyday) {
    const response = await node.post("/v1/chat/completions", {
      model: llamaModel.id,
      temperature: 0,
      max_tokens: 120,
      messages: [{ role: "user", content: message }],
      tools: tools.map((name) => ({
        type: "function",
        function: toolRequests.tools.find((tool) => tool.name === name),
      })),
    })
    expect(response.status).toBe(200)
    const { choices } = (await response.json()) as Answer
    const called = (choices[0]!.message.tool_calls ?? []).map((call) => ({
      name: call.function.name,
      arguments: JSON.parse(call.function.arguments),
    }))
    expect(choices[0]!.finish_reason).toBe(called.length > 0 ? "tool_calls" : "stop")
    if (JSON.stringify(called) !== JSON.stringify(calls)) wrong.push(`${message} → ${JSON.stringify(called)}`)
  }
  expect(everyday.length).toBe(10)
  expect(wrong.length, wrong.join("\n")).toBeLessThanOrEqual(1)
})
