// GET /v1/completions/ws with the `ws` client: the frames of protocol 7.6, several generations at once, cancelling, and
// wrong credentials, invalid frames and sudden disconnects.
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import { type Refused, SocketClient } from "../../support/clients/SocketClient.ts"
import { fingerprint, usage } from "../../support/clients/TextRecords.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { fakeModel, llamaModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilIdle } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  const small = { ...fakeModel, id: "small", options: { contextTokens: 8 } }
  const many = { ...fakeModel, id: "many", options: { slots: 64 } }
  node = await startNode({ models: [fakeModel, small, many, llamaModel] })
})
afterAll(() => node.stop())

const address = (query = `?token=${node.keys.dev}`) => `${node.socketBase}/v1/completions/ws${query}`
const open = () => SocketClient.open(address())
const start = (request_id: string | number, steps: Readonly<Record<string, unknown>>, more: object = {}) => ({
  model: "fake",
  prompt: script(steps),
  request_id,
  ...more,
})
const endless = { tokens: 4000, tokenMs: 10 }
const busy = async () => (await node.metrics()).get('edgewise_slots_busy{model="fake"}')
const textOf = (frames: ReadonlyArray<Record<string, unknown>>): string =>
  frames
    .flatMap((frame) => (frame.choices ?? []) as ReadonlyArray<{ readonly text: string }>)
    .map(({ text }) => text)
    .join("")

describe("a generation", () => {
  it("is chunks with its id, then done with its usage", async () => {
    const client = await open()
    client.send(start("r1", { tokens: 2, text: ["a\n", "ü"] }))
    await client.end("r1")
    const chunk = (text: string, finish_reason: string | null) => ({
      id: expect.stringMatching(/^cmpl-[0-9a-f]{24}$/),
      object: "text_completion",
      created: expect.any(Number),
      model: "fake",
      choices: [{ text, index: 0, logprobs: null, finish_reason }],
      request_id: "r1",
    })
    expect(client.frames).toStrictEqual([
      chunk("a\n", null),
      chunk("ü", null),
      { ...chunk("", "stop"), system_fingerprint: fingerprint },
      {
        type: "done",
        request_id: "r1",
        usage: usage(1, 2),
      },
    ])
    client.socket.close()
  })

  it("says what /v1/completions says", async () => {
    const client = await open()
    const body = { model: "llama", prompt: "Once upon a time", seed: 4, temperature: 1, max_tokens: 32 }
    client.send({ ...body, request_id: 1 })
    const { usage } = await client.end(1)
    const record = (await (await node.post("/v1/completions", body)).json()) as {
      choices: [{ text: string }]
      usage: unknown
    }
    expect(textOf(client.of(1))).toBe(record.choices[0].text)
    expect(usage).toEqual(record.usage)
    client.socket.close()
  })

  it("without an id gets one, and a number may be one", async () => {
    const client = await open()
    client.send({ model: "fake", prompt: script({ tokens: 1 }) })
    await client.until((frames) => frames.some(({ type }) => type === "done"))
    const ids = new Set(client.frames.map(({ request_id }) => request_id))
    expect(ids.size).toBe(1)
    expect([...ids][0]).toMatch(/^req-/)
    client.send(start(7, { tokens: 1 }))
    expect(await client.end(7)).toMatchObject({ type: "done" })
    client.socket.close()
  })

  it("streams whatever `stream` says", async () => {
    const client = await open()
    client.send(start("no", { tokens: 3 }, { stream: false }))
    await client.end("no")
    expect(client.of("no").length).toBe(5)
    client.socket.close()
  })
})

