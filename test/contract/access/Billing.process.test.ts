// Every priced endpoint reserves money, charges what was delivered and writes one receipt with the id in its answer's
// head; two requests at once cannot exceed a budget. Over a real listener, on engines without weights.
import type { IncomingMessage } from "node:http"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import WebSocket from "ws"
import { Accounts } from "#store/accounts/Accounts.ts"
import { listener, noise, wavOf } from "../../support/clients/LiveClient.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { path as transcriptions } from "../../support/clients/TranscriptionClient.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { orgWith, receiptsOf } from "../../support/nodes/Ledger.ts"
import { fakeVoice, spokenScript } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilIdle, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [fakeModel, fakeVoice, listener()] })
  await untilLoaded(node, "fake", "fake-voice", "listener")
})
afterAll(() => node.stop())

const receiptId = /^rcpt_[0-9a-f]{28}$/
const chat = (extra: object = {}) => ({
  model: "fake",
  messages: [{ role: "user", content: script({ tokens: 5 }) }],
  max_tokens: 5,
  ...extra,
})
const completion = (extra: object = {}) => ({
  model: "fake",
  prompt: script({ tokens: 5 }),
  max_tokens: 5,
  ...extra,
})
const response = (extra: object = {}) => ({
  model: "fake",
  input: script({ tokens: 5 }),
  max_output_tokens: 5,
  ...extra,
})
const speech = (extra: object = {}) => ({
  model: "fake-voice",
  voice: "fake",
  input: spokenScript({ pieces: 2 }),
  ...extra,
})

const transcribe = (query: Readonly<Record<string, string>>, key: string): Promise<Response> => {
  const form = new FormData()
  form.append("file", new File([wavOf(noise(2))], "speech.wav"))
  const headers = { authorization: `Bearer ${key}` }
  const address = `${transcriptions}?${new URLSearchParams({ model: "listener", ...query })}`
  return node.fetch(address, { method: "POST", headers, body: form })
}

/** The answers over HTTP that are charged, and the kind of use on their receipts. */
const priced: ReadonlyArray<readonly [name: string, ask: (key: string) => Promise<Response>, kind: string]> =
  [
    ["chat", (key) => node.post("/v1/chat/completions", chat(), { key }), "text"],
    ["a chat stream", (key) => node.post("/v1/chat/completions", chat({ stream: true }), { key }), "text"],
    ["a completion", (key) => node.post("/v1/completions", completion(), { key }), "text"],
    [
      "a completion stream",
      (key) => node.post("/v1/completions", completion({ stream: true }), { key }),
      "text",
    ],
    ["a response", (key) => node.post("/v1/responses", response(), { key }), "text"],
    ["a response's stream", (key) => node.post("/v1/responses", response({ stream: true }), { key }), "text"],
    ["speech", (key) => node.post("/v1/audio/speech", speech(), { key }), "speech"],
    ["a speech stream", (key) => node.post("/v1/audio/speech", speech({ stream: true }), { key }), "speech"],
    ["a transcription", (key) => transcribe({ sync: "true" }, key), "transcription"],
    ["a transcription stream", (key) => transcribe({ stream: "true" }, key), "transcription"],
  ]

let orgs = 0
const freshOrg = async (creditsMicroDollars = 1_000_000) => {
  const org = `org${orgs++}`
  return { org, key: await orgWith(node, org, creditsMicroDollars) }
}
const creditsOf = (org: string): Promise<number> =>
  node.run(Effect.flatMap(Accounts, (accounts) => accounts.showOrg(org))).then((o) => o.creditsMicroDollars)

