// Stock clients, unmodified, over the Responses API: OpenAI's client, Vercel's AI SDK with its default model, and LangChain.js.
// The fake engine plays the model by a script in the user's message.
import { createOpenAI } from "@ai-sdk/openai"
import { ChatOpenAI } from "@langchain/openai"
import { generateText, isStepCount, Output, streamText, tool } from "ai"
import { createAgent, tool as langchainTool } from "langchain"
import OpenAI from "openai"
import { zodResponsesFunction, zodTextFormat } from "openai/helpers/zod"
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
const city = (name: string, city: string) => ({ name, arguments: { city } })
const shown = `And now the weather.${final}`

const person = z.object({ name: z.string(), age: z.number().int() })
const ada = { name: "Ada", age: 36 }
const typed = script({ tokens: 1, text: JSON.stringify(ada) })
const thinking = script({ reasoning: ["Hm, ", "so."], tokens: 1, text: "Yes." })

describe("OpenAI's client", () => {
  const functions = [
    zodResponsesFunction({ name: "get_time", parameters: place }),
    zodResponsesFunction({ name: "get_weather", parameters: place }),
    zodResponsesFunction({ name: "set_lamp", parameters: lamp }),
  ]

  const run = (name: string, args: unknown): string => {
    if (name === "set_lamp") return tools.set_lamp(lamp.parse(args))
    return (name === "get_time" ? tools.get_time : tools.get_weather)(place.parse(args))
  }

  it("sends the output back item by item until the task is done", async () => {
    const input: Array<OpenAI.Responses.ResponseInputItem> = [{ role: "user", content: task }]
    let reply = await openai.responses.create({ model: "fake", input, tools: functions })
    let text = reply.output_text
    for (let step = 0; step < 4 && reply.output.some(({ type }) => type === "function_call"); step++) {
      for (const item of reply.output) {
        if (item.type !== "message" && item.type !== "function_call") continue
        input.push(item)
        if (item.type !== "function_call") continue
        const output = run(item.name, JSON.parse(item.arguments))
        input.push({ type: "function_call_output", call_id: item.call_id, output })
      }
      reply = await openai.responses.create({ model: "fake", input, tools: functions })
      text += reply.output_text
    }
    expect(text).toBe(shown)
    expect(made).toEqual(expected)
  })

  it("accumulates a stream to the final response, with parsed arguments", async () => {
    const input = script({ tokens: 2, text: "So. ", calls: [city("get_time", "Rome")] })
    const stream = openai.responses.stream({ model: "fake", input, tools: functions })
    let text = ""
    let args = ""
    stream.on("response.output_text.delta", ({ delta, snapshot }) => {
      text += delta
      expect(snapshot).toBe(text)
    })
    stream.on("response.function_call_arguments.delta", ({ delta, snapshot }) => {
      args += delta
      expect(snapshot).toBe(args)
    })
    const reply = await stream.finalResponse()
    expect([reply.status, reply.output_text, text]).toEqual(["completed", "So. So. ", "So. So. "])
    expect(reply.output).toMatchObject([
      { type: "message" },
      { type: "function_call", name: "get_time", parsed_arguments: { city: "Rome" } },
    ])
    expect(JSON.parse(args)).toEqual({ city: "Rome" })
    expect(reply.usage?.output_tokens).toBeGreaterThan(2)
  })

  it.each([{ effort: "low" as const }, { effort: "low" as const, summary: "auto" as const }])(
    "accumulates thoughts with %j",
    async (reasoning) => {
      const body = { model: "fake", input: thinking, reasoning }
      const streamed = await openai.responses.stream(body).finalResponse()
      const whole = await openai.responses.create(body)
      for (const { output, output_text, usage } of [streamed, whole]) {
        expect(output_text).toBe("Yes.")
        const part = { text: "Hm, so." }
        expect(output[0]).toMatchObject("summary" in reasoning ? { summary: [part] } : { content: [part] })
        expect(usage?.output_tokens_details.reasoning_tokens).toBe(2)
      }
    },
  )

  it("parses a typed answer, whole and streamed", async () => {
    const body = { model: "fake", input: typed, text: { format: zodTextFormat(person, "person") } }
    expect((await openai.responses.parse(body)).output_parsed).toEqual(ada)
    expect((await openai.responses.stream(body).finalResponse()).output_parsed).toEqual(ada)
  })

  it("reads an answer that was cut as one that was cut", async () => {
    const body = { model: "fake", input: script({ tokens: 9 }), max_output_tokens: 2 }
    for (const reply of [
      await openai.responses.create(body),
      await openai.responses.stream(body).finalResponse(),
    ]) {
      expect([reply.status, reply.incomplete_details?.reason]).toEqual(["incomplete", "max_output_tokens"])
    }
  })

  it("throws where a stream fails, and where something is refused", async () => {
    const body = { model: "fake", input: script({ tokens: 5, failAt: 2 }) }
    await expect(openai.responses.stream(body).finalResponse()).rejects.toBeInstanceOf(OpenAI.APIError)
    const background = openai.responses.create({ ...body, background: true })
    await expect(background).rejects.toMatchObject({ status: 400 })
  })
})