describe("several at once", () => {
  it("each gets its own text whole, ids used again after their end", async () => {
    const client = await open()
    for (const round of ["x", "y"]) {
      const from = client.frames.length
      for (let i = 0; i < 16; i++) client.send(start(`r${i}`, { tokens: 20, text: `${round}${i} ` }))
      const done = () => client.frames.slice(from).filter(({ type }) => type === "done").length
      await client.until(() => done() === 16)
      for (let i = 0; i < 16; i++) {
        const own = client.frames.slice(from).filter(({ request_id }) => request_id === `r${i}`)
        expect(textOf(own)).toBe(`${round}${i} `.repeat(20))
      }
    }
    client.socket.close()
  })

  it("go on where the gateway was held up while all of them produced", async () => {
    const client = await open()
    for (let i = 0; i < 16; i++)
      client.send(start(`r${i}`, { tokens: 300, tokenMs: 1 }, { model: "many", max_tokens: 4096 }))
    await client.until(() => client.of("r15").length > 0)
    // The node runs in this process: what its engine produces meanwhile arrives all at once.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400)
    await client.until((frames) => frames.filter(({ type }) => type === "done").length === 16)
    for (let i = 0; i < 16; i++) expect(textOf(client.of(`r${i}`))).toBe(" token".repeat(300))
    client.socket.close()
  })

  it("cancelling one stops it and no other", async () => {
    const client = await open()
    client.send(start("gone", endless, { max_tokens: 4096 }))
    const stays = { tokens: 300, tokenMs: 1, text: "s", signalAt: 250 }
    client.send(start("stays", stays, { max_tokens: 4096 }))
    await client.until(() => client.of("gone").length > 5 && client.of("stays").length > 0)
    client.send({ type: "cancel", request_id: "gone" })
    await eventually(async () => (await busy()) === 1, "one slot is free")
    const before = client.of("gone").length
    process.kill(node.gauges("fake").pid!, "SIGUSR2")
    expect(await client.end("stays")).toMatchObject({ type: "done" })
    expect(textOf(client.of("stays"))).toBe("s".repeat(300))
    expect(client.of("gone").length).toBe(before)
    expect(client.of("gone").some((frame) => "type" in frame)).toBe(false)
    // Its id is free again, and cancelling an unknown id has no effect.
    client.send({ type: "cancel", request_id: "gone" })
    client.send(start("gone", { tokens: 1 }))
    expect(await client.end("gone")).toMatchObject({ type: "done" })
    expect(client.frames.some(({ type }) => type === "error")).toBe(false)
    client.socket.close()
  })

  it("an id that runs already, and a seventeenth, are refused and disturb no other generation", async () => {
    const client = await open()
    const held = { tokens: 200, tokenMs: 1, signalAt: 100 }
    const long = (id: string) => start(id, held, { model: "many", max_tokens: 4096 })
    for (let i = 0; i < 16; i++) client.send(long(`r${i}`))
    await client.until(() => client.of("r15").length > 0)
    client.send(long("r3"))
    client.send(long("one-too-many"))
    expect(await client.end("one-too-many")).toEqual({
      type: "error",
      error: "request_id: at most 16 generations may run on one socket",
      request_id: "one-too-many",
    })
    expect(await client.end("r3")).toEqual({
      type: "error",
      error: "request_id: is already running on this socket",
      request_id: "r3",
    })
    process.kill(node.gauges("many").pid!, "SIGUSR2")
    await client.until((frames) => frames.filter(({ type }) => type === "done").length === 16)
    expect(textOf(client.of("r3"))).toBe(" token".repeat(200))
    client.socket.close()
  })
})

describe("a failure is a frame, and the socket stays", () => {
  it.each<readonly [string, object | string, object]>([
    ["no JSON", "{", { type: "error", error: "body: is not valid JSON" }],
    ["no object", "[1]", { type: "error", error: expect.stringMatching(/^body: /) }],
    ["nothing", "", { type: "error", error: "body: is not valid JSON" }],
    [
      "a bad parameter",
      { model: "fake", prompt: "x", temperature: 9, request_id: "a" },
      { type: "error", error: "temperature: must be between 0 and 2", request_id: "a" },
    ],
    [
      "no prompt",
      { model: "fake", request_id: "a" },
      { type: "error", error: "prompt: is required", request_id: "a" },
    ],
    [
      "an unknown model",
      { model: "unknown", prompt: "x", request_id: "a" },
      { type: "error", error: "Model not loaded", request_id: "a" },
    ],
    [
      "a prompt over the context",
      { model: "small", prompt: "a b c d e f g h i", request_id: 5 },
      {
        type: "error",
        error: "prompt: 9 prompt tokens do not fit the model's context of 8 tokens",
        request_id: 5,
      },
    ],
    [
      "an engine that fails",
      { model: "fake", prompt: script({ tokens: 3, failAt: 0 }), request_id: "a" },
      { type: "error", error: "The model failed to produce an answer", request_id: "a" },
    ],
    ["a cancel without an id", { type: "cancel" }, { type: "error", error: "request_id: is required" }],
    [
      "an id of another type",
      { model: "fake", prompt: "x", request_id: {} },
      { type: "error", error: expect.stringMatching(/^request_id: /) },
    ],
    [
      "an id of 10 KB",
      { model: "fake", prompt: "x", request_id: "i".repeat(10_000) },
      { type: "error", error: expect.stringMatching(/^request_id: /) },
    ],
  ])("%s", async (_, frame, error) => {
    const client = await open()
    client.send(frame)
    await client.until((frames) => frames.some(({ type }) => type === "error"))
    expect(client.frames.find(({ type }) => type === "error")).toMatchObject(error)
    client.send(start("after", { tokens: 1 }))
    expect(await client.end("after")).toMatchObject({ type: "done" })
    client.socket.close()
  })

  it("a binary frame", async () => {
    const client = await open()
    client.socket.send(Buffer.from(JSON.stringify(start("b", { tokens: 1 }))), { binary: true })
    await client.until((frames) => frames.length > 0)
    expect(client.frames).toEqual([{ type: "error", error: "frame: must be a text frame" }])
    client.socket.close()
  })

  it("a failure midway comes after the text before it", async () => {
    const client = await open()
    client.send(start("f", { tokens: 9, failAt: 4 }))
    expect(await client.end("f")).toMatchObject({ type: "error" })
    expect(textOf(client.of("f"))).toBe(" token".repeat(4))
    client.socket.close()
  })
})

