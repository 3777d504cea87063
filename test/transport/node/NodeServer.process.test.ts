// What Node's own server does that uWebSockets.js does not: request lines in pieces, HTTP/1.0, `Expect`, requests that
// wait for their turn, and deadlines of its own. Everything else is tested on both: see CONTRIBUTING.md.
import { Deferred, Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { sinkResponse } from "#http/SinkBody.ts"
import { headerOf, jsonOf, RawConnection, rawRequest, requestBytes } from "../../support/clients/RawHttp.ts"
import { eventually, startListener, type TestListener } from "../TestListener.ts"

const { HttpServerRequest: Request } = HttpServerRequest
const text = HttpServerResponse.text

let gate = Deferred.makeUnsafe<void>()
let server: TestListener
const routes = [
  HttpRouter.route("GET", "/hello", Effect.succeed(text("hello"))),
  HttpRouter.route(
    "GET",
    "/gated",
    Effect.as(
      Effect.suspend(() => Deferred.await(gate)),
      text("through"),
    ),
  ),
  HttpRouter.route(
    "POST",
    "/echo",
    Effect.gen(function* () {
      return text(yield* (yield* Request).text)
    }),
  ),
  HttpRouter.route("POST", "/refuse", Effect.succeed(HttpServerResponse.empty({ status: 401 }))),
  HttpRouter.route("GET", "/big", Effect.succeed(HttpServerResponse.uint8Array(Buffer.alloc(64 * 1024, 97)))),
  HttpRouter.route(
    "GET",
    "/stream",
    Effect.succeed(
      sinkResponse(
        (sink) =>
          Effect.sync(() => {
            sink.write("one ")
            sink.write(Buffer.from("two"))
          }),
        { contentType: "text/plain" },
      ),
    ),
  ),
  HttpRouter.route(
    "GET",
    "/breaks",
    Effect.succeed(
      sinkResponse(
        (sink) =>
          Effect.andThen(
            Effect.sync(() => sink.write("half")),
            Effect.fail("broken"),
          ),
        {
          contentType: "text/plain",
        },
      ),
    ),
  ),
  HttpRouter.route(
    "GET",
    "/socket",
    Effect.gen(function* () {
      const socket = yield* (yield* Request).upgrade
      yield* Effect.scoped(Effect.flatMap(socket.reader, (reader) => Effect.forever(reader.pull))).pipe(
        Effect.ignore,
      )
      return HttpServerResponse.empty()
    }),
  ),
]

beforeAll(async () => {
  server = await startListener(routes, { transport: "node" })
})
afterAll(() => server.stop())

/** When this has been answered, the server has read what was sent on other connections before. */
const settled = ({ port } = server) => rawRequest(port, requestBytes("GET", "/hello"))

const hello = "GET /hello HTTP/1.1\r\nhost: localhost\r\nx-a: bcde\r\n\r\n"

describe("a request in two segments", () => {
  it("is answered wherever it is split", async () => {
    expect(hello.length).toBe(51)
    const answers = Array.from({ length: hello.length - 1 }, async (_, i) => {
      const connection = await RawConnection.open(server.port)
      await connection.send(hello.slice(0, i + 1))
      await settled()
      await connection.send(hello.slice(i + 1))
      const { status } = await connection.response()
      connection.destroy()
      return status
    })
    expect(new Set(await Promise.all(answers))).toEqual(new Set([200]))
  })
})

describe("HTTP/1.0", () => {
  it("is answered, with and without a Host, and the connection closes", async () => {
    for (const host of ["", "Host: a\r\n"]) {
      const connection = await RawConnection.open(server.port)
      await connection.send(`GET /hello HTTP/1.0\r\n${host}\r\n`)
      const answer = await connection.response()
      expect([answer.status, answer.body.toString(), headerOf(answer, "connection")]).toEqual([
        200,
        "hello",
        "close",
      ])
      expect(await connection.closed).toBeUndefined()
    }
  })

  it("keeps the connection if the client asks for it", async () => {
    const connection = await RawConnection.open(server.port)
    for (let i = 0; i < 2; i++) {
      await connection.send("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
      expect((await connection.response()).body.toString()).toBe("hello")
    }
    connection.destroy()
  })

  it("gets a stream without chunks, which ends with its connection", async () => {
    const connection = await RawConnection.open(server.port)
    await connection.send("GET /stream HTTP/1.0\r\n\r\n")
    expect(await connection.closed).toBeUndefined()
    const received = connection.unread.toString()
    expect(received).not.toContain("chunked")
    expect(received.slice(received.indexOf("\r\n\r\n") + 4)).toBe("one two")
  })

  it("gets a reset where a stream breaks off: it must not look complete", async () => {
    const connection = await RawConnection.open(server.port)
    await connection.send("GET /breaks HTTP/1.0\r\n\r\n")
    expect(await connection.closed).toBe("ECONNRESET")
  })

  it("must not use an encoding, whose end a proxy may see elsewhere", async () => {
    const bytes = "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
    expect((await rawRequest(server.port, bytes)).status).toBe(400)
  })
})

describe("Expect: 100-continue", () => {
  const expecting = (path: string, length: number) =>
    requestBytes("POST", path, { expect: "100-continue", "content-length": String(length) })

  it("is answered when the body is read", async () => {
    for (const length of [5, 100_000]) {
      const connection = await RawConnection.open(server.port)
      await connection.send(expecting("/echo", length))
      expect((await connection.bytes(12)).toString("latin1")).toMatch(/^HTTP\/1\.1 100/)
      await connection.send("a".repeat(length))
      expect((await connection.response()).body.length).toBe(length)
      connection.destroy()
    }
  })

  it("is refused without it, and the connection closes", async () => {
    const connection = await RawConnection.open(server.port)
    await connection.send(expecting("/refuse", 100_000))
    const answer = await connection.response()
    expect([answer.status, headerOf(answer, "connection")]).toEqual([401, "close"])
    await connection.closed
    expect(connection.unread.toString()).not.toContain("100 Continue")
  })
})

describe("requests that come before the last one is answered", () => {
  it("wait, and are answered in order", async () => {
    gate = Deferred.makeUnsafe()
    const connection = await RawConnection.open(server.port)
    const echo = requestBytes("POST", "/echo", {}, "behind")
    await connection.send(Buffer.concat([requestBytes("GET", "/gated"), echo, requestBytes("GET", "/hello")]))
    await eventually(() => server.listener.counts.inFlight === 1, "the first runs")
    Deferred.doneUnsafe(gate, Effect.void)
    const bodies = []
    for (let i = 0; i < 3; i++) bodies.push((await connection.response()).body.toString())
    expect(bodies).toEqual(["through", "behind", "hello"])
    connection.destroy()
  })

  it("are 32 at most, then the connection closes", async () => {
    gate = Deferred.makeUnsafe()
    const connection = await RawConnection.open(server.port)
    const before = server.listener.counts.requests
    await connection.send(
      Buffer.concat([requestBytes("GET", "/gated"), ...Array(100).fill(requestBytes("GET", "/hello"))]),
    )
    await settled()
    Deferred.doneUnsafe(gate, Effect.void)
    await connection.closed
    expect(connection.unread.toString().match(/HTTP\/1\.1 200/g)).toHaveLength(33)
    expect(server.listener.counts.requests - before).toBe(34)
  })

  it("are not served behind one that closes the connection", async () => {
    const before = server.listener.counts.requests
    const connection = await RawConnection.open(server.port)
    const last = requestBytes("GET", "/hello", { connection: "close" })
    await connection.send(Buffer.concat([last, requestBytes("GET", "/hello")]))
    expect((await connection.response()).status).toBe(200)
    await connection.closed
    expect([connection.unread.length, server.listener.counts.requests - before]).toEqual([0, 1])
  })

  it("are not answered behind bytes that are no request; those before are", async () => {
    const connection = await RawConnection.open(server.port)
    await connection.send(`${hello}nonsense\r\n\r\n${hello}`)
    expect((await connection.response()).status).toBe(200)
    await connection.closed
    expect(connection.unread.toString()).not.toContain("200 OK")
  })
})

describe("deadlines", () => {
  // A listener of its own: on a busy machine this process may pause for that long in the middle of other tests.
  let hasty: TestListener
  beforeAll(async () => {
    const settings = { stallTimeoutMs: 400, bodyStallTimeoutMs: 400, lingerMs: 200 }
    hasty = await startListener(routes, { transport: "node", settings })
  })
  afterAll(() => hasty.stop())

  it("a reader that takes nothing of an ended response is cut", async () => {
    const { counts } = hasty.listener
    const connection = await RawConnection.open(hasty.port)
    connection.socket.pause()
    // Far more than the kernel holds, each response ended at once.
    for (let i = 0; i < 400 && counts.slowReadersCut === 0; i++) {
      void connection.send(requestBytes("GET", "/big"))
      await settled(hasty)
    }
    await eventually(() => counts.slowReadersCut === 1, "it is cut")
    connection.destroy()
  })

  it("the rest of an answered request must come", async () => {
    const connection = await RawConnection.open(hasty.port)
    await connection.send(requestBytes("POST", "/refuse", { "content-length": "100000" }))
    expect((await connection.response()).status).toBe(401)
    await connection.closed
  })
})

describe("a WebSocket", () => {
  const handshake = requestBytes("GET", "/socket", {
    upgrade: "websocket",
    connection: "Upgrade",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version": "13",
  })
  const open = async (): Promise<RawConnection> => {
    const connection = await RawConnection.open(server.port)
    await connection.send(handshake)
    await connection.bytes(12)
    return connection
  }

  it("is closed for a frame without a mask", async () => {
    const connection = await open()
    await connection.send(Uint8Array.from([0x81, 1, 97]))
    await connection.closed
  })

  it("that was never asked for is an ordinary request", async () => {
    const answer = await rawRequest(
      server.port,
      requestBytes("GET", "/hello", { upgrade: "h2c", connection: "Upgrade" }),
    )
    expect([answer.status, answer.body.toString()]).toEqual([200, "hello"])
  })
})

describe("CONNECT", () => {
  it("is refused with an answer", async () => {
    const answer = await rawRequest(server.port, "CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n")
    expect([answer.status, jsonOf(answer)]).toEqual([400, { detail: "target: must be a path" }])
  })
})
