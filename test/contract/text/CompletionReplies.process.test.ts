// Log probabilities, echo, suffix and several replies of POST /v1/completions, and of the completions socket (protocol 7.4,
// 7.9, 7.11).
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parseEventStream } from "../../support/clients/EventStream.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { usage } from "../../support/clients/TextRecords.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [fakeModel] })
})
afterAll(() => node.stop())

interface Choice {
  readonly text: string
  readonly index: number
  readonly logprobs: unknown
  readonly finish_reason: string | null
}
interface Reply {
  readonly choices: ReadonlyArray<Choice>
  readonly usage: unknown
}
const whole = async (steps: object, more: object = {}) => {
  const response = await node.post("/v1/completions", {
    model: "fake",
    prompt: script({ ...steps }),
    ...more,
  })
  expect(response.status).toBe(200)
  return (await response.json()) as Reply
}
const stream = async (steps: object, more: object = {}) => {
  const body = { model: "fake", prompt: script({ ...steps }), stream: true, ...more }
  const events = parseEventStream(await (await node.post("/v1/completions", body)).text())
  expect(events.pop()).toBe("[DONE]")
  return events.flatMap((data) => (JSON.parse(data) as Reply).choices)
}
const half = Math.log(0.5)
const lists = (tokens: ReadonlyArray<string>, offsets: ReadonlyArray<number>) => ({
  tokens,
  token_logprobs: tokens.map(() => expect.closeTo(half)),
  top_logprobs: tokens.map((token) => ({
    [token]: expect.closeTo(half),
    " other1": expect.closeTo(2 * half),
  })),
  text_offset: offsets,
})

describe("log probabilities", () => {
  const steps = { tokens: 3, text: ["Hé", "llo", "!"] }

  it("are lists by token, whole", async () => {
    expect((await whole(steps, { logprobs: 2 })).choices[0]?.logprobs).toEqual(
      lists(["Hé", "llo", "!"], [0, 2, 5]),
    )
  })

  it("and those of its tokens in each chunk", async () => {
    expect(await stream(steps, { logprobs: 2 })).toEqual([
      { text: "Hé", index: 0, logprobs: lists(["Hé"], [0]), finish_reason: null },
      { text: "llo", index: 0, logprobs: lists(["llo"], [2]), finish_reason: null },
      { text: "!", index: 0, logprobs: lists(["!"], [5]), finish_reason: null },
      { text: "", index: 0, logprobs: null, finish_reason: "stop" },
    ])
  })

  it("begin behind an echoed prompt", async () => {
    const prompt = script({ ...steps })
    const { choices } = await whole(steps, { logprobs: 2, echo: true, n: 2 })
    for (const { logprobs, text } of choices) {
      expect(text).toBe(`${prompt}Héllo!`)
      expect(logprobs).toEqual(
        lists(
          ["Hé", "llo", "!"],
          [0, 2, 5].map((at) => prompt.length + at),
        ),
      )
    }
    const streamed = await stream(steps, { logprobs: 2, echo: true })
    expect(streamed.map(({ text }) => text)).toEqual([prompt, "Hé", "llo", "!", ""])
    expect(streamed[1]?.logprobs).toEqual(lists(["Hé"], [prompt.length]))
  })

  it("are null where the request has none, and of no alternatives for 0", async () => {
    expect((await whole(steps)).choices[0]?.logprobs).toBe(null)
    expect((await whole(steps, { logprobs: 0 })).choices[0]?.logprobs).toMatchObject({
      top_logprobs: [{}, {}, {}],
    })
  })
})

