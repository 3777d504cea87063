// Schemas that nothing can be made of, in every form of a request that takes one, against the engine on the built-in weights: 400
// with the place in the request. Nothing is charged or held, the engine goes on, and the
// connection can be used again.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { hostileSchemas, type SchemaForm, schemaForms } from "../../support/clients/HostileSchemas.ts"
import { jsonOf, RawConnection, requestBytes } from "../../support/clients/RawHttp.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { fn, userSays } from "../../support/clients/TextRefusals.ts"
import { orgWith, receiptsOf } from "../../support/nodes/Ledger.ts"
import { llamaModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilIdle } from "../../support/nodes/TestNode.ts"

let node: TestNode
let connection: RawConnection
let socket: SocketClient
let pid: number | undefined
/** An organization with credit for one request at a time, and its key: what was reserved and not released would be missed. */
let org = ""
let key = ""
/** The most that one request reserves, 2,048 tokens of the prompt and of the reply, and a little more. */
const microDollars = 2_000

let orgs = 0
/** Goes on as a new organization. */
const useNewOrg = async (): Promise<void> => {
  org = `attacker-${++orgs}`
  key = await orgWith(node, org, microDollars)
  socket?.vanish()
  socket = await SocketClient.open(`${node.socketBase}/v1/completions/ws?token=${key}`)
}

beforeAll(async () => {
  node = await startNode({ models: [{ ...llamaModel, runtime: { load: "start" } }] })
  expect((await node.post("/v1/chat/completions", honest)).status).toBe(200)
  pid = node.gauges("llama").pid
})
afterAll(async () => {
  connection?.destroy()
  socket?.vanish()
  await node.stop()
})
beforeEach(async () => {
  connection?.destroy()
  socket?.vanish()
  connection = await RawConnection.open(node.port)
  await useNewOrg()
})

const honest = { model: "llama", max_tokens: 4, messages: [userSays("hi")] }

interface Answer {
  readonly status: number
  readonly detail: string
}

/** Over the one connection of a test, until the node closes it because a slow machine has not used it for so long. */
const send = async (path: string, body: string, as = key): Promise<Answer> => {
  if (connection.isOver) connection = await RawConnection.open(node.port)
  await connection.send(requestBytes("POST", path, { authorization: `Bearer ${as}` }, body))
  const response = await connection.response()
  const { detail = "" } = jsonOf(response) as { readonly detail?: string }
  return { status: response.status, detail }
}

let frames = 0
/** As a frame of the one socket of a test. */
const sendFrame = async (body: string): Promise<string> => {
  const id = `r${++frames}`
  socket.send(body.replace("{", `{"request_id":"${id}",`))
  // A frame that cannot be parsed has no id.
  await socket.until((all) =>
    all.some((frame) => frame.type === "error" && [id, undefined].includes(frame.request_id as string)),
  )
  const found = socket.frames.find(({ type }) => type === "error") as { readonly error: string }
  socket.frames.length = 0
  return String(found.error)
}

const expectHealthy = async (): Promise<void> => {
  // On the same connection and the same socket, and with all of the credit.
  expect(await send("/v1/models", "", node.keys.dev)).toMatchObject({ status: 405 })
  await untilIdle(node)
  const { pid: now, restarts } = node.gauges("llama")
  expect([now, restarts]).toEqual([pid, 0])
  expect(await receiptsOf(node, org)).toEqual([])
}

const fieldsOf = (form: SchemaForm, isLong: boolean, at?: "body"): ReadonlyArray<string> => {
  if (at === "body") return ["body"]
  // A definition that is larger than the context is refused as a prompt, by the larger part of it.
  return isLong && !form.name.includes("format") ? [form.field, "tools", "functions"] : [form.field]
}

const expectRefused = (detail: string, form: SchemaForm, schema: (typeof hostileSchemas)[number]): void => {
  const fields = fieldsOf(form, schema.isLong === true, schema.at)
  expect(
    fields.some((field) => detail.startsWith(field)),
    `${form.name}: ${detail} begins with ${fields.join(" or ")}`,
  ).toBe(true)
  // The compiler's limits of time end it first on a slow machine.
  const early =
    schema.isLong === true
      ? /prompt tokens do not fit|takes longer than|did not start/
      : /takes longer than|did not start/
  if (!early.test(detail)) expect(detail).toMatch(schema.problem)
  expect(detail.length).toBeLessThan(400)
}

describe("a schema of", () => {
  it.each(hostileSchemas)("$name is refused in every form", async (schema) => {
    let slowestMs = 0
    let sinceMs = performance.now()
    for (const form of schemaForms) {
      // A user may compile for 5 s of processor time a minute.
      if (schema.isSlow === true || performance.now() - sinceMs > 2_000) {
        await useNewOrg()
        sinceMs = performance.now()
      }
      const body = form.body("llama", schema.json)
      const beganMs = performance.now()
      const { detail, status } = await send(form.path, body)
      slowestMs = Math.max(slowestMs, performance.now() - beganMs)
      expect([form.name, status, detail]).toEqual([form.name, 400, expect.any(String)])
      expectRefused(detail, form, schema)
      if (form.path !== "/v1/chat/completions") continue
      expectRefused(await sendFrame(body), form, schema)
    }
    // The time depends on the machine, and is no condition.
    console.info(`${schema.name}: refused after ${slowestMs.toFixed(0)} ms at most`)
    await expectHealthy()
  })
})

