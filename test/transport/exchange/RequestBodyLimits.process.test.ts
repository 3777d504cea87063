import { Deferred, Effect, Exit, FileSystem, Layer, Schema, Stream } from "effect"
import {
  HttpIncomingMessage,
  HttpRouter,
  HttpServerRequest,
  HttpServerResponse,
  type Multipart,
} from "effect/http"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { defaultSettings, type TransportSettings } from "#transport/TransportSettings.ts"
import {
  chunkedBytes,
  headerOf,
  jsonOf,
  RawConnection,
  rawRequest,
  requestBytes,
} from "../../support/clients/RawHttp.ts"
import { scheme } from "../../support/servers/TestCertificates.ts"
import { eventually, startListener, type TestListener } from "../TestListener.ts"

const Request = HttpServerRequest.HttpServerRequest
const route = HttpRouter.route

const Files = Schema.Struct({ file: Schema.Any })
class Things extends HttpApiGroup.make("things").add(
  HttpApiEndpoint.post("make", "/api/things", {
    payload: Schema.Struct({ name: Schema.NonEmptyString }),
    success: Schema.Struct({ name: Schema.String }),
  }),
  HttpApiEndpoint.post("upload", "/api/upload", {
    payload: Files.pipe(HttpApiSchema.asMultipart({ maxFileSize: "10 MB", maxTotalSize: "10 MB" })),
    success: Schema.Struct({ bytes: Schema.Int }),
  }),
) {}
class Api extends HttpApi.make("api").add(Things) {}
const api = HttpApiBuilder.layer(Api, { openapiPath: "/openapi.json" }).pipe(
  Layer.provide(
    HttpApiBuilder.group(Api, "things", (handlers) =>
      handlers.handleAll({
        make: ({ payload }) => Effect.succeed({ name: payload.name }),
        upload: Effect.fnUntraced(function* ({ payload }) {
          const files = yield* FileSystem.FileSystem
          const [file] = payload.file as ReadonlyArray<Multipart.PersistedFile>
          const { size } = yield* Effect.orDie(files.stat(file?.path ?? ""))
          return { bytes: Number(size) }
        }),
      }),
    ),
  ),
)

let left = Deferred.makeUnsafe<Exit.Exit<unknown, unknown>>()
let server: TestListener
const counts = () => server.listener.counts
const routes = [
  route(
    "POST",
    "/text",
    Effect.gen(function* () {
      const request = yield* Request
      return HttpServerResponse.text(String((yield* request.text).length))
    }),
  ),
  route(
    "POST",
    "/stream",
    Effect.gen(function* () {
      const request = yield* Request
      const bytes = yield* Stream.runFold(
        request.stream,
        () => 0,
        (sum, chunk) => sum + chunk.length,
      )
      return HttpServerResponse.text(String(bytes))
    }),
  ),
  route(
    "POST",
    "/small",
    Effect.gen(function* () {
      const request = yield* Request
      return HttpServerResponse.text(yield* request.text)
    }).pipe(Effect.provideService(HttpIncomingMessage.MaxBodySize, 1_000n as never)),
  ),
  route(
    "POST",
    "/own-413",
    Effect.gen(function* () {
      const request = yield* Request
      return HttpServerResponse.text(yield* request.text)
    }).pipe(
      Effect.catch(() =>
        Effect.succeed(
          HttpServerResponse.jsonUnsafe({ message: "split it" }, { status: 413, headers: { "x-a": "1" } }),
        ),
      ),
    ),
  ),
  route(
    "POST",
    "/unauthorized",
    Effect.succeed(HttpServerResponse.jsonUnsafe({ detail: "no" }, { status: 401 })),
  ),
  route(
    "POST",
    "/reads",
    Effect.gen(function* () {
      const request = yield* Request
      return HttpServerResponse.text(yield* request.text)
    }).pipe(Effect.onExit((exit) => Deferred.succeed(left, exit))),
  ),
  route(
    "POST",
    "/never-reads",
    Effect.onExit(Effect.never, (exit) => Deferred.succeed(left, exit)),
  ),
]
const start = (settings: Partial<TransportSettings> = {}) =>
  startListener(routes, { responseHeaders: { "x-static": "always" }, settings }, api)
beforeAll(async () => {
  server = await start()
})
afterAll(() => server.stop())
const quiet = (of = server) => {
  const { counts } = of.listener
  return eventually(
    () => counts.inFlight === 0 && counts.bodyBufferedBytes === 0 && counts.connections === 0,
    `nothing in flight, buffered or open: ${JSON.stringify(counts)}`,
  )
}