describe("replies", () => {
  it("of n and of best_of, all of them paid", async () => {
    const two = await whole({ tokens: 3 }, { n: 2 })
    expect(two.choices.map(({ index }) => index)).toEqual([0, 1])
    expect(two.usage).toEqual(usage(1, 6))
    const best = await whole({ tokens: 3 }, { best_of: 4 })
    expect(best.choices).toHaveLength(1)
    expect(best.usage).toEqual(usage(1, 12))
  })

  it("of a stream carry their index", async () => {
    const choices = await stream({ tokens: 2, text: "x" }, { n: 2 })
    for (const index of [0, 1]) {
      expect(choices.filter((choice) => choice.index === index).map(({ text }) => text)).toEqual([
        "x",
        "x",
        "",
      ])
    }
  })

  it("are sent to the engine with suffix, echo, best_of and the rest", async () => {
    const { choices } = await whole(
      { request: true },
      { suffix: " end", best_of: 3, n: 2, logprobs: 4, min_tokens: 2, logit_bias: { 7: 1 }, seed: 5 },
    )
    expect(JSON.parse(choices[0]?.text ?? "")).toMatchObject({
      suffix: " end",
      bestOf: 3,
      replies: 2,
      logprobs: 4,
      minTokens: 2,
      logitBias: [[7, 1]],
      sampling: { seed: 5 },
    })
  })
})

describe("the completions socket", () => {
  it("sends several replies with log probabilities", async () => {
    const client = await SocketClient.open(`${node.socketBase}/v1/completions/ws?token=${node.keys.dev}`)
    client.send({
      model: "fake",
      prompt: script({ tokens: 1, text: "x" }),
      n: 2,
      logprobs: 2,
      request_id: "r",
    })
    await client.end("r")
    const choices = client.frames.flatMap((frame) => (frame as Partial<Reply>).choices ?? [])
    for (const index of [0, 1]) {
      expect(choices.filter((choice) => choice.index === index)).toEqual([
        { text: "x", index, logprobs: lists(["x"], [0]), finish_reason: null },
        { text: "", index, logprobs: null, finish_reason: "stop" },
      ])
    }
    expect(client.frames.at(-1)).toEqual({ type: "done", request_id: "r", usage: usage(1, 2) })
    client.socket.close()
    await client.closed
  })

  it("streams a chat with calls", async () => {
    const client = await SocketClient.open(`${node.socketBase}/v1/completions/ws?token=${node.keys.dev}`)
    const calls = [{ name: "f", arguments: {} }]
    const content = script({ reasoning: "Hm.", tokens: 2, text: ["a", "b"], calls })
    client.send({
      model: "fake",
      messages: [{ role: "user", content }],
      reasoning_effort: "low",
      tools: [{ type: "function", function: { name: "f" } }],
      request_id: 7,
    })
    client.send({ model: "fake", messages: [], request_id: 8 })
    client.send({ model: "fake", prompt: script({ tokens: 1, text: "x" }), messages: [], request_id: 9 })
    await client.end(7)
    await client.end(9)
    expect(client.of(9)[0]).toMatchObject({ object: "text_completion", choices: [{ text: "x" }] })
    expect(
      client.of(7).map((frame) => (frame.choices as ReadonlyArray<object> | undefined)?.[0] ?? frame),
    ).toEqual([
      { index: 0, delta: { role: "assistant", content: "" }, finish_reason: null },
      { index: 0, delta: { reasoning_content: "Hm." }, finish_reason: null },
      { index: 0, delta: { content: "a" }, finish_reason: null },
      { index: 0, delta: { content: "b" }, finish_reason: null },
      {
        index: 0,
        delta: {
          tool_calls: [
            { index: 0, id: expect.any(String), type: "function", function: { name: "f", arguments: "" } },
          ],
        },
        finish_reason: null,
      },
      { index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: "{}" } }] }, finish_reason: null },
      { index: 0, delta: {}, finish_reason: "tool_calls" },
      { type: "done", request_id: 7, usage: usage(2, 5, { reasoning: 1 }) },
    ])
    expect(client.of(8)).toEqual([{ type: "error", error: "messages: must not be empty", request_id: 8 }])
    client.socket.close()
    await client.closed
  })
})
