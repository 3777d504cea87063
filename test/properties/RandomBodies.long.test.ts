// For any bytes as a body, one of the documented answers arrives: never a 500, never no answer,
// and the node loses no slot and no money.
import fc from "fast-check"
import { afterAll, beforeAll, expect, it } from "vitest"
import { jsonOf, RawConnection, requestBytes } from "../support/clients/RawHttp.ts"
import { SocketClient } from "../support/clients/SocketClient.ts"
import { fakeModel } from "../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilIdle } from "../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [{ ...fakeModel, options: { slots: 4, contextTokens: 64 } }] })
})
afterAll(async () => {
  await untilIdle(node)
  expect(node.counts.bodyBufferedBytes).toBe(0)
  await node.stop()
})

const paths = ["/v1/chat/completions", "/v1/completions", "/v1/responses"] as const
const valid = {
  "/v1/chat/completions": {
    model: "fake",
    messages: [
      { role: "system", content: "be brief" },
      { role: "user", content: [{ type: "text", text: "hi" }] },
    ],
    max_tokens: 2,
    temperature: 0.5,
    stop: ["x"],
    stream: false,
    stream_options: { include_usage: true },
    tools: [{ type: "function", function: { name: "f" } }],
  },
  "/v1/completions": {
    model: "fake",
    prompt: "hi",
    max_tokens: 2,
    top_p: 0.5,
    stop: "x",
    user: "u",
    n: 1,
    seed: 3,
  },
  "/v1/responses": {
    model: "fake",
    instructions: "be brief",
    input: [
      { role: "user", content: [{ type: "input_text", text: "hi" }] },
      { type: "reasoning", summary: [{ type: "summary_text", text: "h" }] },
      { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
      { type: "function_call_output", call_id: "c", output: "o" },
    ],
    max_output_tokens: 2,
    tools: [{ type: "function", name: "f", parameters: {} }],
    tool_choice: { type: "function", name: "f" },
    text: { format: { type: "text" } },
    reasoning: { effort: "low", summary: "auto" },
    include: ["message.output_text.logprobs"],
    metadata: { a: "b" },
  },
} as const

/** How often each status came; shows a property whose inputs all fail early. */
const seen = new Map<number, number>()

/** Sends a body and checks the rule. One connection a run: a refusal may close it. */
const obeys = async (path: string, body: Uint8Array | string): Promise<void> => {
  const connection = await RawConnection.open(node.port)
  try {
    const headers = { authorization: `Bearer ${node.keys.dev}`, "content-type": "application/json" }
    await connection.send(requestBytes("POST", path, headers, body))
    const response = await connection.response()
    expect([200, 400, 404, 413]).toContain(response.status)
    seen.set(response.status, (seen.get(response.status) ?? 0) + 1)
    expect(response.complete).toBe(true)
    if (response.status === 200) return
    const refusal = jsonOf(response) as { readonly detail: string }
    expect(Object.keys(refusal)).toEqual(["detail"])
    expect(typeof refusal.detail).toBe("string")
    expect(refusal.detail.length).toBeGreaterThan(0)
    expect(refusal.detail.length).toBeLessThan(1_000)
  } finally {
    connection.destroy()
  }
}

const path = fc.constantFrom(...paths)

it("random bytes", async () => {
  await fc.assert(
    fc.asyncProperty(path, fc.uint8Array({ maxLength: 2_000 }), (where, bytes) => obeys(where, bytes)),
    { numRuns: 500 },
  )
})

it("random JSON", async () => {
  await fc.assert(
    fc.asyncProperty(path, fc.json({ maxDepth: 6 }), (where, body) => obeys(where, body)),
    { numRuns: 500 },
  )
})

/** Any JSON value; boundary numbers and special texts are more likely than others. */
const hurtful = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    "",
    "fake",
    0,
    -0,
    1,
    -1,
    1.5,
    1e308,
    2 ** 53,
    [],
    {},
    [[]],
    [null],
  ),
  fc.constantFrom<unknown>(
    "\u0000",
    "\ud800",
    "__proto__",
    "fake:{",
    "fake:{}",
    'fake:{"tokens":1e9}',
    "\r\n\r\n",
  ),
  fc.jsonValue({ maxDepth: 3 }),
  fc.string({ unit: "binary", maxLength: 200 }),
)

