// POST /v1/embeddings over a real listening server with the fake engine: replies, refusals, charges, stock clients.
import { createOpenAI } from "@ai-sdk/openai"
import { OpenAIEmbeddings } from "@langchain/openai"
import { embedMany } from "ai"
import { Effect } from "effect"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { runs } from "../../support/groups/Runs.ts"
import { orgWith, receiptsOf } from "../../support/nodes/Ledger.ts"
import { fakeModel, type TestModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilIdle, untilLoaded } from "../../support/nodes/TestNode.ts"

const embedder: TestModel = {
  id: "vectors",
  kind: "embedding",
  adapter: "fake-embedding",
  runtime: { load: "start" },
  options: { dimensions: 32, contextTokens: 8 },
}

let node: TestNode
beforeAll(async () => {
  node = await startNode({
    models: [
      fakeModel,
      embedder,
      { ...embedder, id: "slow", options: { dimensions: 32, callMs: 20 } },
      { ...embedder, id: "wide", options: { dimensions: 4096 } },
    ],
  })
  await untilLoaded(node, "vectors", "slow", "wide")
})
afterAll(() => node.stop())

interface Reply {
  readonly data: ReadonlyArray<{ readonly index: number; readonly embedding: ReadonlyArray<number> }>
}

const ask = (body: object, options: Parameters<TestNode["post"]>[2] = {}) =>
  node.post("/v1/embeddings", { model: "vectors", ...body }, options)
const vectorsOf = async (body: object) =>
  ((await (await ask(body)).json()) as Reply).data.map(({ embedding }) => embedding)
const floatsOf = (base64: unknown): ReadonlyArray<number> => {
  const bytes = new Uint8Array(Buffer.from(String(base64), "base64"))
  return [...new Float32Array(bytes.buffer)]
}
const lengthOf = (vector: ReadonlyArray<number>) => Math.hypot(...vector)

describe("a reply", () => {
  it("has one vector of length 1 for each input, in their order, and the usage", async () => {
    const response = await ask({ input: ["the red fox", "a robot"], user: "me" })
    expect(response.headers.get("x-receipt-id")).not.toBeNull()
    const reply = (await response.json()) as Reply
    expect(reply).toMatchObject({
      object: "list",
      data: [
        { object: "embedding", index: 0 },
        { object: "embedding", index: 1 },
      ],
      model: "vectors",
      usage: { prompt_tokens: 5, total_tokens: 5 },
    })
    for (const { embedding } of reply.data) {
      expect(embedding.length).toBe(32)
      expect(lengthOf(embedding)).toBeCloseTo(1, 6)
    }
    const [fox, robot] = reply.data.map(({ embedding }) => embedding)
    expect(await vectorsOf({ input: "a robot" })).toEqual([robot])
    expect(await vectorsOf({ input: ["a robot", "the red fox"] })).toEqual([robot, fox])
  })

  it("has the same floats as base64", async () => {
    const input = ["the red fox", "a robot", "one two three four five six seven"]
    const floats = await vectorsOf({ input })
    const encoded = await vectorsOf({ input, encoding_format: "base64" })
    expect(encoded.map(floatsOf)).toEqual(floats.map((vector) => vector.map(Math.fround)))
  })

  it("has the first dimensions of the vector, with length 1", async () => {
    const input = "one two three four five six seven eight"
    const [[whole = []], [first = []]] = await Promise.all([
      vectorsOf({ input }),
      vectorsOf({ input, dimensions: 16 }),
    ])
    expect(first.length).toBe(16)
    const kept = lengthOf(whole.slice(0, 16))
    for (const [at, value] of first.entries()) expect(value).toBeCloseTo((whole[at] ?? 0) / kept, 6)
  })

  it("takes token ids, one list or several", async () => {
    const [one] = await vectorsOf({ input: [1, 2, 3] })
    expect(await vectorsOf({ input: [[1, 2, 3], [4]] })).toMatchObject([one, {}])
  })

  /** The most that one reply may have, and in `npm test` half of both. */
  const most = runs(1_024, 2_048)
  it(`has ${most} vectors of ${most} values, during which the node answers others`, async () => {
    const input = Array.from({ length: most }, (_, at) => `text ${at}`)
    const body = node.post("/v1/embeddings", { model: "wide", input, dimensions: most })
    let others = 0
    let done = false
    const large = body
      .then((response) => response.text())
      .finally(() => {
        done = true
      })
    while (!done) {
      expect((await ask({ input: "a" })).status).toBe(200)
      others++
    }
    expect((JSON.parse(await large) as Reply).data.length).toBe(most)
    expect(others).toBeGreaterThan(3)
  })
})

