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

  it("begin with those of an echoed prompt, null for its first token", async () => {
    const prompt = script({ ...steps })
    const whole2 = lists([prompt, "Hé", "llo", "!"], [0, prompt.length, prompt.length + 2, prompt.length + 5])
    const echoed = {
      ...whole2,
      token_logprobs: [null, ...whole2.token_logprobs.slice(1)],
      top_logprobs: [null, ...whole2.top_logprobs.slice(1)],
    }
    const { choices } = await whole(steps, { logprobs: 2, echo: true, n: 2 })
    for (const { logprobs, text } of choices) {
      expect(text).toBe(`${prompt}Héllo!`)
      expect(logprobs).toEqual(echoed)
    }
    const streamed = await stream(steps, { logprobs: 2, echo: true })
    expect(streamed.map(({ text }) => text)).toEqual([prompt, "Hé", "llo", "!", ""])
    expect(streamed[0]?.logprobs).toMatchObject({
      tokens: [prompt],
      token_logprobs: [null],
      text_offset: [0],
    })
    expect(streamed[1]?.logprobs).toEqual(lists(["Hé"], [prompt.length]))
  })

  it("are null where the request has none, and of no alternatives for 0", async () => {
    expect((await whole(steps)).choices[0]?.logprobs).toBe(null)
    expect((await whole(steps, { logprobs: 0 })).choices[0]?.logprobs).toMatchObject({
      top_logprobs: [{}, {}, {}],
    })
  })
})

const post = async (more: object) => {
  const response = await node.post("/v1/completions", { model: "fake", ...more })
  return { status: response.status, body: (await response.json()) as Reply & { readonly error?: unknown } }
}

describe("several prompts", () => {
  const prompts = [script({ tokens: 2, text: "a" }), script({ tokens: 1, text: "b" }), "no script"]

  it("have replies of their own, in their order, and are counted once", async () => {
    const { body } = await post({ prompt: prompts, n: 2, max_tokens: 3 })
    expect(body.choices.map(({ index, text }) => [index, text])).toEqual([
      [0, "aa"],
      [1, "aa"],
      [2, "b"],
      [3, "b"],
      [4, expect.any(String)],
      [5, expect.any(String)],
    ])
    expect(body.choices.map(({ finish_reason }) => finish_reason)).toEqual([
      ...Array(4).fill("stop"),
      ...Array(2).fill("length"),
    ])
    expect(body.usage).toEqual(usage(4, 12))
    const response = await node.post("/v1/completions", {
      model: "fake",
      prompt: prompts.slice(0, 2),
      stream: true,
    })
    const events = parseEventStream(await response.text())
    const choices = events.slice(0, -1).flatMap((data) => (JSON.parse(data) as Reply).choices)
    expect(choices.map(({ index, text }) => [index, text])).toEqual([
      [0, "a"],
      [0, "a"],
      [1, "b"],
      [0, ""],
      [1, ""],
    ])
  })

  it("may be token ids, one list or several", async () => {
    const one = await post({ prompt: [7, 8, 9], echo: true, max_tokens: 0, logprobs: 1 })
    expect(one.body.choices).toMatchObject([
      {
        text: " 7 8 9",
        finish_reason: "length",
        logprobs: {
          token_logprobs: [null, -0.69, -0.69].map((n) => n && expect.closeTo(n, 2)),
          text_offset: [0, 2, 4],
        },
      },
    ])
    expect(one.body.usage).toEqual(usage(3, 0))
    const two = await post({ prompt: [[7, 8], [9]], echo: true, max_tokens: 1, logprobs: 1 })
    expect(two.body.choices.map(({ text }) => text.slice(0, 4))).toEqual([
      " 7 8",
      expect.stringMatching(/^ 9/),
    ])
    expect(two.body.usage).toEqual(usage(3, 2))
  })

  it("are refused where they are malformed, too many or too long, and cost nothing", async () => {
    const long = "word ".repeat(9_000)
    const cases: ReadonlyArray<readonly [object, string]> = [
      [{}, "prompt: is required"],
      [{ prompt: [] }, "prompt: must not be empty"],
      [{ prompt: { a: 1 } }, "prompt: must be a text, a list of texts"],
      [{ prompt: ["a", 1] }, "prompt[1]: must be a text or a list of token ids"],
      [{ prompt: ["a", [1]] }, "prompt[1]: must be of the same kind as prompt[0]"],
      [{ prompt: [1, "a"] }, "prompt: must hold token ids only"],
      [{ prompt: [[]] }, "prompt[0]: must not be empty"],
      [{ prompt: Array(129).fill("a") }, "prompt: has 129 prompts; a request may have at most 128"],
      [{ prompt: ["a", long] }, "prompt[1]: 9000 prompt tokens do not fit"],
      [{ prompt: "a", max_tokens: 0 }, "max_tokens: must be at least 1 without echo"],
      [{ prompt: "a", max_tokens: 0, echo: true, suffix: "b" }, "echo: cannot be combined with suffix"],
      [{ prompt: "a", logprobs: 0, echo: true, suffix: "b" }, "echo: cannot be combined with suffix"],
      [{ prompt: Array(30).fill(long), logprobs: 1, echo: true }, "at most 100000 log probabilities"],
    ]
    for (const [more, detail] of cases) {
      const { body, status } = await post(more)
      expect(status).toBe(400)
      expect(JSON.stringify(body)).toContain(detail)
    }
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
