// POST /v1/realtime/client_secrets and connections with what it answers: bounds, bound sessions, ends, and the limits of a session.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { orgWith, receiptsOf } from "../../support/nodes/Ledger.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel, type TestModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

const second: TestModel = { ...fakeModel, id: "second" }
let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), fakeModel, second, fakeVoice] })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node.stop())

const path = "/v1/realtime/client_secrets"
const script = (steps: Readonly<Record<string, unknown>>) => `fake:${JSON.stringify(steps)}`

interface Made {
  readonly value: string
  readonly expires_at: number
  readonly session: Readonly<Record<string, unknown>>
  readonly limits: Readonly<Record<string, unknown>>
}

const make = async (body: object = {}, key = node.keys.dev): Promise<Made> => {
  const response = await node.post(path, body, { key })
  expect(response.status).toBe(200)
  expect(response.headers.get("cache-control")).toBe("no-store")
  return (await response.json()) as Made
}

const refusal = async (body: unknown, key = node.keys.dev) => {
  const response = await node.post(path, body, { key })
  return [response.status, ((await response.json()) as { detail: string }).detail] as const
}

/** Opens a conversation with a secret as a browser does, in OpenAI's subprotocols. */
const connect = (secret: string, query = "") =>
  SocketClient.connect(`${node.socketBase}/v1/realtime${query}`, {}, [
    "realtime",
    `openai-insecure-api-key.${secret}`,
  ])

const open = async (secret: string): Promise<ConversationClient> => {
  const client = await connect(secret)
  if (!(client instanceof SocketClient)) throw new Error(`refused: ${client.status} ${client.body}`)
  expect(client.socket.protocol).toBe("realtime")
  return ConversationClient.over(client)
}

