// POST /v1/chat/completions, byte by byte (protocol 7.2 and 7.3): whole and streamed records, and how they end.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parseEventStream } from "../../support/clients/EventStream.ts"
import { headerOf, jsonOf, rawRequest, requestBytes } from "../../support/clients/RawHttp.ts"
import { fingerprint, usage } from "../../support/clients/TextRecords.ts"
import { textOf } from "../../support/clients/TextStream.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { fakeModel, llamaModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  const small = { ...fakeModel, id: "small", options: { contextTokens: 8 } }
  node = await startNode({ models: [fakeModel, small, llamaModel] })
})
afterAll(() => node.stop())

const path = "/v1/chat/completions"
const raw = (body: object) =>
  rawRequest(
    node.port,
    requestBytes(
      "POST",
      path,
      { authorization: `Bearer ${node.keys.dev}`, "content-type": "application/json" },
      JSON.stringify(body),
    ),
  )
const fake = (steps: Readonly<Record<string, unknown>>, more: object = {}) => ({
  model: "fake",
  messages: [{ role: "user", content: script(steps) }],
  ...more,
})
const italy = (more: object = {}) => ({
  model: "llama",
  temperature: 0,
  messages: [{ role: "user", content: "What is the capital of Italy?" }],
  ...more,
})
const unixSeconds = (): number => Math.floor(Date.now() / 1000)

describe("the whole record", () => {
  it("has exactly the fields of protocol 7.2", async () => {
    const before = unixSeconds()
    const response = await raw(fake({ tokens: 3, text: ["a", "b", "c"] }))
    expect(response.status).toBe(200)
    expect(headerOf(response, "content-type")).toMatch(/^application\/json/)
    expect(headerOf(response, "access-control-allow-origin")).toBe("*")
    const record = jsonOf(response) as Readonly<Record<string, unknown>>
    expect(record).toStrictEqual({
      id: expect.stringMatching(/^chatcmpl-[0-9a-f]{24}$/),
      object: "chat.completion",
      created: expect.any(Number),
      model: "fake",
      system_fingerprint: fingerprint,
      choices: [{ index: 0, message: { role: "assistant", content: "abc" }, finish_reason: "stop" }],
      usage: usage(1, 3),
    })
    expect(Number.isInteger(record.created)).toBe(true)
    expect(record.created).toBeGreaterThanOrEqual(before)
    expect(record.created).toBeLessThanOrEqual(unixSeconds())
  })

  it("has an id of its own each time", async () => {
    const records = await Promise.all(Array.from({ length: 8 }, () => raw(fake({ tokens: 1 }))))
    expect(new Set(records.map((record) => (jsonOf(record) as { id: string }).id)).size).toBe(8)
  })

  it("counts with the model's own tokenizer, and adds up", async () => {
    const { usage: first } = jsonOf(await raw(italy())) as { usage: Record<string, number> }
    expect(first).toMatchObject({ prompt_tokens: 16, completion_tokens: 9 })
    expect(first.total_tokens).toBe(first.prompt_tokens! + first.completion_tokens!)
    const longer = italy({ messages: [{ role: "user", content: "What is the capital of Italy? Italy?" }] })
    const { usage: more } = jsonOf(await raw(longer)) as { usage: Record<string, number> }
    expect(more.prompt_tokens).toBeGreaterThan(first.prompt_tokens!)
  })

  it("speaks to the model in the roles of the messages", async () => {
    const messages = [
      { role: "system", content: "Answer in one word." },
      { role: "user", content: "What is the capital of France?" },
    ]
    expect(jsonOf(await raw(italy({ messages })))).toMatchObject({
      choices: [{ message: { role: "assistant", content: "Paris." } }],
    })
    const talk = [
      { role: "user", content: "My name is Anna." },
      { role: "assistant", content: "Nice to meet you, Anna!" },
      { role: "user", content: "What is my name?" },
    ]
    expect(jsonOf(await raw(italy({ messages: talk })))).toMatchObject({
      choices: [{ message: { content: "Your name is Anna." } }],
    })
  })
})

describe("how much and why it ends", () => {
  const ending = async (body: object) => {
    const { choices, usage: used } = jsonOf(await raw(body)) as {
      choices: [{ message: { content: string }; finish_reason: string }]
      usage: { completion_tokens: number }
    }
    return [choices[0].message.content, choices[0].finish_reason, used.completion_tokens] as const
  }

  it("150 tokens by default, then length", async () => {
    expect(await ending(fake({ tokens: 500, text: "x" }))).toEqual(["x".repeat(150), "length", 150])
    expect(await ending(fake({ tokens: 150, text: "x" }))).toEqual(["x".repeat(150), "stop", 150])
  })

  it.each([1, 4096])("max_tokens %i", async (max_tokens) => {
    expect((await ending(fake({ tokens: 5000 }, { max_tokens }))).slice(1)).toEqual(["length", max_tokens])
  })

  it("max_completion_tokens is the other name, and null is absent", async () => {
    expect((await ending(fake({ tokens: 500 }, { max_completion_tokens: 7 }))).slice(1)).toEqual([
      "length",
      7,
    ])
    expect((await ending(fake({ tokens: 500 }, { max_tokens: null }))).slice(1)).toEqual(["length", 150])
  })

  it.each([
    ["a text", "Italy"],
    ["one of four", ["zzz", "qqq", " is", "Italy is"]],
    ["across tokens", ["capital of It"]],
  ])("stop as %s", async (_, stop) => {
    const [whole] = await ending(italy())
    const [text, reason] = await ending(italy({ stop }))
    expect(whole).toBe("The capital of Italy is Rome.")
    expect(reason).toBe("stop")
    const first = [stop]
      .flat()
      .map((each) => whole.indexOf(each))
      .filter((at) => at >= 0)
    expect(text).toBe(whole.slice(0, Math.min(...first)))
  })

  it("a stop that never comes changes nothing", async () => {
    expect(await ending(italy({ stop: ["never said"] }))).toEqual(await ending(italy()))
  })

  it("temperature 0 repeats itself, whatever the seed", async () => {
    const texts = await Promise.all([1, 2, 3].map(async (seed) => (await ending(italy({ seed })))[0]))
    expect(new Set(texts).size).toBe(1)
  })
})

