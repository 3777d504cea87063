// The head of every answer: its id, its times, the caller's rate, the receipt, and cross-origin
// headers. Over real listeners of all three roles, in raw bytes.
import { connect } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { headerOf, type RawResponse, rawRequest, requestBytes } from "../../support/clients/RawHttp.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { startRoles, type TestRoles } from "../../support/nodes/TestRoles.ts"

let node: TestNode
let roles: TestRoles
beforeAll(async () => {
  ;[node, roles] = await Promise.all([startNode({ rateLimit: 100_000 }), startRoles()])
  await untilLoaded(node, "fake")
})
afterAll(() => Promise.all([node.stop(), roles.stop()]))

const chat = (extra: object = {}, prompt = "hello") =>
  JSON.stringify({ model: "fake", messages: [{ role: "user", content: prompt }], max_tokens: 3, ...extra })

type Headers = Readonly<Record<string, string>>

const ask = (
  method: string,
  path: string,
  headers: Headers = {},
  body?: string,
  port = node.port,
): Promise<RawResponse> =>
  rawRequest(port, requestBytes(method, path, headers, body), { toHead: method === "HEAD" })

const bearer = (key: string): Headers => ({ authorization: `Bearer ${key}` })
const own = /^req-[0-9a-f]{24}$/

/** Steps by name, in milliseconds; throws on an invalid Server-Timing header. */
const timingOf = (response: RawResponse): Record<string, number> =>
  Object.fromEntries(
    (headerOf(response, "server-timing") ?? "").split(", ").map((entry) => {
      const match = /^([a-z]+);dur=(\d+(?:\.\d{1,2})?)$/.exec(entry)
      if (match === null) throw new Error(`not a step: ${JSON.stringify(entry)}`)
      return [match[1]!, Number(match[2])]
    }),
  )

const webSocket: Headers = {
  upgrade: "websocket",
  connection: "Upgrade",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}

/** Every answer that runs no model, by role, and its status. */
const answers: ReadonlyArray<
  readonly [name: string, status: number, ask: (headers: Headers) => Promise<RawResponse>]
> = [
  ["a list", 200, (h) => ask("GET", "/v1/models", { ...h, ...bearer(node.keys.dev) })],
  ["no credential", 401, (h) => ask("GET", "/v1/models", h)],
  ["no money", 402, (h) => ask("POST", "/v1/chat/completions", { ...h, ...bearer(node.keys.broke) }, chat())],
  ["a scope too little", 403, (h) => ask("GET", "/v1/gpu/status", { ...h, ...bearer(node.keys.dev) })],
  ["an unknown path", 404, (h) => ask("GET", "/v1/nothing", h)],
  ["a wrong method", 405, (h) => ask("PUT", "/v1/models", h)],
  ["a bad body", 400, (h) => ask("POST", "/v1/chat/completions", { ...h, ...bearer(node.keys.dev) }, "{")],
  [
    "a body too large",
    413,
    (h) =>
      ask("POST", "/v1/chat/completions", {
        ...h,
        ...bearer(node.keys.dev),
        "content-length": "9000000",
      }),
  ],
  ["a head too large", 431, (h) => ask("GET", "/health", { ...h, "x-long": "x".repeat(40_000) })],
  ["a preflight", 204, (h) => ask("OPTIONS", "/v1/chat/completions", h)],
  ["a HEAD", 200, (h) => ask("HEAD", "/health", h)],
  ["a page", 200, (h) => ask("GET", "/", h)],
  ["the metrics", 200, (h) => ask("GET", "/metrics", h)],
  ["a WebSocket refused", 401, (h) => ask("GET", "/v1/completions/ws", { ...h, ...webSocket })],
  ["a socket address over HTTP", 400, (h) => ask("GET", "/v1/completions/ws", h)],
  [
    "a session",
    401,
    (h) => ask("POST", "/v1/auth/session", h, undefined, Number(new URL(roles.base.auth).port)),
  ],
  [
    "the key set",
    200,
    (h) => ask("GET", "/.well-known/jwks.json", h, undefined, Number(new URL(roles.base.auth).port)),
  ],
  ["a route", 200, (h) => ask("GET", "/v1/route", h, undefined, Number(new URL(roles.base.router).port))],
  ["a route refused", 403, (h) => ask("POST", "/v1/route", h, "", Number(new URL(roles.base.router).port))],
]

