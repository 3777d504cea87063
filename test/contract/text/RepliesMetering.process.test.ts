// What several replies, thoughts, calls and tools cost: all generated tokens are charged, and the most that a request can
// cost is reserved before it starts (protocol 5.2). A client that leaves ends all replies of its request.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { TextStream } from "../../support/clients/TextStream.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { orgWith, receiptsOf } from "../../support/nodes/Ledger.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilIdle, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  const narrow = { ...fakeModel, id: "narrow", options: { slots: 4 } }
  node = await startNode({ models: [fakeModel, narrow] })
  await untilLoaded(node, "fake", "narrow")
})
afterAll(() => node.stop())

let orgs = 0
/** A key of a new organization, and the receipts of it so far. */
const keyWith = async (creditsMicroDollars: number) => {
  const org = `org${orgs++}`
  const key = await orgWith(node, org, creditsMicroDollars)
  return { key, receipts: () => receiptsOf(node, org) }
}
const chat = (key: string, steps: object, more: object = {}) =>
  node.post(
    "/v1/chat/completions",
    { model: "fake", messages: [{ role: "user", content: script({ ...steps }) }], ...more },
    { key },
  )
const tool = { type: "function", function: { name: "f", parameters: { type: "object" } } }

describe("charged are", () => {
  it.each<readonly [string, object, object, number, number]>([
    ["the tokens of all replies", { tokens: 10 }, { n: 4 }, 1, 40],
    ["thoughts", { reasoning: ["a", "b"], tokens: 3 }, { reasoning_effort: "low" }, 1, 5],
    [
      "calls, and the tools of the prompt",
      { calls: [{ name: "f", arguments: { a: 1 } }] },
      { tools: [tool] },
      2,
      3,
    ],
  ])("%s", async (_, steps, more, prompt, completion) => {
    const { key, receipts } = await keyWith(1_000_000)
    const response = await chat(key, steps, more)
    expect(await response.json()).toMatchObject({
      usage: { prompt_tokens: prompt, completion_tokens: completion },
    })
    expect(await receipts()).toMatchObject([{ inputTokens: prompt, outputTokens: completion }])
  })

  it("the tokens of each prompt of a list once, in one receipt, and nothing where one is refused", async () => {
    const { key, receipts } = await keyWith(1_000_000)
    const prompt = [script({ tokens: 2 }), script({ tokens: 3 }), "two words"]
    const complete = (more: object) => node.post("/v1/completions", { model: "fake", ...more }, { key })
    const response = await complete({ prompt, n: 2, max_tokens: 4, echo: true, logprobs: 1 })
    expect(await response.json()).toMatchObject({ usage: { prompt_tokens: 4, completion_tokens: 18 } })
    expect(await receipts()).toMatchObject([{ inputTokens: 4, outputTokens: 18 }])
    expect((await complete({ prompt: ["fine", "word ".repeat(9_000)] })).status).toBe(400)
    expect(await receipts()).toHaveLength(1)
  })
})

describe("reserved is", () => {
  // One reply of 4,096 tokens and a short prompt cost 3,072 and a few micro-dollars at most.
  const enough = 3_200
  const longest = { max_tokens: 4096 }

  it("the longest reply, as often as there are replies", async () => {
    const { key, receipts } = await keyWith(enough)
    expect((await chat(key, { tokens: 1 }, longest)).status).toBe(200)
    expect((await chat(key, { tokens: 1 }, { ...longest, n: 2 })).status).toBe(402)
    const completion = { model: "fake", prompt: script({ tokens: 1 }), ...longest, best_of: 2 }
    expect((await node.post("/v1/completions", completion, { key })).status).toBe(402)
    expect(await receipts()).toMatchObject([{ outputTokens: 1 }])
  })

  it("the definitions of tools and formats as a part of the prompt", async () => {
    const { key } = await keyWith(enough)
    const parameters = { type: "object", description: "d".repeat(2_000) }
    const tools = [{ type: "function", function: { name: "f", parameters } }]
    const response_format = { type: "json_schema", json_schema: { name: "x", schema: parameters } }
    expect((await chat(key, { tokens: 1 }, { ...longest, tools })).status).toBe(402)
    expect((await chat(key, { tokens: 1 }, { ...longest, response_format })).status).toBe(402)
    expect((await chat(key, { tokens: 1 }, { ...longest, tools: [tool] })).status).toBe(200)
  })
})

describe("a client that leaves", () => {
  it("ends all replies, and pays for what was generated", async () => {
    const { key, receipts } = await keyWith(1_000_000)
    const response = await chat(key, { tokens: 4000, tokenMs: 10 }, { n: 3, stream: true, max_tokens: 4096 })
    const stream = new TextStream(response)
    await stream.take(20)
    await stream.leave()
    await untilIdle(node)
    const [receipt] = await receipts()
    expect(receipt?.outputTokens).toBeGreaterThanOrEqual(10)
    // Three replies of 4,000.
    expect(receipt?.outputTokens).toBeLessThan(6_000)
  })
})

describe("slots", () => {
  it("are taken by each reply: a further request waits until they are free", async () => {
    const steps = (tokens: number) => [{ role: "user", content: script({ tokens, tokenMs: 10 }) }]
    const body = { model: "narrow", messages: steps(4000), max_tokens: 4096, n: 4, stream: true }
    const stream = new TextStream(await node.post("/v1/chat/completions", body))
    await stream.take(1)
    expect(node.gauges("narrow")).toMatchObject({ open: 1, busySlots: 4, waiting: 0 })
    const second = node.post("/v1/chat/completions", { model: "narrow", messages: steps(1) })
    await eventually(() => node.gauges("narrow").waiting === 1, "the second request waits")
    await stream.leave()
    expect((await second).status).toBe(200)
    await untilIdle(node)
    expect(node.gauges("narrow")).toMatchObject({ open: 0, busySlots: 0 })
  })
})