describe("a client secret", () => {
  it("is answered with its end, its session and its limits, and looks like OpenAI's", async () => {
    const nowS = Date.now() / 1000
    const { expires_at, limits, session, value } = await make({
      expires_after: { anchor: "created_at", seconds: 60 },
      session: {
        type: "realtime",
        model: "gpt-realtime-2.1",
        instructions: "Be brief.",
        tracing: "auto",
        audio: { output: { voice: "marin" } },
      },
      limits: { max_session_seconds: 30, max_cost_usd: 0.5 },
    })
    expect(value).toMatch(/^ek_[0-9A-Za-z]{33}$/)
    expect(expires_at).toBeGreaterThanOrEqual(Math.floor(nowS + 60))
    expect(expires_at).toBeLessThanOrEqual(Math.ceil(Date.now() / 1000 + 60))
    expect(session).toMatchObject({
      type: "realtime",
      model: "gpt-realtime-2.1",
      instructions: "Be brief.",
      audio: { output: { voice: "marin" } },
    })
    expect(limits).toEqual({ max_session_seconds: 30, max_cost_usd: 0.5 })
    const plain = await make()
    expect(plain.session).toMatchObject({ model: "gpt-realtime", instructions: "" })
    expect(plain.expires_at).toBeGreaterThan(nowS + 500)
  })

  it.each([
    [{ expires_after: { seconds: 9 } }, "expires_after.seconds"],
    [{ expires_after: { seconds: 7_201 } }, "expires_after.seconds"],
    [{ expires_after: { seconds: 10.5 } }, "expires_after.seconds"],
    [{ expires_after: { anchor: "now", seconds: 10 } }, "expires_after.anchor"],
    [{ expires_after: { second: 10 } }, "expires_after.second"],
    [{ limits: { max_cost: 1 } }, "limits.max_cost"],
    [{ limits: { max_cost_usd: 0 } }, "limits.max_cost_usd"],
    [{ limits: { max_session_seconds: 0 } }, "limits.max_session_seconds"],
    [{ limits: { max_session_seconds: 3_601 } }, "limits.max_session_seconds"],
    [{ limit: {} }, "limit"],
    [{ session: { model: "gpt-realtime" } }, "session.type"],
    [{ session: { type: "transcription" } }, "session.type"],
    [{ session: { type: "realtime", model: "fake-voice" } }, "session.model"],
    [
      { session: { type: "realtime", audio: { output: { voice: "stranger" } } } },
      "session.audio.output.voice",
    ],
    [{ session: { type: "realtime", audio: { output: { speed: 2 } } } }, "session.audio.output.speed"],
    [{ session: { type: "realtime", instructions: "x".repeat(65_537) } }, "session: must be at most 65536"],
    ["{", "body"],
    ["[]", "body"],
  ])("is refused for %j", async (body, field) => {
    const [status, detail] = await refusal(body)
    expect([status, detail]).toEqual([400, expect.stringContaining(field)])
  })

  it("has 10 to 7,200 seconds, of a model that is there", async () => {
    for (const seconds of [10, 7_200]) await make({ expires_after: { seconds } })
    expect(await refusal({ session: { type: "realtime", model: "unheard-of" } })).toEqual([
      404,
      "Model not loaded",
    ])
    expect((await refusal({ session: { type: "realtime", instructions: "x".repeat(300_000) } }))[0]).toBe(413)
  })

  it("opens many sessions, which begin with what is bound to it and may be updated, never their model", async () => {
    const { value } = await make({
      session: { type: "realtime", model: "second", instructions: "Be brief." },
    })
    const clients = [await open(value), await open(value)]
    for (const client of clients) {
      expect(client.of("session.created")[0]!.session).toMatchObject({
        model: "second",
        instructions: "Be brief.",
      })
    }
    const [client] = clients
    client!.send({
      type: "session.update",
      session: { type: "realtime", model: "fake", instructions: "Be long.", output_modalities: ["text"] },
    })
    expect((await client!.nth("session.updated")).session).toMatchObject({
      model: "second",
      instructions: "Be long.",
    })
    client!.say(script({ tokens: 1, text: "Yes." }))
    client!.send({ type: "response.create" })
    expect((await client!.nth("response.done")).response.status).toBe("completed")
    for (const one of clients) one.close()
  })

  it("is for one model; a name in the address must mean the same", async () => {
    const { value } = await make({ session: { type: "realtime", model: "second" } })
    for (const [query, status] of [
      ["?model=fake", 400],
      ["?model=gpt-realtime", 400],
      ["?model=unheard-of", 404],
      ["?intent=transcription", 400],
    ] as const)
      expect([query, await connect(value, query)]).toMatchObject([query, { status }])
    const same = await connect(value, "?model=second")
    expect(same).toBeInstanceOf(SocketClient)
    const usual = await connect((await make()).value, "?model=gpt-realtime-2.1")
    expect(usual).toBeInstanceOf(SocketClient)
    for (const one of [same, usual]) if (one instanceof SocketClient) one.socket.close()
  })

  it("ends; its sessions go on", async () => {
    const { value } = await make({ expires_after: { seconds: 600 }, session: { type: "realtime" } })
    const client = await open(value)
    // Its end comes now instead of in ten minutes.
    await node.run(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`UPDATE client_secrets SET expires_at_ms = ${Date.now() - 1}`
      }),
    )
    expect(await connect(value)).toMatchObject({
      status: 401,
      body: '{"detail":"Client secret has expired"}',
    })
    client.update({ output_modalities: ["text"] })
    client.say(script({ tokens: 1, text: "Still here." }))
    client.send({ type: "response.create" })
    expect((await client.nth("response.done")).response.status).toBe("completed")
    client.close()
  })

  it("that was never made, or is sent elsewhere, is refused", async () => {
    expect(await connect(`ek_${"x".repeat(33)}`)).toMatchObject({ status: 401 })
    for (const secret of [`ek_${"x".repeat(33)}`, "ek_", "ek_<script>", `ek_${"x".repeat(5_000)}`])
      expect(await SocketClient.connect(`${node.socketBase}/v1/realtime?token=${secret}`)).toMatchObject({
        status: 401,
        body: '{"detail":"Invalid client secret"}',
      })
    const { value } = await make()
    for (const other of ["/v1/models", "/v1/usage"]) {
      const response = await node.fetch(other, { headers: { authorization: `Bearer ${value}` } })
      expect([other, response.status]).toEqual([other, 401])
    }
    expect((await refusal({}, value))[0]).toBe(401)
  })

  it("ends with its key, and so do its sessions", async () => {
    const { apiKey, keyId } = await node.run(
      Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "dev", user: "short" })),
    )
    const { value } = await make({}, apiKey)
    const client = await open(value)
    await node.run(Effect.flatMap(Accounts, (accounts) => accounts.revokeKey(keyId)))
    expect(await client.client.closed).toEqual({ code: 1008, reason: "credential revoked" })
    expect(await connect(value)).toMatchObject({ status: 401, body: '{"detail":"Invalid API key"}' })
  })
})

