// Schemas that nothing can be made of, in every form of a request that takes one, against the engine on the built-in weights: 400
// with the place in the request. Nothing is charged or held, the engine goes on, and the
// connection can be used again.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { hostileSchemas, type SchemaForm, schemaForms } from "../../support/clients/HostileSchemas.ts"
import { jsonOf, RawConnection, requestBytes } from "../../support/clients/RawHttp.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { userSays } from "../../support/clients/TextRefusals.ts"
import { orgWith, receiptsOf } from "../../support/nodes/Ledger.ts"
import { llamaModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilIdle } from "../../support/nodes/TestNode.ts"

let node: TestNode
let connection: RawConnection
let socket: SocketClient
let pid: number | undefined
/** Of an organization with credit for one request at a time: what was reserved and not released would be missed. */
let key = ""
/** The most that one request reserves, 2,048 tokens of the prompt and of the reply, and a little more. */
const microDollars = 2_000

beforeAll(async () => {
  node = await startNode({ models: [{ ...llamaModel, runtime: { load: "start" } }] })
  key = await orgWith(node, "attacker", microDollars)
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
  socket = await SocketClient.open(`${node.socketBase}/v1/completions/ws?token=${key}`)
})

const honest = { model: "llama", max_tokens: 4, messages: [userSays("hi")] }

interface Answer {
  readonly status: number
  readonly detail: string
}

/** Over the one connection of a test. */
const send = async (path: string, body: string, as = key): Promise<Answer> => {
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
  expect(await receiptsOf(node, "attacker")).toEqual([])
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
  if (!/prompt tokens do not fit/.test(detail) || schema.isLong !== true)
    expect(detail).toMatch(schema.problem)
  expect(detail.length).toBeLessThan(400)
}

describe("a schema of", () => {
  it.each(hostileSchemas)("$name is refused in every form", async (schema) => {
    let slowestMs = 0
    for (const form of schemaForms) {
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
