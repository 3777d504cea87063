// POST /v1/completions, byte by byte (protocol 7.4): whole and streamed records, and how they end.
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

const raw = (body: object) =>
  rawRequest(
    node.port,
    requestBytes(
      "POST",
      "/v1/completions",
      { authorization: `Bearer ${node.keys.dev}`, "content-type": "application/json" },
      JSON.stringify(body),
    ),
  )
const fake = (steps: Readonly<Record<string, unknown>>, more: object = {}) => ({
  model: "fake",
  prompt: script(steps),
  ...more,
})

interface CompletionRecord {
  readonly choices: readonly [{ readonly text: string; readonly finish_reason: string }]
  readonly usage: {
    readonly prompt_tokens: number
    readonly completion_tokens: number
    readonly total_tokens: number
  }
}
const whole = async (body: object) => jsonOf(await raw(body)) as CompletionRecord
const events = async (body: object) =>
  parseEventStream((await raw({ ...body, stream: true })).body.toString("utf8"))

describe("the whole record", () => {
  it("has exactly the fields of protocol 7.4", async () => {
    const before = Math.floor(Date.now() / 1000)
    const response = await raw(fake({ tokens: 3, text: ["a", "b", "c"] }))
    expect(response.status).toBe(200)
    const record = jsonOf(response) as { readonly created: number }
    expect(record).toStrictEqual({
      id: expect.stringMatching(/^cmpl-[0-9a-f]{24}$/),
      object: "text_completion",
      created: expect.any(Number),
      model: "fake",
      system_fingerprint: fingerprint,
      choices: [{ text: "abc", index: 0, logprobs: null, finish_reason: "stop" }],
      usage: usage(1, 3),
    })
    expect(Number.isInteger(record.created)).toBe(true)
    expect(record.created).toBeGreaterThanOrEqual(before)
    expect(record.created).toBeLessThanOrEqual(Math.floor(Date.now() / 1000))
  })

  it("is 100 tokens long by default", async () => {
    const { choices, usage: used } = await whole(fake({ tokens: 500, text: "x" }))
    expect(choices[0]).toMatchObject({ text: "x".repeat(100), finish_reason: "length" })
    expect(used.completion_tokens).toBe(100)
  })

  it("continues the prompt as it stands, without a template", async () => {
    const { choices, usage: used } = await whole({
      model: "llama",
      prompt: "Once upon a time",
      temperature: 0,
      max_tokens: 6,
    })
    expect(choices[0].text).toMatch(/^ there was a/)
    expect(choices[0].finish_reason).toBe("length")
    expect(used).toMatchObject({ prompt_tokens: 4, completion_tokens: 6, total_tokens: 10 })
  })

  it("ends before a stop sequence, a text or a list", async () => {
    const body = { model: "llama", prompt: "Once upon a time", temperature: 0, max_tokens: 20 }
    const { choices } = await whole(body)
    const stop = choices[0].text.split(" ").at(4)!
    const expected = choices[0].text.slice(0, choices[0].text.indexOf(stop))
    for (const form of [stop, [stop], ["never", "ever", stop, "at all"]]) {
      expect((await whole({ ...body, stop: form })).choices[0]).toMatchObject({
        text: expected,
        finish_reason: "stop",
      })
    }
  })
})

