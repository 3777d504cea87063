// Stock clients and the built-in weights, which know no tools: the choice of each call is forced, so that what is tested is
// the way of real calls through template, grammar and parser. Cities come from an enumeration, so every call succeeds.
import { createOpenAI } from "@ai-sdk/openai"
import { type AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages"
import { ChatOpenAI } from "@langchain/openai"
import { generateText, isStepCount, tool } from "ai"
import { tool as langchainTool } from "langchain"
import OpenAI from "openai"
import { zodFunction } from "openai/helpers/zod"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import { z } from "zod"
import { made, tools } from "../../support/clients/AgentTask.ts"
import { llamaModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

const place = z.object({ city: z.enum(["Rome", "Oslo"]) })
const lamp = z.object({ place: z.enum(["kitchen", "hall"]), on: z.boolean() })
const names = ["get_time", "get_weather", "set_lamp", "get_time"] as const
const question = "What time is it, and how is the weather? Switch a lamp."

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [llamaModel] })
})
afterAll(() => node.stop())

beforeEach(() => {
  made.length = 0
})

/** Each call was of the demanded tool, with arguments that its schema accepts. */
const expectFourCalls = (): void => {
  const city = /^(?:time|weather) (?:Rome|Oslo)$/
  const switched = /^lamp (?:kitchen|hall) (?:true|false)$/
  expect(made.map((call) => call.split(" ")[0])).toEqual(["time", "weather", "lamp", "time"])
  for (const call of made) expect(call).toMatch(call.startsWith("lamp") ? switched : city)
}

it("OpenAI's client makes four forced calls, and an answer after them", async () => {
  const openai = new OpenAI({ apiKey: node.keys.dev, baseURL: `${node.base}/v1`, maxRetries: 0 })
  const runnable = [
    zodFunction({ name: "get_time", parameters: place, function: tools.get_time }),
    zodFunction({ name: "get_weather", parameters: place, function: tools.get_weather }),
    zodFunction({ name: "set_lamp", parameters: lamp, function: tools.set_lamp }),
  ]
  let messages: Array<OpenAI.ChatCompletionMessageParam> = [{ role: "user", content: question }]
  for (const name of names) {
    // With a demanded name the runner makes one call and stops.
    const runner = openai.chat.completions.runTools({
      model: "llama",
      messages,
      tools: runnable,
      tool_choice: { type: "function", function: { name } },
    })
    await runner.done()
    messages = runner.messages
  }
  expectFourCalls()
  const answer = await openai.chat.completions.create({ model: "llama", messages, max_tokens: 8 })
  expect(answer.choices[0]?.message.tool_calls).toBeUndefined()
  expect(answer.choices[0]?.message.content).not.toContain("tool_call")
})

it("Vercel's AI SDK makes four forced calls, and an answer after them", async () => {
  const provider = createOpenAI({ apiKey: node.keys.dev, baseURL: `${node.base}/v1` })
  const { steps } = await generateText({
    model: provider.chat("llama"),
    tools: {
      get_time: tool({ inputSchema: place, execute: tools.get_time }),
      get_weather: tool({ inputSchema: place, execute: tools.get_weather }),
      set_lamp: tool({ inputSchema: lamp, execute: tools.set_lamp }),
    },
    prompt: question,
    maxOutputTokens: 150,
    stopWhen: isStepCount(5),
    prepareStep: ({ stepNumber }) => {
      const toolName = names[stepNumber]
      return { toolChoice: toolName === undefined ? "none" : { type: "tool", toolName } }
    },
  })
  expect(steps.map(({ toolCalls }) => toolCalls.length)).toEqual([1, 1, 1, 1, 0])
  expectFourCalls()
})

it("LangChain.js makes four forced calls, and an answer after them", async () => {
  const kit = {
    get_time: langchainTool(tools.get_time, {
      name: "get_time",
      description: "Time of a city",
      schema: place,
    }),
    get_weather: langchainTool(tools.get_weather, {
      name: "get_weather",
      description: "Weather of a city",
      schema: place,
    }),
    set_lamp: langchainTool(tools.set_lamp, { name: "set_lamp", description: "A lamp", schema: lamp }),
  }
  const model = new ChatOpenAI({
    model: "llama",
    apiKey: node.keys.dev,
    configuration: { baseURL: `${node.base}/v1` },
    maxRetries: 0,
    maxTokens: 150,
  })
  const messages: Array<HumanMessage | AIMessage | ToolMessage> = [new HumanMessage(question)]
  for (const name of names) {
    const reply = await model.bindTools(Object.values(kit), { tool_choice: name }).invoke(messages)
    messages.push(reply)
    for (const call of reply.tool_calls ?? []) {
      const content = String(await kit[name].func(call.args as never))
      messages.push(new ToolMessage({ content, tool_call_id: call.id ?? "" }))
    }
  }
  expectFourCalls()
  const answer = await model.invoke(messages)
  expect(answer.tool_calls).toEqual([])
})
