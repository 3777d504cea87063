// Streams of POST /v1/responses: their exact events, how they end, and what they cost (protocol 7.14).
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { addedUp, responseEvents } from "../../support/clients/ResponseEvents.ts"
import { orgWith, receiptsOf } from "../../support/nodes/Ledger.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilIdle } from "../../support/nodes/TestNode.ts"
import {
  body,
  echo,
  id,
  lamp,
  message,
  parameters,
  path,
  rome,
  stream,
  usage,
  weather,
  whole,
} from "./Replies.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [fakeModel] })
})
afterAll(() => node.stop())

describe("a stream", () => {
  it("has exactly these events for a text", async () => {
    const events = await stream(node, { tokens: 2, text: ["a\n", "ü"] })
    const [created, ...rest] = events
    const at = { item_id: id("msg"), output_index: 0, content_index: 0 }
    const part = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] })
    const begun = { id: id("msg"), type: "message", status: "in_progress", role: "assistant", content: [] }
    const reply = addedUp(events)
    expect(created?.response).toStrictEqual({
      ...reply,
      status: "in_progress",
      completed_at: null,
      output: [],
      usage: null,
    })
    expect(rest).toStrictEqual([
      { type: "response.in_progress", sequence_number: 1, response: created?.response },
      { type: "response.output_item.added", sequence_number: 2, output_index: 0, item: begun },
      { type: "response.content_part.added", sequence_number: 3, ...at, part: part("") },
      { type: "response.output_text.delta", sequence_number: 4, ...at, delta: "a\n", logprobs: [] },
      { type: "response.output_text.delta", sequence_number: 5, ...at, delta: "ü", logprobs: [] },
      { type: "response.output_text.done", sequence_number: 6, ...at, text: "a\nü", logprobs: [] },
      { type: "response.content_part.done", sequence_number: 7, ...at, part: part("a\nü") },
      { type: "response.output_item.done", sequence_number: 8, output_index: 0, item: message("a\nü") },
      { type: "response.completed", sequence_number: 9, response: reply },
    ])
    expect(reply).toMatchObject({ output: [message("a\nü")], usage: usage(1, 2), ...echo })
  })

  it.each<readonly [string, object, object]>([
    [
      "calls",
      { tokens: 1, text: "So.", calls: [rome, { name: "lamp", arguments: {} }] },
      { tools: [weather, lamp] },
    ],
    ["thoughts", { reasoning: ["Hm, ", "so."], tokens: 2 }, { reasoning: { effort: "high" } }],
    [
      "thoughts as a summary",
      { reasoning: "Hm.", tokens: 2 },
      { reasoning: { effort: "high", summary: "auto" } },
    ],
    ["nothing", { tokens: 0 }, {}],
    ["a cut text", { tokens: 9 }, { max_output_tokens: 3 }],
    ["a cut call", { calls: [rome] }, { tools: [weather], max_output_tokens: 2 }],
    ["log probabilities", { tokens: 3 }, { include: ["message.output_text.logprobs"], top_logprobs: 2 }],
    [
      "a format",
      {},
      { text: { format: { type: "json_schema", name: "p", schema: parameters } }, input: "Rome?" },
    ],
  ])("with %s adds up to the whole reply", async (_, steps, more) => {
    const streamed = addedUp(
      await stream(node, steps, more),
      "reasoning" in more && "summary" in (more.reasoning as object),
    )
    const reply = await whole(node, steps, more)
    const plain = (value: unknown) =>
      JSON.parse(
        JSON.stringify(value, (key, one) =>
          ["id", "call_id", "created_at", "completed_at"].includes(key) ? "" : one,
        ),
      )
    expect(plain(streamed)).toEqual(plain(reply))
  })

  it("has the time of each step in its last event, if requested", async () => {
    const events = await stream(node, { tokens: 1 }, { stream_options: { include_timing: true } })
    expect(events.at(-1)?.timing).toMatchObject({ total_ms: expect.any(Number) })
  })

  it("that fails ends with an error and the failed reply, and breaks off", async () => {
    const response = await node.post(path, { ...body({ tokens: 5, failAt: 2, text: "x" }), stream: true })
    const decoder = new TextDecoder()
    let text = ""
    const read = async () => {
      for await (const bytes of response.body ?? []) text += decoder.decode(bytes, { stream: true })
    }
    await expect(read()).rejects.toThrow()
    const [failure, failed] = responseEvents(text).slice(-2)
    expect(failure).toMatchObject({
      type: "error",
      code: "server_error",
      param: null,
      message: expect.any(String),
      error: { type: "server_error", message: failure?.message },
    })
    expect(failed).toMatchObject({
      type: "response.failed",
      response: {
        status: "failed",
        error: { code: "server_error", message: failure?.message },
        output: [{ status: "incomplete", content: [{ text: "xx" }] }],
        usage: null,
      },
    })
  })

  it("repeats tools of 400 KB", async () => {
    const large = { type: "object", properties: { a: { type: "string", description: "é".repeat(100_000) } } }
    const tools = [0, 1].map((at) => ({ type: "function", name: `t${at}`, parameters: large }))
    const response = await node.post(path, { ...body({ tokens: 3, text: "x" }, { tools }), stream: true })
    const reply = addedUp(responseEvents(await response.text()))
    expect(reply.tools).toMatchObject(tools)
  })
})

describe("metered and bounded like chat", () => {
  it("writes one receipt with all tokens", async () => {
    const key = await orgWith(node, "responses", 1_000_000)
    const steps = { reasoning: ["a"], tokens: 3 }
    const response = await node.post(path, body(steps, { reasoning: { effort: "low" } }), { key })
    expect(await response.json()).toMatchObject({ usage: usage(1, 4, { reasoning: 1 }) })
    expect(await receiptsOf(node, "responses")).toMatchObject([{ inputTokens: 1, outputTokens: 4 }])
  })

  it("stops and charges what was delivered when the client leaves", async () => {
    const key = await orgWith(node, "leaver", 1_000_000)
    const abort = new AbortController()
    const endless = body({ tokens: 4000, tokenMs: 20 }, { stream: true })
    const response = await node.post(path, endless, { key, signal: abort.signal })
    const reader = response.body!.getReader()
    let text = ""
    while (!text.includes("output_text.delta")) text += new TextDecoder().decode((await reader.read()).value)
    abort.abort()
    await untilIdle(node)
    const [receipt] = await receiptsOf(node, "leaver")
    expect(receipt?.outputTokens).toBeGreaterThan(0)
    expect(receipt?.outputTokens).toBeLessThan(1000)
  })

  it("is answered once for an idempotency key", async () => {
    const send = async () => {
      const response = await fetch(node.base + path, {
        method: "POST",
        headers: { authorization: `Bearer ${node.keys.dev}`, "idempotency-key": "responses-1" },
        body: JSON.stringify(body({ tokens: 2 }, { stream: true })),
      })
      return [response.headers.get("idempotency-replayed"), await response.text()] as const
    }
    const [first, text] = await send()
    const [second, again] = await send()
    expect([first, second]).toEqual([null, "true"])
    expect(again).toBe(text)
  })

  it("needs a credential, and says how long each step took", async () => {
    expect((await node.post(path, body({}), { key: "svc_wrong" })).status).toBe(401)
    const response = await node.post(path, body({ tokens: 1 }))
    await response.text()
    expect(response.headers.get("server-timing")).toContain("total")
  })
})