describe("tools and histories", () => {
  const call = (text: string) => ({
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c", type: "function", function: { name: "a", arguments: text } }],
  })
  const levels = 10_000
  const chats: ReadonlyArray<readonly [name: string, more: object, field: string]> = [
    ["two tools of one name", { tools: [fn("a"), fn("a")] }, "tools[1].function.name"],
    ["a name with spaces", { tools: [fn("turn on")] }, "tools[0].function.name"],
    ["an unknown choice", { tools: [fn("a")], tool_choice: "maybe" }, "tool_choice"],
    ["a choice of an unknown name", { tools: [fn("a")], tool_choice: fn("b") }, "tool_choice.function.name"],
    [
      "a result without its call",
      { messages: [userSays("hi"), { role: "tool", tool_call_id: "x", content: "1" }] },
      "messages[1].tool_call_id",
    ],
    [
      "arguments that are no JSON",
      { messages: [userSays("hi"), call("{a}")] },
      "messages[1].tool_calls[0].function.arguments",
    ],
    [
      "arguments of 10,000 levels",
      { messages: [userSays("hi"), call(`${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`)] },
      "messages[1].tool_calls[0].function.arguments",
    ],
    [
      "arguments of 17,000 keys",
      { messages: [userSays("hi"), call(JSON.stringify({ a: Array(17_000).fill({ b: 1 }) }))] },
      "messages[1].tool_calls[0].function.arguments",
    ],
  ]
  it.each(chats)("%s: refused over HTTP and the socket", async (_, more, field) => {
    const body = JSON.stringify({ ...honest, ...more })
    const { detail, status } = await send("/v1/chat/completions", body)
    expect([status, detail.slice(0, field.length + 1)]).toEqual([400, `${field}:`])
    expect(await sendFrame(body)).toBe(detail)
    await expectHealthy()
  })

  const responses: ReadonlyArray<readonly [name: string, more: object, field: string]> = [
    ["two tools of one name", { tools: Array(2).fill({ type: "function", name: "a" }) }, "tools[1].name"],
    ["a name with spaces", { tools: [{ type: "function", name: "turn on" }] }, "tools[0].name"],
    ["an unknown choice", { tools: [{ type: "function", name: "a" }], tool_choice: "maybe" }, "tool_choice"],
    [
      "a result without its call",
      { input: [{ type: "function_call_output", call_id: "x", output: "1" }] },
      "input[0].call_id",
    ],
    [
      "arguments that are no JSON",
      { input: [{ type: "function_call", call_id: "x", name: "a", arguments: "{a}" }] },
      "input[0].arguments",
    ],
  ]
  it.each(responses)("%s: refused by the Responses API", async (_, more, field) => {
    const { detail, status } = await send(
      "/v1/responses",
      JSON.stringify({ model: "llama", input: "hi", ...more }),
    )
    expect([status, detail.slice(0, field.length + 1)]).toEqual([400, `${field}:`])
    await expectHealthy()
  })
})

const formatOf = (schema: object) => ({
  response_format: { type: "json_schema", json_schema: { name: "x", strict: true, schema } },
})
const contentOf = async (
  more: object,
): Promise<{ readonly content: string | null; readonly calls: number }> => {
  const response = await node.post("/v1/chat/completions", {
    ...honest,
    max_tokens: 200,
    temperature: 1.5,
    ...more,
  })
  const { choices } = (await response.json()) as {
    readonly choices: readonly [
      { readonly message: { readonly content: string | null; readonly tool_calls?: ReadonlyArray<unknown> } },
    ]
  }
  const { content, tool_calls = [] } = choices[0].message
  return { content, calls: tool_calls.length }
}

it("patterns that take other engines for ever are held", async () => {
  for (const pattern of ["^(([a-z])+.)+[A-Z]([a-z])+$", "^(a|a)*$", "^(x+x+)+y$", "^(\\w+\\s?)*$"]) {
    const { content } = await contentOf(
      formatOf({
        type: "object",
        properties: { a: { type: "string", pattern, maxLength: 12 } },
        required: ["a"],
        additionalProperties: false,
      }),
    )
    const { a } = JSON.parse(content ?? "") as { readonly a: string }
    expect([pattern, new RegExp(pattern, "u").test(a), [...a].length <= 12]).toEqual([pattern, true, true])
  }
})

it("a format beside tools: call syntax in a text of the answer is text", async () => {
  const said = '<tool_call>\n{"name": "a", "arguments": {}}\n</tool_call>'
  const format = formatOf({ type: "object", properties: { said: { const: said } }, required: ["said"] })
  const seen = { calls: 0, answers: 0 }
  for (let seed = 0; seed < 24; seed++) {
    const { calls, content } = await contentOf({
      ...format,
      tools: [fn("a")],
      parallel_tool_calls: false,
      // The model answers the one, and calls for the other.
      messages: [userSays(seed % 2 === 0 ? "What is the capital of Spain?" : "Call a.")],
      seed,
    })
    if (calls > 0) expect([calls, content]).toEqual([1, null])
    else expect(JSON.parse(content ?? "")).toEqual({ said })
    seen[calls > 0 ? "calls" : "answers"]++
  }
  console.info(`${seen.calls} calls and ${seen.answers} answers`)
  expect(seen.answers).toBeGreaterThan(0)
  expect(seen.calls).toBeGreaterThan(0)
})