describe("every answer", () => {
  it.each(answers)("%s (%i)", async (_, status, send) => {
    const response = await send({ "x-request-id": "trace-1:a/b=c" })
    expect(response.status).toBe(status)
    expect(headerOf(response, "x-request-id")).toBe("trace-1:a/b=c")
    expect(timingOf(response).total).toBeGreaterThanOrEqual(0)
    // Once each: two of them would be joined to one wrong value.
    for (const [name, value] of Object.entries({
      "access-control-allow-origin": "*",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "x-frame-options": "DENY",
    })) {
      expect([name, response.headers.get(name)]).toEqual([name, [value]])
    }
    expect(headerOf(response, "content-security-policy")).toContain("frame-ancestors 'none'")
    expect(headerOf(response, "access-control-expose-headers")).toContain("X-Request-Id")
    expect(headerOf(response, "x-receipt-id")).toBeUndefined()
  })

  it("has an id of its own where the client brings none, or none that may be repeated", async () => {
    const seen = new Set<string>()
    for (const given of [undefined, "", "a b", "a,b", 'a"b', "ä", "x".repeat(129), "{}", "<b>"]) {
      const response = await ask("GET", "/health", given === undefined ? {} : { "x-request-id": given })
      const id = headerOf(response, "x-request-id")!
      expect([given, id]).toEqual([given, expect.stringMatching(own)])
      seen.add(id)
    }
    expect(seen.size).toBe(9)
    const twice = await rawRequest(
      node.port,
      "GET /health HTTP/1.1\r\nhost: test\r\nx-request-id: a\r\nx-request-id: b\r\n\r\n",
    )
    expect(headerOf(twice, "x-request-id")).toMatch(own)
  })

  it("a WebSocket's handshake as well", async () => {
    const { port } = node
    for (const [query, status] of [
      [`?token=${node.keys.dev}`, "101"],
      [`?token=${node.keys.broke}`, "402"],
    ] as const) {
      const socket = connect(port, "127.0.0.1")
      socket.write(
        requestBytes("GET", `/v1/completions/ws${query}`, { ...webSocket, "x-request-id": "ws-1" }),
      )
      const head = await new Promise<string>((resolve) => {
        let text = ""
        socket.on("data", (bytes) => {
          text += bytes.toString("latin1")
          if (text.includes("\r\n\r\n")) resolve(text)
        })
      })
      socket.destroy()
      expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
      expect(head).toContain("\r\nx-request-id: ws-1\r\n")
      expect(head).toMatch(/\r\nserver-timing: auth;dur=[\d.]+, total;dur=[\d.]+\r\n/)
    }
  })
})

