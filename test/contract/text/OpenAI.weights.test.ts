// The official client against a real node: the node understands its requests, it can use the answers, and every refusal
// arrives as the client's error class for it.
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { script } from "../../support/nodes/FakeNode.ts"
import { fakeModel, llamaModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

type ApiError = InstanceType<typeof OpenAI.APIError>

let node: TestNode
let openai: OpenAI
/** Body of the last refusal: the client itself shows only its `error` object. */
let refusal = ""
const clientOf = (target: TestNode, apiKey: string) =>
  new OpenAI({
    apiKey,
    baseURL: `${target.base}/v1`,
    maxRetries: 0,
    timeout: 60_000,
    fetch: async (url, init) => {
      const response = await fetch(url, init)
      if (!response.ok) refusal = await response.clone().text()
      return response
    },
  })

beforeAll(async () => {
  node = await startNode({
    models: [fakeModel, { ...fakeModel, id: "small", options: { contextTokens: 8 } }, llamaModel],
  })
  openai = clientOf(node, node.keys.dev)
})
afterAll(() => node.stop())

const user = (content: string) => [{ role: "user" as const, content }]
const words = { tokens: 6, text: ["The", " capital", " of", " Italy", " is", " Rome"] }
const answer = "The capital of Italy is Rome"

describe("models", () => {
  it("are listed, and the list can be iterated", async () => {
    const page = await openai.models.list()
    expect(page.data.map(({ id }) => id)).toEqual(["fake", "small", "llama"])
    expect(page.data[0]).toEqual({
      id: "fake",
      object: "model",
      created: 1_700_000_000,
      owned_by: "test",
      permission: [],
      root: "fake",
      parent: null,
      kind: "text",
      input_modalities: ["text"],
    })
    const ids: Array<string> = []
    for await (const model of openai.models.list()) ids.push(model.id)
    expect(ids).toEqual(["fake", "small", "llama"])
  })
})

describe("chat", () => {
  it("is answered whole", async () => {
    const reply = await openai.chat.completions.create({ model: "fake", messages: user(script(words)) })
    expect(reply.choices).toHaveLength(1)
    expect(reply.choices[0]).toMatchObject({
      index: 0,
      message: { role: "assistant", content: answer },
      finish_reason: "stop",
    })
    expect(reply.usage).toMatchObject({ completion_tokens: 6 })
  })

  it("is streamed to the iterator, to the stream helper and to its collected completion", async () => {
    const body = { model: "fake", messages: user(script(words)), stream: true } as const
    let text = ""
    const reasons: Array<string | null> = []
    for await (const chunk of await openai.chat.completions.create(body)) {
      text += chunk.choices[0]?.delta.content ?? ""
      reasons.push(chunk.choices[0]?.finish_reason ?? null)
    }
    expect(text).toBe(answer)
    expect(reasons).toEqual([null, null, null, null, null, null, "stop"])

    const helper = openai.chat.completions.stream({ model: "fake", messages: user(script(words)) })
    const final = await helper.finalChatCompletion()
    expect(final.choices[0]).toMatchObject({
      message: { role: "assistant", content: answer },
      finish_reason: "stop",
    })
  })

  it("reports usage in a last chunk of its own where it was asked for", async () => {
    const stream = await openai.chat.completions.create({
      model: "fake",
      messages: user(script(words)),
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks: Array<OpenAI.ChatCompletionChunk> = []
    for await (const chunk of stream) chunks.push(chunk)
    const last = chunks.at(-1)!
    expect(last.choices).toEqual([])
    expect(last.usage).toMatchObject({ completion_tokens: 6 })
    expect(last.usage!.total_tokens).toBe(last.usage!.prompt_tokens + 6)
    expect(chunks.slice(0, -1).every(({ usage }) => usage === undefined || usage === null)).toBe(true)
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
  })

  it("can be left in the middle", async () => {
    const stream = await openai.chat.completions.create({
      model: "fake",
      messages: user(script({ tokens: 4000, tokenMs: 2 })),
      max_tokens: 4096,
      stream: true,
    })
    let seen = 0
    for await (const _ of stream) if (++seen === 5) break
    expect(seen).toBe(5)
  })

  it("takes content as text parts, and every text role", async () => {
    const reply = await openai.chat.completions.create({
      model: "llama",
      temperature: 0,
      max_tokens: 8,
      messages: [
        {
          role: "developer",
          content: [
            { type: "text", text: "You are " },
            { type: "text", text: "brief." },
          ],
        },
        {
          role: "user",
          content: [
            { type: "text", text: "What is the capital " },
            { type: "text", text: "of Italy?" },
          ],
        },
      ],
    })
    const plain = await openai.chat.completions.create({
      model: "llama",
      temperature: 0,
      max_tokens: 8,
      messages: [
        { role: "system", content: "You are brief." },
        { role: "user", content: "What is the capital of Italy?" },
      ],
    })
    expect(reply.choices[0]!.message.content).toBe(plain.choices[0]!.message.content)
    // The second prompt may find more of its tokens kept than the first.
    expect(reply.usage?.prompt_tokens).toBe(plain.usage?.prompt_tokens)
  })

  it("never fails for a field that other servers know", async () => {
    const tool = {
      type: "function" as const,
      function: { name: "f", parameters: { type: "object", properties: {} } },
    }
    const reply = await openai.chat.completions.create({
      model: "fake",
      messages: user(script(words)),
      tools: [tool],
      tool_choice: "auto",
      parallel_tool_calls: false,
      functions: [{ name: "f", parameters: {} }],
      function_call: "auto",
      response_format: { type: "json_object" },
      seed: 7,
      n: 1,
      logprobs: null,
      top_logprobs: null,
      logit_bias: { "50256": -100 },
      metadata: { conversation: "1" },
      store: false,
      user: "u1",
      service_tier: "auto",
      reasoning_effort: "low",
      stop: null,
      max_completion_tokens: 50,
    })
    expect(reply.choices[0]!.message.content).toBe(answer)
  })

  it("repeats itself for a seed", async () => {
    const body = {
      model: "llama",
      messages: user("Tell me a story."),
      seed: 11,
      temperature: 1.5,
      max_tokens: 24,
    }
    const texts = await Promise.all(
      [body, body, { ...body, seed: 12 }].map(
        async (each) => (await openai.chat.completions.create(each)).choices[0]!.message.content,
      ),
    )
    expect(texts[0]).toBe(texts[1])
    expect(texts[0]).not.toBe(texts[2])
  })
})

describe("completions", () => {
  it("are answered whole", async () => {
    const reply = await openai.completions.create({ model: "fake", prompt: script(words) })
    expect(reply.choices[0]).toEqual({ text: answer, index: 0, logprobs: null, finish_reason: "stop" })
    expect(reply.usage).toMatchObject({ completion_tokens: 6 })
  })

  it("are streamed, with usage where asked for", async () => {
    const stream = await openai.completions.create({
      model: "fake",
      prompt: script(words),
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks: Array<OpenAI.Completion> = []
    for await (const chunk of stream) chunks.push(chunk)
    expect(chunks.map(({ choices }) => choices[0]?.text ?? "").join("")).toBe(answer)
    expect(chunks.at(-2)!.choices[0]!.finish_reason).toBe("stop")
    expect(chunks.at(-1)!.choices).toEqual([])
    expect(chunks.at(-1)!.usage).toMatchObject({ completion_tokens: 6 })
  })
})

describe("errors", () => {
  const create = (client: OpenAI, changes: object = {}) =>
    client.chat.completions.create({ model: "fake", messages: user(script(words)), ...changes })
  const failure = (promise: Promise<unknown>): Promise<unknown> =>
    promise.then(
      () => "no error",
      (error: unknown) => error,
    )

  it.each([
    [
      "an unknown key",
      () => create(clientOf(node, `svc_${"A".repeat(32)}`)),
      OpenAI.AuthenticationError,
      401,
      "Invalid API key",
    ],
    [
      "something that is no key",
      () => create(clientOf(node, "sk-openai")),
      OpenAI.AuthenticationError,
      401,
      "Not enough segments",
    ],
    [
      "an organization without a cent",
      () => create(clientOf(node, node.keys.broke)),
      OpenAI.APIError,
      402,
      "Billing access denied",
    ],
    [
      "a model that is not deployed",
      () => create(openai, { model: "gpt-5" }),
      OpenAI.NotFoundError,
      404,
      "Model not loaded",
    ],
    ["a bad parameter", () => create(openai, { temperature: 3 }), OpenAI.BadRequestError, 400, "temperature"],
    ["no messages", () => create(openai, { messages: [] }), OpenAI.BadRequestError, 400, "messages"],
    [
      "a prompt over the context",
      () => create(openai, { model: "small", messages: user("a b c d e f g h i") }),
      OpenAI.BadRequestError,
      400,
      "9 prompt tokens do not fit the model's context of 8 tokens",
    ],
    [
      "a failing engine",
      () => create(openai, { messages: user(script({ tokens: 9, failAt: 3 })) }),
      OpenAI.InternalServerError,
      500,
      "failed",
    ],
  ])("%s", async (_, request, type, status, detail) => {
    const error = await failure(request())
    expect(error).toBeInstanceOf(type)
    expect((error as ApiError).status).toBe(status)
    const body = JSON.parse(refusal)
    expect(body).toEqual({ detail: expect.stringContaining(detail), error: expect.any(Object) })
    expect((error as ApiError).message).toBe(`${status} ${body.error.message}`)
  })

  it("image content to a text model", async () => {
    const content = [
      { type: "text" as const, text: "What is this?" },
      { type: "image_url" as const, image_url: { url: "data:image/png;base64,AAAA" } },
    ]
    const error = await failure(create(openai, { messages: [{ role: "user", content }] }))
    expect(error).toBeInstanceOf(OpenAI.BadRequestError)
    expect(JSON.parse(refusal).detail).toMatch(/^messages\[0\]\.content\[1\]: /)
  })

  it("a stream that fails midway", async () => {
    const stream = await openai.chat.completions.create({
      model: "fake",
      messages: user(script({ tokens: 9, failAt: 3 })),
      stream: true,
    })
    let chunks = 0
    const read = async () => {
      for await (const _ of stream) chunks++
    }
    const error = await failure(read())
    expect(error).toBeInstanceOf(OpenAI.APIError)
    expect((error as Error).message).toContain("failed to produce an answer")
    expect(chunks).toBe(3)
  })

  it("too many requests, with the wait", async () => {
    const limited = await startNode({ rateLimit: 3 })
    try {
      const client = clientOf(limited, limited.keys.dev)
      for (let i = 0; i < 3; i++) await client.models.list()
      const error = await failure(client.models.list())
      expect(error).toBeInstanceOf(OpenAI.RateLimitError)
      const wait = Number((error as ApiError).headers?.get("retry-after"))
      expect(wait).toBeGreaterThan(0)
      expect(wait).toBeLessThanOrEqual(60)
      // Another user has a limit of its own.
      expect((await clientOf(limited, limited.keys.credit).models.list()).data).toHaveLength(1)
    } finally {
      await limited.stop()
    }
  })
})
