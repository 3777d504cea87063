// Thoughts, log probabilities, several replies and usage of POST /v1/chat/completions (protocol 7.9 to 7.11).
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { fakeChat, rome, weather } from "../../support/clients/FakeChat.ts"
import { usage } from "../../support/clients/TextRecords.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [fakeModel] })
})
afterAll(() => node.stop())

const { choices, stream, whole } = fakeChat(() => node)

describe("thoughts", () => {
  const steps = { reasoning: ["Let me ", "think."], tokens: 1, text: "42" }

  it("are split from the answer and counted", async () => {
    const reply = await whole(steps, { reasoning_effort: "low" })
    expect(reply.choices[0]?.message).toStrictEqual({
      role: "assistant",
      content: "42",
      reasoning_content: "Let me think.",
    })
    expect(reply.usage).toEqual(usage(3, 3, { reasoning: 2 }))
    expect((await choices(steps, { reasoning_effort: "low" })).map(({ delta }) => delta)).toStrictEqual([
      { role: "assistant", content: "" },
      { reasoning_content: "Let me " },
      { reasoning_content: "think." },
      { content: "42" },
      {},
    ])
  })

  it("are not made without a budget", async () => {
    expect((await whole(steps, {})).choices[0]?.message).toStrictEqual({ role: "assistant", content: "42" })
  })
})

describe("log probabilities", () => {
  const token = (text: string, ...others: ReadonlyArray<string>) => ({
    token: text,
    logprob: Math.log(0.5),
    bytes: [...Buffer.from(text)],
    top_logprobs: [text, ...others].map((each, rank) => ({
      token: each,
      logprob: expect.closeTo(Math.log(0.5) * (rank + 1)),
      bytes: [...Buffer.from(each)],
    })),
  })
  const steps = { tokens: 2, text: ["é", "b"] }
  const asked = { logprobs: true, top_logprobs: 2 }

  it("of all tokens are in the record", async () => {
    const { choices } = await whole(steps, asked)
    expect(choices[0]?.logprobs).toEqual({
      content: [token("é", " other1"), token("b", " other1")],
      refusal: null,
    })
  })

  it("of each delta are in its chunk", async () => {
    expect(await choices(steps, asked)).toEqual([
      { index: 0, delta: { role: "assistant", content: "" }, finish_reason: null },
      {
        index: 0,
        delta: { content: "é" },
        logprobs: { content: [token("é", " other1")], refusal: null },
        finish_reason: null,
      },
      {
        index: 0,
        delta: { content: "b" },
        logprobs: { content: [token("b", " other1")], refusal: null },
        finish_reason: null,
      },
      { index: 0, delta: {}, finish_reason: "stop" },
    ])
  })

  it("are absent without the parameter", async () => {
    expect((await whole(steps, {})).choices[0]).not.toHaveProperty("logprobs")
  })
})

describe("several replies", () => {
  it("have their texts and reasons, and all their tokens are counted", async () => {
    const reply = await whole({ replies: ["one", "two", "three"] }, { n: 3 })
    expect(reply.choices.map(({ index, message }) => [index, message.content])).toEqual([
      [0, "one"],
      [1, "two"],
      [2, "three"],
    ])
    expect(reply.usage).toEqual(usage(1, 3))
  })

  it("are streamed with their index, each with a role first and a reason last", async () => {
    const all = await choices({ tokens: 3, text: ["a", "b", "c"] }, { n: 2, max_tokens: 2 })
    for (const index of [0, 1]) {
      expect(all.filter((choice) => choice.index === index)).toStrictEqual([
        { index, delta: { role: "assistant", content: "" }, finish_reason: null },
        { index, delta: { content: "a" }, finish_reason: null },
        { index, delta: { content: "b" }, finish_reason: null },
        { index, delta: {}, finish_reason: "length" },
      ])
    }
  })

  it("may be calls each, with ids of their own", async () => {
    const { choices } = await whole({ calls: [rome] }, { n: 2, tools: [weather] })
    const ids = choices.map(({ message }) => (message.tool_calls as ReadonlyArray<{ id: string }>)[0]?.id)
    expect(new Set(ids).size).toBe(2)
  })
})

describe("usage and fingerprint", () => {
  it("tell kept tokens, and the same model tells the same", async () => {
    const first = await whole({ tokens: 1, cachedTokens: 1 }, { seed: 4 })
    const second = await whole({ tokens: 2 }, {})
    expect(first.usage).toEqual(usage(1, 1, { cached: 1 }))
    expect(first.system_fingerprint).toBe(second.system_fingerprint)
    const [last] = (await stream({ tokens: 1 }, { stream_options: { include_usage: true } })).slice(-1)
    expect(last?.usage).toEqual(usage(1, 1))
  })
})