describe("the stream", () => {
  it("is the chunks of protocol 7.4 and nothing else", async () => {
    const response = await raw(fake({ tokens: 2, text: ["a\n", "é"] }, { stream: true }))
    expect(response.status).toBe(200)
    expect(headerOf(response, "content-type")).toMatch(/^text\/event-stream/)
    expect(response.complete).toBe(true)
    const data = parseEventStream(response.body.toString("utf8"))
    expect(data.pop()).toBe("[DONE]")
    const chunk = (text: string, finish_reason: string | null) => ({
      id: expect.stringMatching(/^cmpl-[0-9a-f]{24}$/),
      object: "text_completion",
      created: expect.any(Number),
      model: "fake",
      choices: [{ text, index: 0, logprobs: null, finish_reason }],
    })
    const chunks = data.map((each) => JSON.parse(each) as { id: string })
    expect(chunks).toStrictEqual([
      chunk("a\n", null),
      chunk("é", null),
      { ...chunk("", "stop"), system_fingerprint: fingerprint },
    ])
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
  })

  it("has the same text as the whole record", async () => {
    const body = { model: "llama", prompt: "Once upon a time", seed: 5, temperature: 1, max_tokens: 40 }
    expect(textOf(await events(body))).toBe((await whole(body)).choices[0].text)
  })

  it("carries usage where it was asked for", async () => {
    const data = await events(fake({ tokens: 2 }, { stream_options: { include_usage: true } }))
    expect(JSON.parse(data.at(-2)!)).toStrictEqual({
      id: expect.any(String),
      object: "text_completion",
      created: expect.any(Number),
      model: "fake",
      choices: [],
      usage: usage(1, 2),
    })
    expect((await events(fake({ tokens: 2 }))).join("")).not.toContain("usage")
  })

  it("that fails midway sends one error event and closes without an end", async () => {
    const response = await raw(fake({ tokens: 9, failAt: 0 }, { stream: true }))
    expect(response.complete).toBe(false)
    const data = parseEventStream(response.body.toString("utf8"))
    expect(data.map((each) => JSON.parse(each))).toStrictEqual([
      { error: { message: "The model failed to produce an answer", type: "server_error" } },
    ])
  })

  it("is refused before it begins where the prompt does not fit", async () => {
    const response = await raw({ model: "small", prompt: "a b c d e f g h i j", stream: true })
    expect(response.status).toBe(400)
    expect(jsonOf(response)).toEqual({
      detail: "prompt: 10 prompt tokens do not fit the model's context of 8 tokens",
    })
  })
})

it("answers the requests of lm-evaluation-harness for log likelihoods", async () => {
  interface Choice {
    readonly index: number
    readonly text: string
    readonly logprobs: {
      readonly tokens: ReadonlyArray<string>
      readonly token_logprobs: ReadonlyArray<number | null>
      readonly top_logprobs: ReadonlyArray<Readonly<Record<string, number>> | null>
      readonly text_offset: ReadonlyArray<number>
    }
  }
  const ask = async (prompt: unknown, more: object = {}) => {
    const form = { model: "llama", temperature: 0, max_tokens: 1, logprobs: 1, seed: 1234, echo: true }
    const response = await node.post("/v1/completions", { ...form, prompt, ...more })
    expect(response.status).toBe(200)
    const body = (await response.json()) as {
      readonly choices: ReadonlyArray<Choice>
      readonly usage: {
        readonly prompt_tokens: number
        readonly prompt_tokens_details: { readonly cached_tokens: number }
      }
    }
    return { ...body, choices: [...body.choices].sort((a, b) => a.index - b.index) }
  }
  const ids = [
    Array.from({ length: 30 }, (_, at) => 300 + ((at * 7) % 90)),
    Array.from({ length: 20 }, (_, at) => 310 + ((at * 11) % 90)),
  ]
  const batch = await ask(ids)
  expect(batch.usage.prompt_tokens).toBe(50)
  for (const [at, prompt] of ids.entries()) {
    const { logprobs, text } = batch.choices[at]!
    const context = prompt.length - 5
    // The client reads the continuation without the token that was generated.
    const continuation = logprobs.token_logprobs.slice(context, -1)
    expect(logprobs.token_logprobs).toHaveLength(prompt.length + 1)
    expect(logprobs.token_logprobs[0]).toBe(null)
    expect(logprobs.top_logprobs[0]).toBe(null)
    expect(continuation).toHaveLength(5)
    expect(continuation.every((logprob) => logprob !== null && logprob <= 0)).toBe(true)
    for (const top of logprobs.top_logprobs.slice(1)) expect(Object.keys(top!)).toHaveLength(1)
    for (const [token, offset] of logprobs.text_offset.entries())
      expect(text.startsWith(logprobs.tokens[token]!.replace("\ufffd", ""), offset)).toBe(true)
    // Alone, and with nothing generated, the values are the same.
    const [alone] = (await ask(prompt)).choices
    expect(alone!.logprobs).toEqual(logprobs)
    const [none] = (await ask(prompt, { max_tokens: 0 })).choices
    expect(none!.logprobs.token_logprobs).toEqual(logprobs.token_logprobs.slice(0, -1))
  }
  const strings = await ask(["Once upon a time there was a fox", "The robot"])
  expect(strings.choices.map(({ text }) => text)).toEqual([
    expect.stringMatching(/^Once upon a time there was a fox/),
    expect.stringMatching(/^The robot/),
  ])
  expect(strings.usage.prompt_tokens_details.cached_tokens).toBe(0)
})