describe("the stream", () => {
  it("is the events of protocol 7.3 and nothing else", async () => {
    const response = await raw(fake({ tokens: 3, text: ["a", "b\r\n\n", "ü🙂\u2028"] }, { stream: true }))
    expect(response.status).toBe(200)
    expect(headerOf(response, "content-type")).toMatch(/^text\/event-stream/)
    expect(headerOf(response, "cache-control")).toBe("no-cache")
    expect(headerOf(response, "access-control-allow-origin")).toBe("*")
    expect(response.complete).toBe(true)
    const events = parseEventStream(response.body.toString("utf8"))
    expect(events.pop()).toBe("[DONE]")
    const chunks = events.map((data) => JSON.parse(data) as Record<string, unknown>)
    const head = {
      id: expect.stringMatching(/^chatcmpl-[0-9a-f]{24}$/),
      object: "chat.completion.chunk",
      created: expect.any(Number),
      model: "fake",
    }
    const choice = (delta: object, finish_reason: string | null) => ({
      ...head,
      choices: [{ index: 0, delta, finish_reason }],
    })
    expect(chunks).toStrictEqual([
      choice({ role: "assistant", content: "a" }, null),
      choice({ content: "b\r\n\n" }, null),
      choice({ content: "ü🙂\u2028" }, null),
      { ...choice({}, "stop"), system_fingerprint: fingerprint },
    ])
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
    expect(new Set(chunks.map(({ created }) => created)).size).toBe(1)
  })

  it("has the same text as the whole record", async () => {
    const body = italy({ stop: [" Rome"], seed: 3 })
    const whole = jsonOf(await raw(body)) as { choices: [{ message: { content: string } }] }
    const events = parseEventStream((await raw({ ...body, stream: true })).body.toString("utf8"))
    expect(textOf(events)).toBe(whole.choices[0].message.content)
  })

  it("ends with length where the limit was reached", async () => {
    const response = await raw(fake({ tokens: 50 }, { stream: true, max_tokens: 5 }))
    const events = parseEventStream(response.body.toString("utf8"))
    expect(JSON.parse(events.at(-2)!)).toMatchObject({ choices: [{ delta: {}, finish_reason: "length" }] })
  })

  it("of an empty answer is its final chunk alone", async () => {
    const events = parseEventStream((await raw(fake({ tokens: 0 }, { stream: true }))).body.toString("utf8"))
    expect(events).toHaveLength(2)
    expect(JSON.parse(events[0]!)).toMatchObject({
      choices: [{ index: 0, delta: {}, finish_reason: "stop" }],
    })
    expect(events[1]).toBe("[DONE]")
  })

  it("carries usage where it was asked for, and only there", async () => {
    const stream = async (stream_options: object | null) =>
      parseEventStream(
        (await raw(fake({ tokens: 2 }, { stream: true, stream_options }))).body.toString("utf8"),
      )
    const withUsage = await stream({ include_usage: true })
    expect(JSON.parse(withUsage.at(-2)!)).toStrictEqual({
      id: expect.any(String),
      object: "chat.completion.chunk",
      created: expect.any(Number),
      model: "fake",
      choices: [],
      usage: usage(1, 2),
    })
    for (const options of [{ include_usage: false }, {}, null]) {
      const without = await stream(options)
      expect(without).toHaveLength(withUsage.length - 1)
      expect(without.join("")).not.toContain("usage")
    }
  })

  it("that fails midway sends one error event and closes without an end", async () => {
    const response = await raw(fake({ tokens: 9, failAt: 3 }, { stream: true }))
    expect(response.status).toBe(200)
    expect(response.complete).toBe(false)
    const events = parseEventStream(response.body.toString("utf8"))
    expect(events).toHaveLength(4)
    expect(textOf(events.slice(0, 3))).toBe(" token token token")
    expect(JSON.parse(events[3]!)).toStrictEqual({
      error: { message: "The model failed to produce an answer", type: "server_error" },
    })
  })
})

describe("a prompt over the context", () => {
  const tooLong = {
    model: "small",
    messages: [{ role: "user", content: "one two three four five six seven eight nine" }],
  }

  it.each([false, true])("is refused before anything is answered (stream: %s)", async (stream) => {
    const response = await raw({ ...tooLong, stream })
    expect(response.status).toBe(400)
    expect(jsonOf(response)).toEqual({
      detail: "messages: 9 prompt tokens do not fit the model's context of 8 tokens",
    })
  })

  it("of the real model names its tokenizer's count", async () => {
    const response = await raw(
      italy({ messages: [{ role: "user", content: "word ".repeat(4_100) }], stream: true }),
    )
    expect(response.status).toBe(400)
    const { detail } = jsonOf(response) as { detail: string }
    const [, prompt, context] = /^messages: (\d+) prompt tokens .* context of (\d+) tokens$/.exec(detail)!
    expect(Number(context)).toBe(2048)
    expect(Number(prompt)).toBeGreaterThan(4000)
  })
})
