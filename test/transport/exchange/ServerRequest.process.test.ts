import { Effect, Stream } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  chunkedBytes,
  headerOf,
  jsonOf,
  RawConnection,
  rawRequest,
  requestBytes,
} from "../../support/clients/RawHttp.ts"
import { eventually, onNode, startListener, type TestListener } from "../TestListener.ts"

const Request = HttpServerRequest.HttpServerRequest
const route = HttpRouter.route

let server: TestListener
beforeAll(async () => {
  server = await startListener(
    [
      route("GET", "/hello", Effect.succeed(HttpServerResponse.text("hello"))),
      route(
        "*",
        "/where/*",
        Effect.map(Request, (request) =>
          HttpServerResponse.jsonUnsafe({
            method: request.method,
            url: request.url,
            cookies: request.cookies,
          }),
        ),
      ),
      route(
        "GET",
        "/headers",
        Effect.map(Request, (request) => HttpServerResponse.jsonUnsafe({ ...request.headers })),
      ),
      route("GET", "/later", Effect.as(Effect.sleep("5 millis"), HttpServerResponse.text("later"))),
      route(
        "POST",
        "/echo",
        Effect.gen(function* () {
          const request = yield* Request
          return HttpServerResponse.text(yield* request.text)
        }),
      ),
      route(
        "POST",
        "/count",
        Effect.gen(function* () {
          const request = yield* Request
          const bytes = yield* Stream.runFold(
            request.stream,
            () => 0,
            (sum, chunk) => sum + chunk.length,
          )
          return HttpServerResponse.jsonUnsafe({ bytes })
        }),
      ),
      route("GET", "/defect", Effect.die(new Error("secret of the house"))),
      route(
        "GET",
        "/defect-later",
        Effect.andThen(Effect.sleep("1 millis"), Effect.die(new Error("secret"))),
      ),
      route(
        "GET",
        "/split",
        Effect.succeed(HttpServerResponse.text("x", { headers: { "x-a": "b\r\nx-c: d" } })),
      ),
      route("GET", "/own", Effect.succeed(HttpServerResponse.text("x", { headers: { "x-static": "own" } }))),
      route("GET", "/nothing", Effect.succeed(HttpServerResponse.empty())),
      route(
        "GET",
        "/cookies",
        Effect.succeed(
          HttpServerResponse.text("x").pipe(
            HttpServerResponse.setCookieUnsafe("a", "1"),
            HttpServerResponse.setCookieUnsafe("b", "2"),
          ),
        ),
      ),
    ],
    { responseHeaders: { "X-Static": "always" } },
  )
})
afterAll(() => server.stop())