describe("refused with 400 is", () => {
  it.each<readonly [string, object, string]>([
    ["no input", {}, "input: is required"],
    ["an empty text", { input: "" }, "input: must not be empty"],
    ["an empty list", { input: [] }, "input: must not be empty"],
    ["an empty text in a list", { input: ["a", ""] }, "input[1]: must not be empty"],
    ["an empty list of tokens", { input: [[1], []] }, "input[1]: must not be empty"],
    ["an input of another type", { input: { a: 1 } }, "input: must be a text, a list of texts"],
    ["a number that is no token", { input: [1, 1.5] }, "input: must hold token ids only"],
    ["a mixed list", { input: ["a", [1]] }, "input[1]: must be of the same kind as input[0]"],
    ["a text too many", { input: Array(2_049).fill("a") }, "input: has 2049 inputs"],
    ["a long input", { input: ["a", "a ".repeat(9)] }, "input[1]: 9 prompt tokens do not fit"],
    ["an unknown format", { input: "a", encoding_format: "int8" }, "encoding_format"],
    ["no dimensions", { input: "a", dimensions: 0 }, "dimensions"],
    [
      "too many dimensions",
      { input: "a", dimensions: 33 },
      "dimensions: is 33; this model's embeddings have 32",
    ],
    ["a text model", { input: "a", model: "fake" }, "fake makes no embeddings"],
    [
      "a reply that is too large",
      { model: "wide", input: Array(2_048).fill("a") },
      "input: has 2048 inputs of 4096",
    ],
  ])("%s", async (_, body, problem) => {
    const response = await ask(body)
    expect(response.status).toBe(400)
    expect(JSON.stringify(await response.json())).toContain(problem)
  })

  it("an embedding model at another endpoint; an unknown model is 404", async () => {
    const messages = [{ role: "user", content: "a" }]
    const chat = await node.post("/v1/chat/completions", { model: "vectors", messages })
    expect(chat.status).toBe(400)
    expect((await ask({ input: "a", model: "absent" })).status).toBe(404)
  })
})

describe("charged are", () => {
  it("the tokens of the inputs, and those of the inputs that were computed when the client left", async () => {
    const key = await orgWith(node, "embeds", 1_000_000)
    expect((await ask({ input: ["a b c", "d"] }, { key })).status).toBe(200)
    expect(await receiptsOf(node, "embeds")).toMatchObject([
      { kind: "embedding", model: "vectors", inputTokens: 4, outputTokens: 0, microDollars: 1 },
    ])
    const leave = new AbortController()
    const input = Array.from({ length: 2_000 }, () => "a b")
    const slow = ask({ model: "slow", input }, { key, signal: leave.signal })
    slow.catch(() => {})
    const computed = () =>
      node.run(Effect.map(ModelRegistry, (registry) => registry.find("slow")?.meters.unitGapMs.count ?? 0))
    await eventually(async () => (await computed()) > 3, "some inputs are computed")
    leave.abort()
    await expect(slow).rejects.toThrow()
    await untilIdle(node)
    const [latest] = await receiptsOf(node, "embeds")
    expect(latest).toMatchObject({ model: "slow", outputTokens: 0 })
    expect(latest?.inputTokens).toBeGreaterThan(0)
    // Of 4,000: the rest of half of them would take 20 s and more.
    expect(latest?.inputTokens).toBeLessThan(2_000)
  })

  it("nothing for a refusal, and an organization without credit gets 402", async () => {
    const key = await orgWith(node, "refused", 1_000_000)
    expect((await ask({ input: "a ".repeat(9) }, { key })).status).toBe(400)
    expect(await receiptsOf(node, "refused")).toEqual([])
    expect((await ask({ input: "a" }, { key: node.keys.broke })).status).toBe(402)
  })
})

describe("stock clients", () => {
  it("openai", async () => {
    const client = new OpenAI({ apiKey: node.keys.dev, baseURL: `${node.base}/v1`, maxRetries: 0 })
    const input = ["the red fox", "a robot"]
    const floats = await vectorsOf({ input })
    // It asks for base64 and decodes it.
    const reply = await client.embeddings.create({ model: "vectors", input })
    expect(reply.data.map(({ embedding }) => embedding)).toEqual(
      floats.map((vector) => vector.map(Math.fround)),
    )
    expect(reply.usage).toEqual({ prompt_tokens: 5, total_tokens: 5 })
  })

  it("LangChain and the ai SDK", async () => {
    const apiKey = node.keys.dev
    const baseURL = `${node.base}/v1`
    const langchain = new OpenAIEmbeddings({ model: "vectors", apiKey, configuration: { baseURL } })
    const values = ["the red fox", "a robot"]
    const floats = await vectorsOf({ input: values })
    const found = await langchain.embedDocuments(values)
    expect(found.map((vector) => vector.map(Math.fround))).toEqual(
      floats.map((vector) => vector.map(Math.fround)),
    )
    const model = createOpenAI({ apiKey, baseURL }).embedding("vectors")
    expect((await embedMany({ model, values })).embeddings).toEqual(floats)
  })
})
