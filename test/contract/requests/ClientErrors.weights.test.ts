// What the exceptions of OpenAI's own client say when this server refuses: a sentence, in its versions 6 and 7. Each of them
// builds the message from another part of the reply.
import OpenAI from "openai"
import OpenAI7 from "openai-7"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { fakeModel, llamaModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
let limited: TestNode
beforeAll(async () => {
  const speech = { id: "voice", kind: "speech", adapter: "fake-speech", runtime: { load: "start" } } as const
  const models = [fakeModel, { ...fakeModel, id: "small", options: { contextTokens: 8 } }, speech, llamaModel]
  ;[node, limited] = await Promise.all([startNode({ models }), startNode({ models, rateLimit: 1 })])
})
afterAll(() => Promise.all([node.stop(), limited.stop()]))

/** In the form of a key. */
const wrongKey = `svc_${"0".repeat(32)}`
const hi = [{ role: "user" as const, content: "Hi" }]
const schema = { type: "object", properties: { a: { type: "nothing" } } }

interface Refusal {
  readonly status: number
  readonly message: string
  readonly code: string | null
  readonly param: string | null
  readonly key?: string
  readonly ask: (openai: OpenAI) => Promise<unknown>
}

const refusals: Readonly<Record<string, Refusal>> = {
  "a wrong key": {
    status: 401,
    message: "Invalid API key",
    code: "invalid_api_key",
    param: null,
    key: wrongKey,
    ask: (openai) => openai.models.list(),
  },
  "no key": {
    status: 401,
    message: "Missing bearer token. Send an API key of this node; it begins with svc_",
    code: "invalid_api_key",
    param: null,
    ask: (openai) => openai.models.list({ headers: { Authorization: null } }),
  },
  "a key of another server": {
    status: 401,
    message: "Invalid token: Not enough segments. An API key of this node begins with svc_",
    code: "invalid_api_key",
    param: null,
    key: "sk-proj-1234",
    ask: (openai) => openai.models.list(),
  },
  "an unknown model": {
    status: 404,
    message: "Model not loaded. This node has: fake, small, llama",
    code: "model_not_found",
    param: "model",
    ask: (openai) => openai.chat.completions.create({ model: "gone", messages: hi }),
  },
  "an unknown voice": {
    status: 502,
    message: "TTS backend error. voice has no such voice; it has: fake",
    code: "SynthesisFailed",
    param: "voice",
    ask: (openai) =>
      openai.audio.speech.create({ model: "voice", voice: "none", input: "Hi", response_format: "wav" }),
  },
  "a format that needs `stream`": {
    status: 400,
    message: "response_format: must be pcm, wav or mp3, or opus with stream: true",
    code: "InvalidRequest",
    param: "response_format",
    ask: (openai) =>
      openai.audio.speech.create({ model: "voice", voice: "fake", input: "Hi", response_format: "opus" }),
  },
  "a prompt that is too long": {
    status: 400,
    message: "messages: 40 prompt tokens do not fit the model's context of 8 tokens",
    code: "context_length_exceeded",
    param: "messages",
    ask: (openai) =>
      openai.chat.completions.create({
        model: "small",
        messages: [{ role: "user", content: "word ".repeat(40) }],
      }),
  },
  "a wrong schema": {
    status: 400,
    message: "response_format.json_schema.schema.properties.a.type: ",
    code: "InvalidRequest",
    param: "response_format.json_schema.schema.properties.a.type",
    ask: (openai) =>
      openai.chat.completions.create({
        model: "llama",
        messages: hi,
        response_format: { type: "json_schema", json_schema: { name: "a", schema } },
      }),
  },
  "an address that is not served": {
    status: 404,
    message: "Not Found. This server does not have that endpoint; /docs lists those that it has",
    code: null,
    param: null,
    ask: (openai) => openai.vectorStores.list(),
  },
  "a base URL without /v1": {
    status: 404,
    message: "Not Found. The base URL of a client ends in /v1",
    code: null,
    param: null,
    ask: (openai) => openai.withOptions({ baseURL: node.base }).models.list(),
  },
  "a base URL with /v1 twice": {
    status: 404,
    message: "Not Found. The base URL of a client has /v1 once",
    code: null,
    param: null,
    ask: (openai) => openai.withOptions({ baseURL: `${node.base}/v1/v1` }).models.list(),
  },
  "a model that is asked for by its name": {
    status: 404,
    message: "Model not loaded. This node has: fake, small, voice, llama",
    code: "model_not_found",
    param: "model",
    ask: (openai) => openai.models.retrieve("gone"),
  },
}

const failureOf = async (Client: typeof OpenAI, at: TestNode, refusal: Pick<Refusal, "ask" | "key">) => {
  const openai = new Client({ apiKey: refusal.key ?? at.keys.dev, baseURL: `${at.base}/v1`, maxRetries: 0 })
  const failure: unknown = await refusal.ask(openai).then(
    () => "answered",
    (cause: unknown) => cause,
  )
  return failure as InstanceType<typeof OpenAI.APIError>
}

describe.each([
  ["6", OpenAI],
  ["7", OpenAI7 as unknown as typeof OpenAI],
])("version %s of the client says", (_, Client) => {
  it.each(Object.entries(refusals))("%s", async (_, refusal) => {
    const { code, message, param, status } = await failureOf(Client, node, refusal)
    expect({ code, param, status }).toEqual({
      code: refusal.code,
      param: refusal.param,
      status: refusal.status,
    })
    expect(message).toContain(`${refusal.status} ${refusal.message}`)
    expect(message).not.toMatch(/[{}]/)
  })

  it("a rate limit, and when it ends", async () => {
    const ask = (openai: OpenAI) => openai.chat.completions.create({ model: "fake", messages: hi })
    let failure = await failureOf(Client, limited, { ask })
    if (String(failure) === "answered") failure = await failureOf(Client, limited, { ask })
    expect(failure.message).toMatch(/^429 Rate limit exceeded\. Try again in \d+ s$/)
    expect(failure.code).toBe("rate_limit_exceeded")
  })
})

it("another client gets `detail` alone", async () => {
  const reply = await fetch(`${node.base}/v1/models`, { headers: { authorization: `Bearer ${wrongKey}` } })
  expect(await reply.json()).toEqual({ detail: "Invalid API key" })
})