describe("heads", () => {
  it("answers, and sends the listener's headers with every response", async () => {
    const hello = await rawRequest(server.port, requestBytes("GET", "/hello"))
    expect([hello.status, hello.body.toString(), headerOf(hello, "x-static")]).toEqual([
      200,
      "hello",
      "always",
    ])
    const missing = await rawRequest(server.port, requestBytes("GET", "/nowhere"))
    expect([missing.status, jsonOf(missing), headerOf(missing, "x-static")]).toEqual([
      404,
      { detail: "Not Found" },
      "always",
    ])
    const own = await rawRequest(server.port, requestBytes("GET", "/own"))
    expect(headerOf(own, "x-static")).toBe("own")
  })

  it("hands over method, target and cookies as sent", async () => {
    const answer = await rawRequest(
      server.port,
      requestBytes("PATCH", "/where/%C3%A4?q=%2F&q=2", { cookie: "a=1; b=2" }),
    )
    expect(jsonOf(answer)).toEqual({
      method: "PATCH",
      url: "/where/%C3%A4?q=%2F&q=2",
      cookies: { a: "1", b: "2" },
    })
  })

  it("answers every method, preflights included", async () => {
    for (const method of ["OPTIONS", "PUT", "DELETE", "PROPFIND"]) {
      const answer = await rawRequest(server.port, requestBytes(method, "/where/x"))
      expect(jsonOf(answer)).toMatchObject({ method })
    }
    const cors = await startListener([], {}, HttpRouter.cors({ allowedOrigins: ["*"] }))
    const preflight = await rawRequest(
      cors.port,
      requestBytes("OPTIONS", "/x", { origin: "http://a", "access-control-request-method": "POST" }),
    )
    expect([preflight.status, headerOf(preflight, "access-control-allow-origin")]).toEqual([204, "*"])
    await cors.stop()
  })

  it("joins repeated headers and survives names of object members", async () => {
    const answer = await rawRequest(
      server.port,
      "GET /headers HTTP/1.1\r\nhost: t\r\nX-A: 1\r\nx-a: 2\r\nconstructor: c\r\n__proto__: p\r\ntoString: s\r\n\r\n",
    )
    expect(jsonOf(answer)).toMatchObject({ "x-a": "1, 2", constructor: "c", tostring: "s" })
  })

  it("answers HEAD with the length of GET and no body, and 204 with neither", async () => {
    const connection = await RawConnection.open(server.port)
    await connection.send(requestBytes("HEAD", "/hello"))
    const head = await connection.response({ toHead: true })
    expect([head.status, headerOf(head, "content-length")]).toEqual([200, "5"])
    // The connection is in step: a body after the head would be taken for the next response.
    await connection.send(requestBytes("GET", "/nothing"))
    const nothing = await connection.response()
    expect([nothing.status, headerOf(nothing, "content-length")]).toEqual([204, undefined])
    connection.destroy()
  })

  it("sends every cookie in a header of its own", async () => {
    const answer = await rawRequest(server.port, requestBytes("GET", "/cookies"))
    expect(answer.headers.get("set-cookie")).toEqual(["a=1", "b=2"])
  })

  it("gives defects a 500 without a word about them", async () => {
    for (const path of ["/defect", "/defect-later", "/split"]) {
      const answer = await rawRequest(server.port, requestBytes("GET", path))
      expect([answer.status, jsonOf(answer)]).toEqual([500, { detail: "Internal Server Error" }])
      expect(answer.headers.has("x-c")).toBe(false)
    }
  })

  it("refuses heads over 32 KiB with a body that says so, up to 60 KB and with a request body behind", async () => {
    const before = server.listener.counts.headsTooLarge
    for (const bytes of [33_000, 60_000]) {
      for (const body of [undefined, "x".repeat(10)]) {
        const answer = await rawRequest(
          server.port,
          requestBytes(body === undefined ? "GET" : "POST", "/echo", { "x-long": "a".repeat(bytes) }, body),
        )
        expect([answer.status, jsonOf(answer)]).toEqual([431, { detail: "headers: larger than 32768 bytes" }])
      }
    }
    expect(server.listener.counts.headsTooLarge - before).toBe(4)
    const fits = await rawRequest(
      server.port,
      requestBytes("GET", "/hello", { "x-long": "a".repeat(32_000) }),
    )
    expect(fits.status).toBe(200)
  })
})

