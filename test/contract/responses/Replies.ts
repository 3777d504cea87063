// Requests to POST /v1/responses of a node with the fake engine, and the parts of its replies that tests compare.
import { expect } from "vitest"
import { type ResponseReply, responseEvents } from "../../support/clients/ResponseEvents.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import type { TestNode } from "../../support/nodes/TestNode.ts"

export const path = "/v1/responses"
export const body = (steps: object, more: object = {}) => ({
  model: "fake",
  input: script({ ...steps }),
  ...more,
})

export const whole = async (node: TestNode, steps: object, more: object = {}) => {
  const response = await node.post(path, body(steps, more))
  const text = await response.text()
  expect([response.status, text]).toEqual([200, expect.any(String)])
  return JSON.parse(text) as ResponseReply
}

export const stream = async (node: TestNode, steps: object, more: object = {}) => {
  const response = await node.post(path, { ...body(steps, more), stream: true })
  return responseEvents(await response.text())
}

export const id = (prefix: string) => expect.stringMatching(new RegExp(`^${prefix}_[0-9a-f]{24}$`))
export const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
export const weather = {
  type: "function",
  name: "get_weather",
  description: "Weather",
  parameters,
  strict: true,
}
export const lamp = { type: "function", name: "lamp" }
export const rome = { name: "get_weather", arguments: { city: "Rome" } }
export const usage = (input: number, output: number, { cached = 0, reasoning = 0 } = {}) => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: cached },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: reasoning },
  total_tokens: input + output,
})
export const message = (text: string, status = "completed") => ({
  id: id("msg"),
  type: "message",
  status,
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
})
export const call = (name: string, text: string, status = "completed") => ({
  id: id("fc"),
  type: "function_call",
  status,
  call_id: id("call"),
  name,
  arguments: text,
})
export const echo = {
  background: false,
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  service_tier: "default",
  store: false,
  temperature: 0.7,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  top_logprobs: 0,
  top_p: 0.9,
  truncation: "disabled",
  user: null,
}
