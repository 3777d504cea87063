// Stock clients, unmodified, with tools, typed answers and several steps: OpenAI's client, Vercel's AI SDK and LangChain.js.
// The fake engine plays the model by a script in the user's message.
import { createOpenAI } from "@ai-sdk/openai"
import { ChatOpenAI } from "@langchain/openai"
import { generateObject, generateText, isStepCount, Output, streamText, tool } from "ai"
import { createAgent, tool as langchainTool } from "langchain"
import OpenAI from "openai"
import { LengthFinishReasonError } from "openai/core/error"
import { zodFunction, zodResponseFormat } from "openai/helpers/zod"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { z } from "zod"
import { expected, final, lamp, made, place, task, tools } from "../../support/clients/AgentTask.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
let openai: OpenAI
beforeAll(async () => {
  node = await startNode({ models: [fakeModel] })
  openai = new OpenAI({ apiKey: node.keys.dev, baseURL: `${node.base}/v1`, maxRetries: 0 })
})
afterAll(() => node.stop())

beforeEach(() => {
  made.length = 0
})

const person = z.object({ name: z.string(), age: z.number().int(), tags: z.array(z.enum(["a", "b"])) })
const ada = { name: "Ada", age: 36, tags: ["b"] as const }
const typed = script({ tokens: 1, text: JSON.stringify(ada) })

describe("OpenAI's client", () => {
  const runnable = [
    zodFunction({ name: "get_time", parameters: place, function: tools.get_time }),
    zodFunction({ name: "get_weather", parameters: place, function: tools.get_weather }),
    zodFunction({ name: "set_lamp", parameters: lamp, function: tools.set_lamp }),
  ]
  const messages = [{ role: "user" as const, content: task }]

  it("runs the tools", async () => {
    const runner = openai.chat.completions.runTools({ model: "fake", messages, tools: runnable })
    expect(await runner.finalContent()).toBe(final)
    expect(made).toEqual(expected)
  })

  it("runs the tools over streams, with usage", async () => {
    const runner = openai.chat.completions.runTools({
      model: "fake",
      messages,
      tools: runnable,
      stream: true,
      stream_options: { include_usage: true },
    })
    let shown = ""
    runner.on("content", (text) => {
      shown += text
    })
    expect(await runner.finalContent()).toBe(final)
    expect(shown).toBe(`And now the weather.${final}`)
    expect(made).toEqual(expected)
    expect((await runner.totalUsage()).completion_tokens).toBeGreaterThan(20)
  })

  it("parses a typed answer", async () => {
    const reply = await openai.chat.completions.parse({
      model: "fake",
      messages: [{ role: "user", content: typed }],
      response_format: zodResponseFormat(person, "person"),
    })
    expect(reply.choices[0]?.message.parsed).toEqual(ada)
  })

  it("reads an answer that was cut as one that was cut", async () => {
    const reply = openai.chat.completions.parse({
      model: "fake",
      messages: [{ role: "user", content: script({ tokens: 9, text: '{"name":' }) }],
      response_format: zodResponseFormat(person, "person"),
      max_tokens: 2,
    })
    await expect(reply).rejects.toBeInstanceOf(LengthFinishReasonError)
  })

  it("collects streamed calls, and tells when the arguments of each are whole", async () => {
    const calls = [
      { name: "get_time", arguments: { city: "Rome" } },
      { name: "set_lamp", arguments: { place: "hall", on: false } },
    ]
    const stream = openai.chat.completions.stream({
      model: "fake",
      messages: [{ role: "user", content: script({ tokens: 1, text: "So.", calls }) }],
      tools: runnable.map(({ function: { name, parameters }, type }) => ({
        type,
        function: { name, parameters: parameters ?? {} },
      })),
    })
    const done: Array<unknown> = []
    let deltas = 0
    stream.on("tool_calls.function.arguments.delta", () => void deltas++)
    stream.on(
      "tool_calls.function.arguments.done",
      ({ arguments: text, index, name }) => void done.push({ index, name, arguments: JSON.parse(text) }),
    )
    const completion = await stream.finalChatCompletion()
    expect(done).toEqual(calls.map((call, index) => ({ index, ...call })))
    expect(deltas).toBeGreaterThan(4)
    expect(completion.choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: { content: "So.", tool_calls: calls.map(({ name }) => ({ function: { name } })) },
    })
  })

  it("gets several replies with log probabilities, streamed and whole", async () => {
    const body = {
      model: "fake",
      messages: [{ role: "user" as const, content: script({ tokens: 2, text: ["x", "y"] }) }],
      n: 2,
      logprobs: true,
      top_logprobs: 3,
    }
    const whole = await openai.chat.completions.create(body)
    const streamed = await openai.chat.completions.stream(body).finalChatCompletion()
    for (const { choices } of [whole, streamed]) {
      expect(choices.map(({ message }) => message.content)).toEqual(["xy", "xy"])
      for (const { logprobs } of choices) {
        expect(logprobs?.content?.map(({ token, top_logprobs }) => [token, top_logprobs.length])).toEqual([
          ["x", 3],
          ["y", 3],
        ])
      }
    }
  })
})