describe("connections", () => {
  it("answers 16 pipelined requests in their order", async () => {
    const paths = Array.from({ length: 16 }, (_, i) => `/where/${i}`)
    let answered = 0
    let connections = 0
    // uWebSockets.js closes the connection where the process stands still for longer than the requests of a tick may take: the next test.
    for (; answered < paths.length && connections < (onNode ? 1 : 4); connections++) {
      const connection = await RawConnection.open(server.port)
      const left = paths.slice(answered)
      await connection.send(Buffer.concat(left.map((path) => requestBytes("GET", path))))
      for (const path of left) {
        const response = await connection.response().catch((error: unknown) => {
          if (!connection.isOver) throw error
          return undefined
        })
        if (response === undefined) break
        expect(jsonOf(response)).toMatchObject({ url: path })
        answered++
      }
      connection.destroy()
    }
    expect(answered).toBe(paths.length)
  })

  it("closes with uWebSockets.js, and waits with Node, when a request arrives behind one without its answer yet", async () => {
    const connection = await RawConnection.open(server.port)
    await connection.send(Buffer.concat([requestBytes("GET", "/later"), requestBytes("GET", "/hello")]))
    if (onNode) {
      expect((await connection.response()).body.toString()).toBe("later")
      expect((await connection.response()).body.toString()).toBe("hello")
      connection.destroy()
    } else {
      await connection.closed
      expect(connection.unread.length).toBe(0)
    }
    await eventually(() => server.listener.counts.inFlight === 0, "the abandoned request ends")
    expect((await rawRequest(server.port, requestBytes("GET", "/hello"))).status).toBe(200)
  })

  it("serves one connection again and again, synchronous, asynchronous and with bodies", async () => {
    const connection = await RawConnection.open(server.port)
    for (let i = 0; i < 5; i++) {
      await connection.send(requestBytes("GET", "/hello"))
      expect((await connection.response()).body.toString()).toBe("hello")
      await connection.send(requestBytes("GET", "/later"))
      expect((await connection.response()).body.toString()).toBe("later")
      await connection.send(requestBytes("POST", "/echo", {}, `body ${i}`))
      expect((await connection.response()).body.toString()).toBe(`body ${i}`)
    }
    connection.destroy()
  })

  it("closes after the response when the client asks for it", async () => {
    const connection = await RawConnection.open(server.port)
    await connection.send(requestBytes("GET", "/later", { connection: "close" }))
    expect((await connection.response()).body.toString()).toBe("later")
    expect(await connection.closed).toBeUndefined()
  })

  it("outlives malformed requests", async () => {
    const malformed = [
      "\x00\x01\x02\r\n\r\n",
      "GET /hello HTTP/9.9\r\nhost: t\r\n\r\n",
      "GET  HTTP/1.1\r\n\r\n\r\n",
      "POST /echo HTTP/1.1\r\nhost: t\r\ncontent-length: -1\r\n\r\n",
      "POST /echo HTTP/1.1\r\nhost: t\r\ncontent-length: 99999999999999999999999\r\n\r\n",
      "POST /echo HTTP/1.1\r\nhost: t\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST /echo HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nabc\r\n",
      "GET /hello HTTP/1.1\r\nupgrade: websocket\r\nhost: t\r\nsec-websocket-key: short\r\n\r\n",
      `GET /${"a".repeat(600_000)} HTTP/1.1\r\nhost: t\r\n\r\n`,
      "OPTIONS * HTTP/1.1\r\nhost: t\r\n\r\n",
    ]
    for (const bytes of malformed) {
      const connection = await RawConnection.open(server.port)
      await connection.send(bytes)
      await Promise.race([connection.closed, connection.bytes(12).catch(() => undefined)])
      connection.destroy()
    }
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 200 }), async (bytes) => {
        const connection = await RawConnection.open(server.port)
        await connection.send(bytes)
        connection.destroy()
      }),
      { numRuns: 50 },
    )
    expect((await rawRequest(server.port, requestBytes("GET", "/hello"))).body.toString()).toBe("hello")
  })
})

describe("bodies", () => {
  it("are the same however their bytes arrive", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: "grapheme", maxLength: 300 }),
        fc.boolean(),
        fc.array(fc.integer({ min: 1, max: 80 }), { maxLength: 12 }),
        async (body, chunked, sizes) => {
          const bytes = Buffer.from(body)
          const request = chunked
            ? Buffer.concat([
                requestBytes("POST", "/echo", { "transfer-encoding": "chunked" }),
                chunkedBytes(
                  bytes.length === 0 ? [] : [bytes.subarray(0, 7), bytes.subarray(7)].filter((p) => p.length),
                ),
              ])
            : requestBytes("POST", "/echo", {}, bytes)
          const connection = await RawConnection.open(server.port)
          let at = 0
          for (const size of sizes) {
            await connection.send(request.subarray(at, at + size))
            at += size
          }
          await connection.send(request.subarray(at))
          const answer = await connection.response()
          connection.destroy()
          expect(answer.body.equals(bytes)).toBe(true)
        },
      ),
      { numRuns: 60 },
    )
  })

  it("stream in bounded memory and arrive whole", async () => {
    const size = 6_000_000
    const answer = await rawRequest(server.port, requestBytes("POST", "/count", {}, Buffer.alloc(size, 97)))
    expect(jsonOf(answer)).toEqual({ bytes: size })
    expect(server.listener.counts.bodyBufferedBytes).toBe(0)
  })

  it("may be ignored: the connection serves the next request", async () => {
    const connection = await RawConnection.open(server.port)
    await connection.send(requestBytes("POST", "/nowhere", {}, Buffer.alloc(3_000_000)))
    expect((await connection.response()).status).toBe(404)
    await connection.send(requestBytes("GET", "/hello"))
    expect((await connection.response()).body.toString()).toBe("hello")
    connection.destroy()
  })

  it("get the interim response that curl waits for", async () => {
    const connection = await RawConnection.open(server.port)
    await connection.send(requestBytes("POST", "/echo", { expect: "100-continue", "content-length": "5" }))
    expect((await connection.bytes(25)).toString()).toContain("HTTP/1.1 100 Continue")
    await connection.send("hello")
    expect((await connection.response()).body.toString()).toBe("hello")
    connection.destroy()
  })
})
