// What all sessions of one client secret may take together: sessions at a time, cost, and handshakes, which leave the key's rate alone.
import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { sessionsAtOnce } from "#domain/conversation/ClientSecretTerms.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { type Refused, SocketClient } from "../../support/clients/SocketClient.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { orgWith, receiptsOf } from "../../support/nodes/Ledger.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

const perMinute = 100
let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), fakeModel, fakeVoice], rateLimit: perMinute })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node.stop())

const make = async (key: string, limits: object): Promise<string> => {
  const session = { type: "realtime", output_modalities: ["text"] }
  const response = await node.post("/v1/realtime/client_secrets", { session, limits }, { key })
  expect(response.status).toBe(200)
  return ((await response.json()) as { readonly value: string }).value
}

const connect = (secret: string): Promise<SocketClient | Refused> =>
  SocketClient.connect(`${node.socketBase}/v1/realtime`, {}, [
    "realtime",
    `openai-insecure-api-key.${secret}`,
  ])

const opened = async (secret: string): Promise<ConversationClient> => {
  const client = await connect(secret)
  if (!(client instanceof SocketClient)) throw new Error(`refused: ${client.status} ${client.body}`)
  return ConversationClient.over(client)
}

/** Requests that the key may still make, besides this one. */
const remaining = async (key: string): Promise<number> => {
  const response = await node.fetch("/v1/models", { headers: { authorization: `Bearer ${key}` } })
  return Number(response.headers.get("x-ratelimit-remaining"))
}

const charged = async (org: string): Promise<number> =>
  (await receiptsOf(node, org)).reduce((sum, { microDollars }) => sum + microDollars, 0)

/** Asks for a long answer and waits until it or the session has ended. A fake token costs 0.75 micro-dollars. */
const answer = async (client: ConversationClient, tokens: number): Promise<void> => {
  const before = client.of("response.done").length
  client.say(`fake:${JSON.stringify({ tokens, text: "word " })}`)
  client.send({ type: "response.create" })
  await client.client.until(() => client.of("response.done").length > before || client.of("error").length > 0)
}

// Before the others, so that a conversation has no measured cost by which one could be refused.
it("sessions of a client secret are a few at a time: of 20 sockets the others are refused, and the key's rate is not touched", async () => {
  const key = await orgWith(node, "crowded", 5_000_000)
  const secret = await make(key, {})
  const before = await remaining(key)
  const answers = await Promise.all(Array.from({ length: 20 }, () => connect(secret)))
  const open = answers.filter((one) => one instanceof SocketClient)
  const refused = answers.filter((one): one is Refused => !(one instanceof SocketClient))
  expect(open).toHaveLength(sessionsAtOnce.default)
  for (const { body, headers, status } of refused) {
    expect([status, body]).toEqual([
      429,
      '{"detail":"The client secret has 4 sessions open, its max_sessions"}',
    ])
    expect(Number(headers["retry-after"])).toBeGreaterThanOrEqual(1)
    expect(Number(headers["retry-after"])).toBeLessThanOrEqual(10)
  }
  // One less: the request that asks.
  expect(await remaining(key)).toBe(before - 1)
  for (const { socket } of open) socket.close()
})

describe.concurrent("all sessions of a client secret", () => {
  it("have a rate of their own, for handshakes, turns and answers", async ({ expect }) => {
    const key = await orgWith(node, "hasty", 5_000_000)
    const secret = await make(key, { max_sessions: 1 })
    const before = await remaining(key)
    const client = await opened(secret)
    for (let n = 0; n < 5; n++) await answer(client, 1)
    // Six are used. Handshakes that `max_sessions` refuses count, too.
    const statuses: Array<number> = []
    for (let n = 0; n < perMinute; n++) {
      // Its place is not taken from a client that sends something.
      client.send({ type: "input_audio_buffer.clear" })
      const one = await connect(secret)
      statuses.push(one instanceof SocketClient ? 101 : Number(/rate/i.test(one.body)))
    }
    expect(statuses.filter((status) => status === 1)).toHaveLength(6)
    expect(statuses.filter((status) => status === 101)).toEqual([])
    expect(await remaining(key)).toBe(before - 1)
    // Another secret of the key is not concerned.
    const other = await opened(await make(key, {}))
    other.close()
    client.close()
  })

  it("may come after each other without end: a page that lost its connection comes back", async ({
    expect,
  }) => {
    const key = await orgWith(node, "returning", 5_000_000)
    const secret = await make(key, { max_sessions: 1, max_cost_usd: 1 })
    let client = await opened(secret)
    for (let n = 0; n < 4; n++) {
      await answer(client, 1)
      expect(client.of("error")).toEqual([])
      client.client.socket.terminate()
      await client.client.closed
      let next: SocketClient | undefined
      await eventually(async () => {
        const one = await connect(secret)
        if (one instanceof SocketClient) next = one
        return next !== undefined
      }, "the place is free")
      client = await ConversationClient.over(next!)
    }
    client.close()
  })

  it("give a place to a new one after 10 s without an event of their client", inLong, async ({ expect }) => {
    const key = await orgWith(node, "silent", 5_000_000)
    const secret = await make(key, { max_sessions: 1 })
    const silent = await opened(secret)
    let next = await connect(secret)
    while (!(next instanceof SocketClient)) {
      expect(next.status).toBe(429)
      // What a client that was refused does.
      await setTimeout(1_000 * Number(next.headers["retry-after"]))
      next = await connect(secret)
    }
    expect(await silent.client.closed).toEqual({ code: 1008, reason: "replaced" })
    expect(silent.of("error").map(({ error }) => error)).toEqual([
      expect.objectContaining({
        code: "session_replaced",
        message:
          "No event came for 10 seconds, and another session of the client secret has begun beyond its max_sessions.",
      }),
    ])
    const goesOn = await ConversationClient.over(next)
    await answer(goesOn, 1)
    expect(goesOn.of("error")).toEqual([])
    goesOn.close()
  })

  it("cost max_cost_usd together: what one has spent, the next one lacks", async ({ expect }) => {
    const key = await orgWith(node, "thrifty", 5_000_000)
    const secret = await make(key, { max_cost_usd: 0.0003 })
    const first = await opened(secret)
    await answer(first, 200)
    expect(first.of("response.done")).toHaveLength(1)
    first.close()
    await first.client.closed
    await eventually(async () => (await charged("thrifty")) > 100, "the first answer is charged")
    const second = await opened(secret)
    await answer(second, 4_000)
    expect(await second.client.closed).toEqual({ code: 1008, reason: "cost limit" })
    expect(second.of("error")[0]!.error).toMatchObject({
      code: "cost_limit_reached",
      message: "The sessions of the client secret hit their maximum cost of 0.0003 USD.",
    })
    await eventually(async () => (await charged("thrifty")) === 300, "both are charged the limit together")
    expect(await connect(secret)).toMatchObject({
      status: 401,
      body: '{"detail":"Client secret has used its max_cost_usd; make another one"}',
    })
    expect(await charged("thrifty")).toBe(300)
  })

  it("cost max_cost_usd together at the same time, too: all of them end", async ({ expect }) => {
    const key = await orgWith(node, "generous", 5_000_000)
    const secret = await make(key, { max_cost_usd: 0.0003 })
    const clients = await Promise.all([opened(secret), opened(secret), opened(secret)])
    await Promise.all(clients.map((client) => answer(client, 4_000)))
    for (const client of clients)
      expect(await client.client.closed).toEqual({ code: 1008, reason: "cost limit" })
    await eventually(async () => (await charged("generous")) >= 300, "they are charged")
    expect(await charged("generous")).toBe(300)
  })
})