describe("admission", () => {
  it("a key in the query or in the header", async () => {
    const byHeader = await SocketClient.open(address(""), { authorization: `Bearer ${node.keys.dev}` })
    byHeader.send(start("h", { tokens: 1 }))
    expect(await byHeader.end("h")).toMatchObject({ type: "done" })
    byHeader.socket.close()
    expect((await byHeader.closed).code).toBe(1005)
  })

  it.each<readonly [string, () => string, string]>([
    ["no credential", () => "", "Missing bearer token"],
    ["an unknown key", () => `?token=svc_${"A".repeat(32)}`, "Invalid API key"],
    ["a revoked key", () => `?token=${node.keys.revoked}`, "Invalid API key"],
    ["nonsense", () => "?token=nonsense", "Invalid token: Not enough segments"],
  ])("not %s: 401 before the upgrade", async (_, query, detail) => {
    const refused = (await SocketClient.connect(address(query()))) as Refused
    expect(refused.status).toBe(401)
    expect(JSON.parse(refused.body)).toEqual({ detail })
  })

  it("not an organization without a cent: 402 before the upgrade", async () => {
    const refused = (await SocketClient.connect(address(`?token=${node.keys.broke}`))) as Refused
    expect(refused.status).toBe(402)
    expect(JSON.parse(refused.body)).toEqual({ detail: "Billing access denied" })
  })

  it("not a user over the limit: 429 with the wait, and frames count too", async () => {
    const limited = await startNode({ rateLimit: 3 })
    try {
      const url = `${limited.socketBase}/v1/completions/ws?token=${limited.keys.dev}`
      const client = await SocketClient.open(url)
      for (const id of ["1", "2", "3"]) client.send(start(id, { tokens: 1 }))
      expect((await client.end("2")).type).toBe("done")
      expect(await client.end("3")).toEqual({ type: "error", error: "Rate limit exceeded", request_id: "3" })
      const refused = (await SocketClient.connect(url)) as Refused
      expect(refused.status).toBe(429)
      expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0)
      client.socket.close()
    } finally {
      await limited.stop()
    }
  })

  it("not a plain request", async () => {
    const response = await node.fetch("/v1/completions/ws", {
      headers: { authorization: `Bearer ${node.keys.dev}` },
    })
    expect(response.status).toBe(400)
    expect(await response.json()).toEqual({ detail: "upgrade: this address speaks WebSocket only" })
  })

  it("a key revoked meanwhile closes the socket within 5 s", async () => {
    const made = await node.run(
      Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "dev", user: "leaving" })),
    )
    const client = await SocketClient.open(address(`?token=${made.apiKey}`))
    client.send(start("r", endless, { max_tokens: 4096 }))
    await client.until(() => client.of("r").length > 0)
    await node.run(Effect.flatMap(Accounts, (accounts) => accounts.revokeKey(made.keyId)))
    expect(await client.closed).toEqual({ code: 1008, reason: "credential revoked" })
    await untilIdle(node)
  })
})

describe("a client that leaves", () => {
  it.each(["vanishes", "closes"])("and %s frees every slot it held", async (how) => {
    const client = await open()
    for (let i = 0; i < 8; i++) client.send(start(`r${i}`, endless, { max_tokens: 4096 }))
    await client.until(() => client.of("r7").length > 0)
    expect(await busy()).toBe(8)
    if (how === "vanishes") client.vanish()
    else client.socket.close(1000)
    await untilIdle(node)
    await eventually(() => node.counts.webSockets === 0, "the socket is gone")
  })
})

it("nothing is left behind", async () => {
  await untilIdle(node)
  await eventually(() => node.counts.inFlight === 0, "no request runs")
})