describe("bodies over the cap", () => {
  const tooLarge = { detail: "body: larger than 8000000 bytes" }
  it("are refused from their content-length alone, and the connection closes", async () => {
    const hasty = await start({ lingerMs: 200 })
    for (const path of ["/text", "/stream", "/api/things"]) {
      const connection = await RawConnection.open(hasty.port)
      await connection.send(
        requestBytes("POST", path, { "content-length": "8000001", "content-type": "application/json" }),
      )
      const answer = await connection.response()
      expect([path, answer.status, jsonOf(answer)]).toEqual([path, 413, tooLarge])
      expect([headerOf(answer, "connection"), headerOf(answer, "x-static")]).toEqual(["close", "always"])
      await connection.closed
    }
    await quiet(hasty)
    await hasty.stop()
  })
  it("are refused in the middle when they come in chunks, and are not read to their end", async () => {
    const hasty = await start({ lingerMs: 1_000 })
    const connection = await RawConnection.open(hasty.port)
    await connection.send(requestBytes("POST", "/text", { "transfer-encoding": "chunked" }))
    const piece = Buffer.concat([Buffer.from("186a0\r\n"), Buffer.alloc(100_000, 97), Buffer.from("\r\n")])
    let sent = 0
    let over = false
    const answered = connection.response().finally(() => {
      over = true
    })
    connection.closed.then(() => {
      over = true
    })
    while (!over && sent < 200_000_000) {
      await Promise.race([connection.send(piece), connection.closed])
      sent += 100_000
    }
    const answer = await answered
    expect([answer.status, jsonOf(answer)]).toEqual([413, tooLarge])
    // What is over the cap lies in the kernel's buffers, unread.
    expect(sent).toBeLessThan(60_000_000)
    await connection.closed
    await quiet(hasty)
    await hasty.stop()
  })

  it("reach a client that sends all the same", async () => {
    // For as long as a busy machine may need for all of it.
    const patient = await start({ lingerMs: 60_000 })
    for (const bytes of [9_000_000, 30_000_000]) {
      const answer = await fetch(`${scheme("http")}://127.0.0.1:${patient.port}/text`, {
        method: "POST",
        body: Buffer.alloc(bytes),
      })
      expect([answer.status, await answer.json()]).toEqual([413, tooLarge])
    }
    await patient.stop()
  })

  it("exactly at the cap are fine", async () => {
    const answer = await rawRequest(
      server.port,
      requestBytes("POST", "/text", {}, Buffer.alloc(8_000_000, 97)),
    )
    expect([answer.status, answer.body.toString()]).toEqual([200, "8000000"])
  })

  it("follow the handler's own cap, also for bodies that have arrived already", async () => {
    const small = await rawRequest(server.port, requestBytes("POST", "/small", {}, "a".repeat(1_001)))
    expect([small.status, jsonOf(small)]).toEqual([413, { detail: "body: larger than 1000 bytes" }])
    const fits = await rawRequest(server.port, requestBytes("POST", "/small", {}, "a".repeat(1_000)))
    expect(fits.status).toBe(200)
    const chunked = await rawRequest(
      server.port,
      Buffer.concat([
        requestBytes("POST", "/small", { "transfer-encoding": "chunked" }),
        chunkedBytes(["a".repeat(900), "a".repeat(900)]),
      ]),
    )
    expect(chunked.status).toBe(413)
  })

  it("may get the handler's own answer", async () => {
    const answer = await rawRequest(
      server.port,
      requestBytes("POST", "/own-413", { "content-length": "9000000" }),
    )
    expect([answer.status, jsonOf(answer), headerOf(answer, "x-a")]).toEqual([
      413,
      { message: "split it" },
      "1",
    ])
  })
})

describe("bodies that stall", () => {
  // Listeners of their own: on a busy machine this process may pause for that long in the middle of other tests.
  it("get 408 and a closed connection, small, large and chunked", async () => {
    const hasty = await start({ bodyStallTimeoutMs: 300, lingerMs: 200 })
    const { counts } = hasty.listener
    left = Deferred.makeUnsafe()
    await Promise.all(
      [{ "content-length": "100" }, { "content-length": "100000" }, { "transfer-encoding": "chunked" }].map(
        async (headers) => {
          const connection = await RawConnection.open(hasty.port)
          await connection.send(
            Buffer.concat([requestBytes("POST", "/reads", headers), Buffer.from("5\r\n")]),
          )
          const answer = await connection.response()
          expect([answer.status, jsonOf(answer)]).toEqual([408, { detail: "body: no data for 300 ms" }])
          await connection.closed
        },
      ),
    )
    expect(counts.bodiesStalled).toBe(3)
    await quiet(hasty)
    expect(Exit.hasInterrupts(await Effect.runPromise(Deferred.await(left)))).toBe(true)
    await hasty.stop()
  })

  it("or only trickle get the same", async () => {
    const hasty = await start({ bodyGraceMs: 600, lingerMs: 200 })
    const connection = await RawConnection.open(hasty.port)
    await connection.send(requestBytes("POST", "/reads", { "content-length": "100000" }))
    const trickle = setInterval(() => connection.socket.write("a"), 50)
    const answer = await connection.response()
    clearInterval(trickle)
    expect([answer.status, jsonOf(answer)]).toEqual([
      408,
      { detail: "body: slower than 1024 bytes a second" },
    ])
    await connection.closed
    await quiet(hasty)
    await hasty.stop()
  })

  it("because their handler does not read are left alone for longer, and bounded", async () => {
    left = Deferred.makeUnsafe()
    const hasty = await start({ bodyStallTimeoutMs: 300, bodyGraceMs: 600, bodyPauseTimeoutMs: 1_500 })
    const { counts } = hasty.listener
    const connection = await RawConnection.open(hasty.port)
    // The clock stands still until the connection is paused: a machine that stands still before would look like a client that does.
    const since = performance.now()
    const clock = vi.spyOn(performance, "now").mockReturnValue(since)
    await connection.send(requestBytes("POST", "/never-reads", { "content-length": "50000000" }))
    connection.socket.write(Buffer.alloc(50_000_000))
    // Before that many bytes the connection is still read, and its end would be seen at once.
    const { bodyBufferBytes } = defaultSettings
    await eventually(() => counts.bodyBufferedBytes >= bodyBufferBytes, "the connection is paused")
    clock.mockRestore()
    // The bound, and what uWS was about to deliver (measured: 1.7 MB), of 50 MB.
    expect(counts.bodyBufferedBytes).toBeLessThanOrEqual(6_000_000)
    // No event announces this while the connection is paused.
    connection.reset()
    await Effect.runPromise(Deferred.await(left))
    expect(performance.now() - since).toBeGreaterThan(1_000)
    await quiet(hasty)
    await hasty.stop()
  })
})