describe("times", () => {
  // The others wait until the node has had the first one for a while.
  const timed = script({ tokens: 3, tokenMs: 1, signalAt: 1 })
  const firsts = async () =>
    (await node.metrics()).get('edgewise_time_to_first_token_ms_count{model="fake"}') ?? 0
  const askTimed = async (path: string, body: string): Promise<RawResponse> => {
    const before = await firsts()
    const response = ask("POST", path, bearer(node.keys.dev), body)
    await eventually(async () => (await firsts()) > before, "the node has the first token")
    await new Promise((resolve) => setTimeout(resolve, 50))
    process.kill(node.gauges("fake").pid!, "SIGUSR2")
    return response
  }

  it("of a whole answer: caller, engine, first token, all", async () => {
    const response = await askTimed("/v1/chat/completions", chat({}, timed))
    expect(response.status).toBe(200)
    const { auth, first, queue, total } = timingOf(response)
    expect([auth, queue, first, total].every((ms) => ms !== undefined)).toBe(true)
    expect(auth!).toBeLessThanOrEqual(first!)
    expect(queue!).toBeLessThanOrEqual(first!)
    expect(first!).toBeLessThanOrEqual(total!)
    expect(total! - first!).toBeGreaterThan(20)
  })

  it("of a stream: what is known when its head leaves, and the rest in its last event, if asked for", async () => {
    const read = async (path: string, request: object) => {
      const response = await askTimed(path, JSON.stringify(request))
      const events = response.body.toString().trim().split("\n\n")
      expect(events.pop()).toBe("data: [DONE]")
      const [last = {}, ...before] = events
        .map((line) => JSON.parse(line.slice("data: ".length)) as Record<string, unknown>)
        .reverse()
      expect(before.every((event) => !("timing" in event))).toBe(true)
      const steps = timingOf(response)
      expect(Object.keys(steps)).toContain("auth")
      expect(Object.keys(steps)).toContain("queue")
      return last
    }
    const messages = [{ role: "user", content: timed }]
    const stream = { model: "fake", stream: true, max_tokens: 3 }
    for (const [path, prompt] of [
      ["/v1/chat/completions", { messages }],
      ["/v1/completions", { prompt: timed }],
    ] as const) {
      const plain = await read(path, { ...stream, ...prompt })
      expect(plain).not.toHaveProperty("timing")
      const usage = await read(path, { ...stream, ...prompt, stream_options: { include_usage: true } })
      expect(usage).not.toHaveProperty("timing")
      for (const options of [{ include_timing: true }, { include_timing: true, include_usage: true }]) {
        const last = await read(path, { ...stream, ...prompt, stream_options: options })
        const timing = last.timing as Record<string, number>
        expect(Object.keys(timing)).toEqual(["auth_ms", "queue_ms", "first_unit_ms", "total_ms"])
        expect(timing.total_ms! - timing.first_unit_ms!).toBeGreaterThan(20)
        expect("usage" in last).toBe("include_usage" in options)
      }
    }
  })
})

describe("the caller's rate", () => {
  let strict: TestNode
  beforeAll(async () => {
    strict = await startNode({ rateLimit: 5 })
  })
  afterAll(() => strict.stop())

  const list = (key: string, headers: Headers = {}) =>
    ask("GET", "/v1/models", { ...bearer(key), ...headers }, undefined, strict.port)
  const rateOf = (response: RawResponse) =>
    ["limit", "remaining", "reset"].map((name) => Number(headerOf(response, `x-ratelimit-${name}`)))

  it("counts down in the head of every answer, and says when it grows again", async () => {
    const startMs = performance.now()
    for (const left of [4, 3, 2, 1, 0]) {
      // Headers and addresses change nothing.
      const response = await list(strict.keys.dev, {
        "x-forwarded-for": `192.0.2.${left}`,
        "x-request-id": `${left}`,
      })
      const [limit, remaining, reset] = rateOf(response)
      expect([response.status, limit, remaining]).toEqual([200, 5, left])
      // A minute after the first one.
      expect(reset).toBeGreaterThan(50 - (performance.now() - startMs) / 1_000)
      expect(reset).toBeLessThanOrEqual(60)
    }
    const refused = await list(strict.keys.dev)
    expect(refused.status).toBe(429)
    expect(JSON.parse(refused.body.toString())).toEqual({ detail: "Rate limit exceeded" })
    const [limit, remaining, reset] = rateOf(refused)
    expect([limit, remaining]).toEqual([5, 0])
    expect(headerOf(refused, "retry-after")).toBe(String(reset))
    // Another user is not touched, and an answer without a credential has no rate headers.
    expect((await list(strict.keys.credit)).status).toBe(200)
    const stranger = await ask("GET", "/v1/models", {}, undefined, strict.port)
    expect(headerOf(stranger, "x-ratelimit-limit")).toBeUndefined()
  })

  it("is absent where there is no limit", async () => {
    const roomy = await ask(
      "GET",
      "/v1/models",
      bearer(roles.devKey),
      undefined,
      Number(new URL(roles.base.edge).port),
    )
    expect([roomy.status, headerOf(roomy, "x-ratelimit-limit")]).toEqual([200, undefined])
  })
})