describe("Vercel's AI SDK", () => {
  const model = () => createOpenAI({ apiKey: node.keys.dev, baseURL: `${node.base}/v1` }).chat("fake")
  const kit = {
    get_time: tool({ inputSchema: place, execute: tools.get_time }),
    get_weather: tool({ inputSchema: place, execute: tools.get_weather }),
    set_lamp: tool({ inputSchema: lamp, execute: tools.set_lamp }),
  }

  it("generates an object", async () => {
    const { object } = await generateObject({ model: model(), schema: person, prompt: typed })
    expect(object).toEqual(ada)
  })

  it("generates a text with a typed output", async () => {
    const { output } = await generateText({
      model: model(),
      output: Output.object({ schema: person }),
      prompt: typed,
    })
    expect(output).toEqual(ada)
  })

  it("streams a task of several steps", async () => {
    const result = streamText({ model: model(), tools: kit, prompt: task, stopWhen: isStepCount(6) })
    let shown = ""
    for await (const text of result.textStream) shown += text
    expect(shown).toBe(`And now the weather.${final}`)
    expect(made).toEqual(expected)
    const steps = await result.steps
    expect(steps.map(({ finishReason }) => finishReason)).toEqual([
      "tool-calls",
      "tool-calls",
      "tool-calls",
      "stop",
    ])
  })
})

describe("LangChain.js", () => {
  const model = () =>
    new ChatOpenAI({
      model: "fake",
      apiKey: node.keys.dev,
      configuration: { baseURL: `${node.base}/v1` },
      maxRetries: 0,
    })
  const kit = [
    langchainTool(tools.get_time, { name: "get_time", description: "Time of a city", schema: place }),
    langchainTool(tools.get_weather, {
      name: "get_weather",
      description: "Weather of a city",
      schema: place,
    }),
    langchainTool(tools.set_lamp, { name: "set_lamp", description: "Switches a lamp", schema: lamp }),
  ]

  const agentOf = () => createAgent({ model: model(), tools: kit, systemPrompt: "Use the tools." })
  const input = { messages: [{ role: "user" as const, content: task }] }

  it("an agent completes a task of four calls", async () => {
    const { messages } = await agentOf().invoke(input)
    expect(messages.at(-1)?.content).toBe(final)
    expect(made.toSorted()).toEqual(expected.toSorted())
  })

  // Not `streaming: true`: with it the client counts tokens with tables that it fetches from the internet.
  it("an agent completes the task over streams", async () => {
    let pieces = ""
    for await (const [message] of await agentOf().stream(input, { streamMode: "messages" })) {
      if (message.type === "ai") pieces += message.text
    }
    expect(pieces).toBe(`And now the weather.${final}`)
    expect(made.toSorted()).toEqual(expected.toSorted())
  })

  it("gets a typed answer", async () => {
    const typedModel = model().withStructuredOutput(person, { name: "person", method: "jsonSchema" })
    expect(await typedModel.invoke(typed)).toEqual(ada)
  })

  it("gets a typed answer through a call that is demanded", async () => {
    const called = script({ calls: [{ name: "person", arguments: ada }] })
    const typedModel = model().withStructuredOutput(person, { name: "person", method: "functionCalling" })
    expect(await typedModel.invoke(called)).toEqual(ada)
  })
})