describe("answers before the body's end", () => {
  it("keep the connection for a body that still comes, within reason", async () => {
    const connection = await RawConnection.open(server.port)
    await connection.send(requestBytes("POST", "/unauthorized", { "content-length": "3000000" }))
    expect((await connection.response()).status).toBe(401)
    await connection.send(Buffer.alloc(3_000_000))
    await connection.send(requestBytes("POST", "/small", {}, "again"))
    expect((await connection.response()).body.toString()).toBe("again")
    connection.destroy()
  })

  it("close it for one without end, or beyond reason", async () => {
    const hasty = await start({ lingerMs: 200 })
    for (const headers of [{ "transfer-encoding": "chunked" }, { "content-length": "9000000000" }]) {
      const connection = await RawConnection.open(hasty.port)
      await connection.send(requestBytes("POST", "/unauthorized", headers))
      const answer = await connection.response()
      expect([answer.status, jsonOf(answer), headerOf(answer, "connection")]).toEqual([
        401,
        { detail: "no" },
        "close",
      ])
      await connection.closed
    }
    await hasty.stop()
  })
})

describe("a client that leaves", () => {
  it("while its body is read interrupts the handler", async () => {
    left = Deferred.makeUnsafe()
    const before = counts().aborts
    const connection = await RawConnection.open(server.port)
    await connection.send(requestBytes("POST", "/reads", { "content-length": "100000" }))
    await connection.send("abc")
    await eventually(() => counts().inFlight === 1, "the request runs")
    connection.destroy()
    expect(Exit.hasInterrupts(await Effect.runPromise(Deferred.await(left)))).toBe(true)
    await quiet()
    expect(counts().aborts - before).toBe(1)
  })

  it("before a small body is complete costs no fiber", async () => {
    const before = counts().requests
    const connection = await RawConnection.open(server.port)
    await connection.send(requestBytes("POST", "/reads", { "content-length": "100" }))
    await connection.send("abc")
    await eventually(() => counts().bodyBufferedBytes === 3, "it arrives")
    connection.destroy()
    await quiet()
    expect(counts().requests - before).toBe(0)
  })
})

describe("Effect's own modules", () => {
  const multipart = (bytes: number): Buffer => {
    const head =
      '--b\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\ncontent-type: audio/wav\r\n\r\n'
    return Buffer.concat([Buffer.from(head), Buffer.alloc(bytes, 1), Buffer.from("\r\n--b--\r\n")])
  }
  const upload = (bytes: number) =>
    requestBytes(
      "POST",
      "/api/upload",
      { "content-type": "multipart/form-data; boundary=b" },
      multipart(bytes),
    )

  it("HttpApi and OpenAPI work", async () => {
    const made = await rawRequest(
      server.port,
      requestBytes("POST", "/api/things", { "content-type": "application/json" }, '{"name":"x"}'),
    )
    expect(jsonOf(made)).toEqual({ name: "x" })
    const openApi = jsonOf(await rawRequest(server.port, requestBytes("GET", "/openapi.json"))) as {
      paths: object
    }
    expect(Object.keys(openApi.paths)).toEqual(["/api/things", "/api/upload"])
    const invalid = await rawRequest(
      server.port,
      requestBytes("POST", "/api/things", { "content-type": "application/json" }, '{"name":'),
    )
    expect(invalid.status).toBe(400)
  })

  it("multipart works, with its own cap above and below the default", async () => {
    const answer = await rawRequest(server.port, upload(9_000_000))
    expect([answer.status, jsonOf(answer)]).toEqual([200, { bytes: 9_000_000 }])
    const refused = await rawRequest(server.port, upload(11_000_000))
    expect(refused.status).toBe(413)
  })
})
