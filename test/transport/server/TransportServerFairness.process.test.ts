// Limits on one connection or one address before its caller is known: requests that run in one tick, requests
// without a credential, connections. Others are served meanwhile.
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { CurrentRequest } from "#http/RequestContext.ts"
import { RawConnection, rawRequest, requestBytes } from "../../support/clients/RawHttp.ts"
import { eventually, startListener, type TestListener } from "../TestListener.ts"

const busyMs = 2
/** How many requests have kept the event loop busy. */
let ran = 0
const busy = Effect.gen(function* () {
  ran++
  const until = performance.now() + busyMs
  while (performance.now() < until);
  return HttpServerResponse.text((yield* HttpServerRequest.HttpServerRequest).url)
})
/** Every credential is valid. */
const known = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const notes = yield* CurrentRequest
  notes.identified = headers.authorization === "Bearer good"
  return HttpServerResponse.empty({ status: notes.identified ? 200 : 401 })
})
/** Longer than what is sent at once, and accepted by the kernel within the call that begins to send it. */
const longText = "x".repeat(100_000)
const routes = [
  HttpRouter.route("GET", "/long", Effect.succeed(HttpServerResponse.text(longText))),
  HttpRouter.route("GET", "/busy/*", busy),
  HttpRouter.route("GET", "/health", known),
  HttpRouter.route("GET", "/known", known),
]

const answersOf = (connection: RawConnection): ReadonlyArray<string> =>
  [...connection.unread.toString().matchAll(/\/busy\/(\d+)/g)].map(([, number]) => String(number))

describe("a connection that pipelines 1,000 requests", () => {
  let server: TestListener
  beforeAll(async () => {
    server = await startListener(routes)
  })
  afterAll(() => server.stop())

  it("has the first few answered, and is closed", async () => {
    const before = server.listener.counts.requests
    const connection = await RawConnection.open(server.port)
    const requests = Array.from({ length: 1_000 }, (_, i) => requestBytes("GET", `/busy/${i}`))
    await connection.send(Buffer.concat(requests))
    await connection.closed
    const answers = answersOf(connection)
    expect(answers).toEqual(answers.map((_, i) => String(i)))
    expect(server.listener.counts.requests - before).toBeLessThanOrEqual(33)
  })

  it("does not keep others waiting: 20 that come behind are all answered, behind a fifth of it at most", async () => {
    const others = await Promise.all(Array.from({ length: 20 }, () => RawConnection.open(server.port)))
    const connection = await RawConnection.open(server.port)
    const requests = Array.from({ length: 1_000 }, (_, i) => requestBytes("GET", `/busy/${i}`))
    ran = 0
    void connection.send(Buffer.concat(requests))
    for (const other of others) void other.send(requestBytes("GET", "/known"))
    for (const other of others) {
      expect((await other.response()).status).toBe(401)
      other.destroy()
    }
    // All of them would take 2 s, and every other request would wait for them.
    expect(ran).toBeLessThan(1_000 / 5)
    await connection.closed
  })
})

describe("an address that makes too many requests without a credential", () => {
  let server: TestListener
  beforeAll(async () => {
    const isTrusted = (address: string) => address === "127.0.0.1"
    // The clock stands still: the budget comes back with the time, a request a second.
    vi.spyOn(performance, "now").mockReturnValue(performance.now())
    server = await startListener(routes, { anonymousPerSecond: 1, isTrusted })
  })
  afterAll(() => {
    vi.restoreAllMocks()
    return server.stop()
  })

  const statusOf = async (path: string, headers: Record<string, string> = {}): Promise<number> =>
    (await rawRequest(server.port, requestBytes("GET", path, { "x-forwarded-for": "8.8.8.8", ...headers })))
      .status

  it("is refused, with the rest of its connection; credentials, /health and other addresses are not", async () => {
    const bad = { authorization: "Bearer bad" }
    const good = { authorization: "Bearer good" }
    for (let i = 0; i < 10; i++) expect(await statusOf("/known", good)).toBe(200)
    for (let i = 0; i < 4; i++) expect(await statusOf("/known", i % 2 === 0 ? bad : {})).toBe(401)
    const refused = await rawRequest(
      server.port,
      requestBytes("GET", "/known", { "x-forwarded-for": "8.8.8.8" }),
    )
    expect([refused.status, refused.headers.get("connection"), refused.headers.get("retry-after")]).toEqual([
      429,
      ["close"],
      ["1"],
    ])
    expect(await statusOf("/nowhere")).toBe(429)
    expect(await statusOf("/known", good)).toBe(200)
    expect(await statusOf("/known", bad)).toBe(401)
    expect(await statusOf("/health")).toBe(401)
    expect(await statusOf("/known", { "x-forwarded-for": "8.8.4.4" })).toBe(401)
    expect(server.listener.counts.anonymousRefused).toBe(2)
    await eventually(() => server.listener.counts.connections === 0, "all are closed")
  })

  it("gets a long answer to a credential that nothing has checked, although its address cannot be read any more when uWS has the last byte", async () => {
    const headers = { authorization: "Bearer good" }
    const { body, status } = await rawRequest(server.port, requestBytes("GET", "/long", headers))
    expect([status, body.toString() === longText]).toEqual([200, true])
  })
})

describe("a listener with 40 places for connections", () => {
  let server: TestListener
  beforeAll(async () => {
    server = await startListener(routes, { settings: { maxConnections: 40 } })
  })
  afterAll(() => server.stop())

  it("closes the 41st at once, and takes another when one has gone", async () => {
    const open = await Promise.all(Array.from({ length: 40 }, () => RawConnection.open(server.port)))
    await eventually(() => server.listener.counts.connections === 40, "40 are open")
    const late = await RawConnection.open(server.port)
    await late.closed
    expect(server.listener.counts.connectionsRefused).toBe(1)
    open[0]?.destroy()
    await eventually(() => server.listener.counts.connections === 39, "one has gone")
    expect((await rawRequest(server.port, requestBytes("GET", "/known"))).status).toBe(401)
    for (const one of open) one.destroy()
  })
})

describe("a head without an end", () => {
  it("is refused when 64 KB of it have come, and not when its time is over", async () => {
    const server = await startListener(routes)
    const head = Buffer.from(`GET /known HTTP/1.1\r\nhost: x\r\na: ${"a".repeat(400_000)}`)
    const all = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const connection = await RawConnection.open(server.port)
        connection.socket.write(head)
        return connection
      }),
    )
    // This one is closed when its time is over, uWS's 10 s.
    const waiting = await RawConnection.open(server.port)
    waiting.socket.write("GET /known HTTP/1.1\r\n")
    let isOver = false
    void waiting.closed.then(() => {
      isOver = true
    })
    await Promise.all(all.map((connection) => connection.closed))
    expect(isOver).toBe(false)
    waiting.destroy()
    expect(all.every((one) => /^$|^HTTP\/1\.1 431 /.test(one.unread.toString("latin1")))).toBe(true)
    await server.stop()
  })
})