describe("one answer, one receipt", () => {
  it.each(priced)("%s", async (_, ask, kind) => {
    const { key, org } = await freshOrg()
    const response = await ask(key)
    expect(response.status).toBe(200)
    const id = response.headers.get("x-receipt-id")
    expect(id).toMatch(receiptId)
    await response.arrayBuffer()
    await untilIdle(node)
    const rows = await receiptsOf(node, org)
    expect(rows.map((row) => [row.receiptId, row.kind])).toEqual([[id, kind]])
    const [row] = rows
    expect(row!.microDollars).toBeGreaterThan(0)
    expect(await creditsOf(org)).toBe(1_000_000 - row!.microDollars)
    if (kind === "text") expect(row).toMatchObject({ outputTokens: 5, audioMs: 0 })
    else expect(row).toMatchObject({ outputTokens: 0, inputTokens: 0 })
    if (kind === "transcription") expect(row!.audioMs).toBe(2_000)
  })

  it("a transcription job, by the job's id", async () => {
    const { key, org } = await freshOrg()
    const response = await transcribe({}, key)
    const { job_id } = (await response.json()) as { job_id: string }
    expect([response.status, response.headers.get("x-receipt-id")]).toEqual([202, job_id])
    await eventually(async () => (await receiptsOf(node, org)).length > 0, "the job is charged")
    expect(await receiptsOf(node, org)).toMatchObject([{ receiptId: job_id, audioMs: 2_000 }])
  })

  it("a live session, by the id in its handshake", async () => {
    const { key, org } = await freshOrg()
    const address = `${node.socketBase}/v1/audio/transcriptions/ws?token=${key}&model=listener`
    const socket = new WebSocket(address)
    const handshake = new Promise<IncomingMessage>((resolve) => socket.on("upgrade", resolve))
    const done = new Promise<void>((resolve) => socket.on("close", () => resolve()))
    const opened = new Promise((resolve) => socket.once("open", resolve))
    const id = (await handshake).headers["x-receipt-id"]
    expect(id).toMatch(receiptId)
    await opened
    socket.send(noise(2))
    socket.send(JSON.stringify({ type: "stop" }))
    await done
    await untilIdle(node)
    const rows = await receiptsOf(node, org)
    expect(rows).toMatchObject([{ receiptId: id, kind: "transcription", audioMs: 2_000 }])
  })

  it("a generation on a socket: each has its own", async () => {
    const { key, org } = await freshOrg()
    const client = await SocketClient.open(`${node.socketBase}/v1/completions/ws?token=${key}`)
    for (const request_id of ["a", "b", "c"]) client.socket.send(JSON.stringify(completion({ request_id })))
    await client.until((frames) => frames.filter(({ type }) => type === "done").length === 3)
    client.socket.close()
    await untilIdle(node)
    const rows = await receiptsOf(node, org)
    expect(rows.map((row) => row.outputTokens)).toEqual([5, 5, 5])
    expect(new Set(rows.map((row) => row.receiptId)).size).toBe(3)
  })

  it("nothing where nothing was delivered", async () => {
    const { key, org } = await freshOrg()
    const wrong = [
      node.post("/v1/chat/completions", chat({ model: "none" }), { key }),
      node.post("/v1/chat/completions", chat({ max_tokens: 0 }), { key }),
      node.post("/v1/audio/speech", speech({ voice: "unknown" }), { key }),
      node.post("/v1/audio/speech", speech({ input: "" }), { key }),
      transcribe({ sync: "true", language: "xx" }, key),
      node.post(
        "/v1/chat/completions",
        chat({ messages: [{ role: "user", content: script({ failAt: 0 }) }] }),
        {
          key,
        },
      ),
    ]
    for (const response of await Promise.all(wrong)) {
      expect(response.status).toBeGreaterThanOrEqual(400)
      expect(response.headers.get("x-receipt-id")).toBeNull()
    }
    await untilIdle(node)
    expect(await receiptsOf(node, org)).toEqual([])
    expect(await creditsOf(org)).toBe(1_000_000)
  })
})

describe("a budget", () => {
  it("is never passed by two requests at once, and stops at zero", async () => {
    // One answer: 5 tokens at 0.75 a million, and its prompt; two do not fit.
    const probe = await freshOrg()
    await (await node.post("/v1/completions", completion(), { key: probe.key })).arrayBuffer()
    await untilIdle(node)
    const price = (await receiptsOf(node, probe.org))[0]!.microDollars
    for (let round = 0; round < 10; round++) {
      // The reservation is for the most that the request can cost, a little more than it does.
      const { key, org } = await freshOrg(price * 2 - 1)
      const slow = completion({ prompt: script({ tokens: 5, tokenMs: 2 }) })
      const answers = await Promise.all([1, 2, 3].map(() => node.post("/v1/completions", slow, { key })))
      const statuses = await Promise.all(
        answers.map(async (answer) => {
          await answer.arrayBuffer()
          return answer.status
        }),
      )
      await untilIdle(node)
      const rows = await receiptsOf(node, org)
      expect(rows).toHaveLength(statuses.filter((status) => status === 200).length)
      expect(rows.length).toBeLessThanOrEqual(1)
      expect(await creditsOf(org)).toBeGreaterThanOrEqual(0)
    }
  })

  it("of an organization with a payment method may go below nothing", async () => {
    const before = await creditsOf("dev")
    await (await node.post("/v1/completions", completion())).arrayBuffer()
    await untilIdle(node)
    const [row] = await receiptsOf(node, "dev")
    expect(await creditsOf("dev")).toBe(before - row!.microDollars)
    expect(await creditsOf("dev")).toBeLessThan(0)
    expect((await node.post("/v1/completions", completion())).status).toBe(200)
  })
})