describe("Vercel's AI SDK", () => {
  const model = () => createOpenAI({ apiKey: node.keys.dev, baseURL: `${node.base}/v1` })("fake")
  const kit = {
    get_time: tool({ inputSchema: place, execute: tools.get_time }),
    get_weather: tool({ inputSchema: place, execute: tools.get_weather }),
    set_lamp: tool({ inputSchema: lamp, execute: tools.set_lamp }),
  }
  // Without it the SDK refers to earlier texts by their ids instead of sending them.
  const stateless = { openai: { store: false } }

  it("generates a text in several steps", async () => {
    const { steps, text } = await generateText({
      model: model(),
      tools: kit,
      prompt: task,
      stopWhen: isStepCount(6),
      providerOptions: stateless,
    })
    expect(text).toBe(final)
    expect(steps.length).toBe(4)
    expect(made).toEqual(expected)
  })

  it("streams a task of several steps", async () => {
    const result = streamText({
      model: model(),
      tools: kit,
      prompt: task,
      stopWhen: isStepCount(6),
      providerOptions: stateless,
    })
    let text = ""
    for await (const piece of result.textStream) text += piece
    expect(text).toBe(shown)
    expect(made).toEqual(expected)
    const finishes = (await result.steps).map(({ finishReason }) => finishReason)
    expect(finishes).toEqual(["tool-calls", "tool-calls", "tool-calls", "stop"])
  })

  it("works without that option while no step has both text and calls", async () => {
    const steps = [{ calls: [city("get_time", "Rome")] }, { tokens: 1, text: final }]
    const prompt = script({ steps })
    const { text } = await generateText({ model: model(), tools: kit, prompt, stopWhen: isStepCount(3) })
    expect([text, made]).toEqual([final, ["time Rome"]])
  })

  it("is told what to do where it refers to a stored item", async () => {
    const result = generateText({ model: model(), tools: kit, prompt: task, stopWhen: isStepCount(6) })
    await expect(result).rejects.toMatchObject({
      responseBody: expect.stringMatching(/input\[\d+\]\.type: refers to a stored item/),
    })
  })

  it("generates a typed output", async () => {
    const output = Output.object({ schema: person })
    expect((await generateText({ model: model(), output, prompt: typed })).output).toEqual(ada)
  })

  it("gets the thoughts where it asks for a summary", async () => {
    const openai = { reasoningEffort: "low", reasoningSummary: "auto", forceReasoning: true, store: false }
    const result = streamText({ model: model(), prompt: thinking, providerOptions: { openai } })
    expect(await result.text).toBe("Yes.")
    expect(await result.reasoningText).toBe("Hm, so.")
  })
})

describe("LangChain.js", () => {
  const model = () =>
    new ChatOpenAI({
      model: "fake",
      apiKey: node.keys.dev,
      configuration: { baseURL: `${node.base}/v1` },
      maxRetries: 0,
      useResponsesApi: true,
    })
  const kit = [
    langchainTool(tools.get_time, { name: "get_time", description: "Time", schema: place }),
    langchainTool(tools.get_weather, { name: "get_weather", description: "Weather", schema: place }),
    langchainTool(tools.set_lamp, { name: "set_lamp", description: "Lamp", schema: lamp }),
  ]
  const input = { messages: [{ role: "user" as const, content: task }] }

  it("an agent completes the task", async () => {
    const { messages } = await createAgent({ model: model(), tools: kit }).invoke(input)
    expect(messages.at(-1)?.text).toBe(final)
    expect(made.toSorted()).toEqual(expected.toSorted())
  })

  it("an agent completes the task over streams", async () => {
    let pieces = ""
    const agent = createAgent({ model: model(), tools: kit })
    for await (const [message] of await agent.stream(input, { streamMode: "messages" })) {
      if (message.type === "ai") pieces += message.text
    }
    expect(pieces).toBe(shown)
    expect(made.toSorted()).toEqual(expected.toSorted())
  })

  it("gets a typed answer", async () => {
    const typedModel = model().withStructuredOutput(person, { name: "person", method: "jsonSchema" })
    expect(await typedModel.invoke(typed)).toEqual(ada)
  })
})