describe("limits of a session", () => {
  it("max_session_seconds: the session ends with an error and a close", async () => {
    const { value } = await make({ limits: { max_session_seconds: 1 } })
    const startMs = performance.now()
    const client = await open(value)
    expect(client.of("session.created")[0]!.session).toMatchObject({ expires_at: expect.any(Number) })
    await client.client.closed
    expect(performance.now() - startMs).toBeGreaterThan(950)
    expect(client.of("error").map(({ error }) => error)).toMatchObject([
      {
        type: "invalid_request_error",
        code: "session_expired",
        message: expect.stringContaining("1 seconds"),
      },
    ])
    expect(await client.client.closed).toEqual({ code: 1000, reason: "session expired" })
  })

  it("max_cost_usd: an answer is cut in its middle, and nothing is charged beyond", async () => {
    const key = await orgWith(node, "limited", 5_000_000)
    // A fake token costs 0.75 micro-dollars; the prompt some.
    const { value } = await make(
      { session: { type: "realtime", output_modalities: ["text"] }, limits: { max_cost_usd: 0.0003 } },
      key,
    )
    const client = await open(value)
    client.say(script({ tokens: 4_000, tokenMs: 2, text: "word " }))
    client.send({ type: "response.create" })
    await client.client.closed
    expect(client.of("error").map(({ error }) => error)).toMatchObject([
      {
        type: "invalid_request_error",
        code: "cost_limit_reached",
        message: expect.stringContaining("0.0003 USD"),
      },
    ])
    expect(await client.client.closed).toEqual({ code: 1008, reason: "cost limit" })
    const deltas = client.of("response.output_text.delta").length
    expect(deltas).toBeGreaterThan(10)
    expect(deltas).toBeLessThan(4_000)
    const charged = async () =>
      (await receiptsOf(node, "limited")).reduce((sum, { microDollars }) => sum + microDollars, 0)
    await eventually(async () => (await charged()) > 0, "the answer is charged")
    expect(await charged()).toBe(300)
  })

  it("max_cost_usd counts turns, answers and speech together", async () => {
    const key = await orgWith(node, "limited-speech", 5_000_000)
    const { value } = await make({ limits: { max_cost_usd: 0.0005 } }, key)
    const client = await open(value)
    client.update({ audio: { output: { pacing: "none" } } })
    let isOpen = true
    void client.client.closed.then(() => {
      isOpen = false
    })
    for (let n = 0; n < 40 && isOpen; n++) {
      client.say(script({ tokens: 1, text: "One two three four. Five six seven eight." }))
      client.send({ type: "response.create" })
      await Promise.race([client.nth("response.done", n + 1).catch(() => {}), client.client.closed])
    }
    await client.client.closed
    expect(client.of("error").at(-1)!.error.code).toBe("cost_limit_reached")
    const receipts = await receiptsOf(node, "limited-speech")
    expect(new Set(receipts.map(({ model }) => model))).toEqual(new Set(["fake", "fake-voice"]))
    expect(receipts.reduce((sum, { microDollars }) => sum + microDollars, 0)).toBeLessThanOrEqual(500)
  })
})