/** A step from the root of a value to one of its parts, chosen by numbers so that it fits any value. */
const steps = fc.array(fc.nat(), { minLength: 1, maxLength: 4 })

type Json = unknown

/** The value with one part replaced, removed, renamed or repeated. */
const mutate = (
  value: Json,
  at: ReadonlyArray<number>,
  change: "replace" | "remove" | "rename" | "repeat",
  by: Json,
): Json => {
  const [first = 0, ...rest] = at
  if (typeof value !== "object" || value === null) return by
  const entries = Object.entries(value)
  if (entries.length === 0) return by
  const index = first % entries.length
  const [key, part] = entries[index]!
  let parts: Array<[string, Json]>
  if (rest.length > 0 && typeof part === "object" && part !== null)
    parts = entries.with(index, [key, mutate(part, rest, change, by)])
  else if (change === "replace") parts = entries.with(index, [key, by])
  else if (change === "remove") parts = entries.filter((_, i) => i !== index)
  else if (change === "rename") parts = entries.with(index, [typeof by === "string" ? by : `${key}_`, part])
  else parts = [...entries, [`${key}`, part], ["0", by]]
  return Array.isArray(value) ? parts.map(([, each]) => each) : Object.fromEntries(parts)
}

const mutation = fc.tuple(steps, fc.constantFrom("replace", "remove", "rename", "repeat"), hurtful)

it("valid bodies with parts replaced, removed, renamed and repeated", async () => {
  await fc.assert(
    fc.asyncProperty(path, fc.array(mutation, { minLength: 1, maxLength: 3 }), (where, mutations) => {
      const body = mutations.reduce<Json>(
        (value, [at, change, by]) => mutate(value, at, change, by),
        valid[where],
      )
      return obeys(where, JSON.stringify(body) ?? "")
    }),
    // So many that each of the statuses below is reached often enough, with the number of paths and fields that there are. A fixed seed:
    // the counts must not depend on what is drawn.
    { numRuns: 3_000, seed: 33 },
  )
  for (const status of [200, 400, 404]) expect(seen.get(status)).toBeGreaterThan(20)
})

it("valid bodies cut, doubled and with bytes flipped", async () => {
  const flips = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(path, flips, fc.option(fc.nat()), fc.boolean(), (where, changes, cut, twice) => {
      const whole = Buffer.from(JSON.stringify(valid[where]))
      for (const [at, byte] of changes) whole[at % whole.length] = byte
      const bytes = cut === null ? whole : whole.subarray(0, cut % (whole.length + 1))
      return obeys(where, twice ? Buffer.concat([bytes, bytes]) : bytes)
    }),
    { numRuns: 500 },
  )
})

it("random frames on the completions socket", async () => {
  const client = await SocketClient.open(`${node.socketBase}/v1/completions/ws?token=${node.keys.dev}`)
  const frame = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.json({ maxDepth: 4 }),
    mutation.map(
      ([at, change, by]) => JSON.stringify(mutate(valid["/v1/completions"], at, change, by)) ?? "",
    ),
  )
  let n = 0
  await fc.assert(
    fc.asyncProperty(fc.array(frame, { maxLength: 5 }), async (frames) => {
      for (const each of frames) client.socket.send(each, { binary: typeof each !== "string" })
      // Still the same socket, and it still works.
      const id = `check-${n++}`
      client.send({ model: "fake", prompt: "hi", max_tokens: 1, request_id: id })
      expect(await client.end(id)).toMatchObject({ type: expect.stringMatching(/^(done|error)$/) })
    }),
    { numRuns: 200 },
  )
  client.socket.close()
  await eventually(() => node.counts.webSockets === 0, "the socket is closed")
})
