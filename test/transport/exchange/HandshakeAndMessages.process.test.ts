import { Deferred, Effect, Exit } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { CloseEvent, type SocketError } from "effect/socket/Socket"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import WebSocket from "ws"
import { jsonOf, RawConnection, rawRequest, requestBytes } from "../../support/clients/RawHttp.ts"
import { scheme } from "../../support/servers/TestCertificates.ts"
import { eventually, onNode, startListener, type TestListener } from "../TestListener.ts"

const Request = HttpServerRequest.HttpServerRequest
const route = HttpRouter.route

/** How the server's side of the last socket ended. */
let ended = Deferred.makeUnsafe<Exit.Exit<unknown, unknown>>()
const serverEnd = async (): Promise<{ code: number | undefined; reason: string | undefined }> => {
  const exit = await Effect.runPromise(Deferred.await(ended))
  const reason = Exit.isFailure(exit) ? exit.cause.reasons[0] : undefined
  const error = reason?._tag === "Fail" ? (reason.error as SocketError) : undefined
  return error?.reason._tag === "SocketCloseError"
    ? { code: error.reason.code, reason: error.reason.closeReason }
    : { code: undefined, reason: undefined }
}

const socketRoute = (
  path: `/${string}`,
  use: (io: {
    readonly pull: Effect.Effect<ReadonlyArray<string | Uint8Array>, SocketError>
    readonly write: (chunk: string | Uint8Array | CloseEvent) => Effect.Effect<void, SocketError>
  }) => Effect.Effect<unknown, unknown>,
  headers: Record<string, string> = {},
) =>
  route(
    "GET",
    path,
    Effect.gen(function* () {
      const request = yield* Request
      const socket = yield* request.upgradeWith({ headers })
      const reader = yield* socket.reader
      const writer = yield* socket.writer
      yield* use({ pull: reader.pull, write: writer.write })
      return HttpServerResponse.empty()
    }).pipe(Effect.onExit((exit) => Deferred.succeed(ended, exit))) as Effect.Effect<
      HttpServerResponse.HttpServerResponse,
      never,
      HttpServerRequest.HttpServerRequest
    >,
  )

/** Of messages that no handler has read, bytes. */
let mostWaiting = 0
let server: TestListener
const counts = () => server.listener.counts
const quiet = () =>
  eventually(
    () => counts().webSockets === 0 && counts().inFlight === 0 && counts().connections === 0,
    `no sockets: ${JSON.stringify(counts())}`,
  )

beforeAll(async () => {
  server = await startListener(
    [
      socketRoute("/echo", ({ pull, write }) =>
        Effect.forever(Effect.flatMap(pull, (frames) => Effect.forEach(frames, write))),
      ),
      socketRoute("/chosen", ({ pull }) => pull, { "sec-websocket-protocol": "b", "x-own": "1" }),
      socketRoute("/done", () => Effect.void),
      socketRoute("/dies", () => Effect.die(new Error("secret"))),
      socketRoute("/closes", ({ write, pull }) =>
        Effect.andThen(write(new CloseEvent(4008, "session limit")), pull),
      ),
      socketRoute("/closes-at-first", ({ write, pull }) =>
        pull.pipe(
          Effect.andThen(write("wrong")),
          Effect.andThen(write(new CloseEvent(1003, "unknown message"))),
          Effect.andThen(pull),
        ),
      ),
      socketRoute("/bad-close", ({ write, pull }) =>
        Effect.andThen(write(new CloseEvent(1006, "é".repeat(200))), pull),
      ),
      socketRoute("/deaf", () => Effect.never),
      socketRoute("/slow", ({ pull, write }) =>
        Effect.gen(function* () {
          for (let seen = 0; ; ) {
            for (const frame of yield* pull) {
              if (typeof frame === "string") yield* write(`${seen} in order`)
              else if (frame[0] !== seen++ % 256) return
              yield* Effect.yieldNow
              mostWaiting = Math.max(mostWaiting, counts().messageBufferedBytes)
            }
          }
        }),
      ),
      socketRoute("/crowd", ({ write }) =>
        Effect.forEach(Array.from({ length: 200 }), () => write(Buffer.alloc(100_000)), {
          concurrency: "unbounded",
          discard: true,
        }),
      ),
      route(
        "GET",
        "/refused",
        Effect.succeed(HttpServerResponse.jsonUnsafe({ detail: "no" }, { status: 401 })),
      ),
      route(
        "GET",
        "/refused-later",
        Effect.as(Effect.sleep("2 millis"), HttpServerResponse.jsonUnsafe({ detail: "no" }, { status: 429 })),
      ),
      route("GET", "/never", Effect.never.pipe(Effect.onExit((exit) => Deferred.succeed(ended, exit)))),
    ],
    { settings: { inboundBytes: 5_000_000 }, responseHeaders: { "x-static": "always" } },
  )
})
afterAll(() => server.stop())

interface Client {
  readonly ws: WebSocket
  readonly messages: Array<{ readonly data: Buffer; readonly isBinary: boolean }>
  readonly upgradeHeaders: Record<string, string | Array<string> | undefined>
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
  readonly next: () => Promise<{ readonly data: Buffer; readonly isBinary: boolean }>
}

const open = (path: string, protocols?: ReadonlyArray<string>, port = server.port): Promise<Client> => {
  ended = Deferred.makeUnsafe()
  return new Promise((resolve, reject) => {
    const ws = new WebSocket(`${scheme("ws")}://127.0.0.1:${port}${path}`, protocols && [...protocols])
    const messages: Client["messages"] = []
    let upgradeHeaders: Client["upgradeHeaders"] = {}
    let read = 0
    let arrived: () => void = () => {}
    ws.on("upgrade", (response) => {
      upgradeHeaders = response.headers
    })
    ws.on("message", (data, isBinary) => {
      messages.push({ data: data as Buffer, isBinary })
      arrived()
    })
    const closed = new Promise<{ code: number; reason: string }>((done) =>
      ws.on("close", (code, reason) => done({ code, reason: reason.toString() })),
    )
    ws.on("error", reject)
    ws.on("open", () =>
      resolve({
        ws,
        messages,
        upgradeHeaders,
        closed,
        next: async () => {
          while (messages.length <= read) {
            await new Promise<void>((done) => {
              arrived = done
            })
          }
          const message = messages[read++]
          if (message === undefined) throw new Error("no message")
          return message
        },
      }),
    )
  })
}

describe("messages", () => {
  it("come back as they were, text and binary, small and of 4 MB", async () => {
    const client = await open("/echo")
    for (const frame of ["hällo", "", Buffer.from([0, 1, 255]), Buffer.alloc(4 * 1024 * 1024, 7)]) {
      client.ws.send(frame)
      const { data, isBinary } = await client.next()
      expect([data.equals(Buffer.from(frame as string)), isBinary]).toEqual([true, typeof frame !== "string"])
    }
    expect([counts().webSockets, counts().connections, counts().inFlight]).toEqual([1, 1, 1])
    client.ws.close(4001, "bye")
    expect(await client.closed).toEqual({ code: 4001, reason: "bye" })
    expect(await serverEnd()).toEqual({ code: 4001, reason: "bye" })
    await quiet()
  })

  it("keep their order in bursts", async () => {
    const client = await open("/echo")
    for (let i = 0; i < 500; i++) client.ws.send(String(i))
    for (let i = 0; i < 500; i++) expect((await client.next()).data.toString()).toBe(String(i))
    client.ws.terminate()
    expect((await serverEnd()).code).toBe(1006)
    await quiet()
  })

  it("over 4 MB close with 1009", async () => {
    const client = await open("/echo")
    client.ws.send(Buffer.alloc(4 * 1024 * 1024 + 1))
    expect(await client.closed).toEqual({ code: 1009, reason: "message larger than 4194304 bytes" })
    expect((await serverEnd()).code).toBe(1009)
    await quiet()
  })

  // uWebSockets.js cannot pause a WebSocket.
  it.runIf(onNode)("that a handler reads slowly all arrive, and few of them wait in memory", async () => {
    const [sizeBytes, count] = [100_000, 300]
    const client = await open("/slow")
    mostWaiting = 0
    for (let i = 0; i < count; i++) client.ws.send(Buffer.alloc(sizeBytes, i))
    client.ws.send("end")
    const { data } = await client.next()
    expect(String(data)).toBe(`${count} in order`)
    // What causes a pause, a message, and what one read brings after it.
    expect(mostWaiting).toBeLessThan(500_000)
    client.ws.close()
    await quiet()
    expect(counts().messageBufferedBytes).toBe(0)
  })

  it.skipIf(onNode)("that no handler reads close with 1009 past the bound", async () => {
    const client = await open("/deaf")
    const { socketsOverrun } = counts()
    for (let i = 0; i < 6; i++) client.ws.send(Buffer.alloc(1_000_000))
    expect(await client.closed).toEqual({ code: 1009, reason: "messages come faster than they are read" })
    expect([counts().socketsOverrun, counts().messageBufferedBytes]).toEqual([socketsOverrun + 1, 0])
    // The handler never reads, and is interrupted instead of waiting for ever.
    expect(Exit.hasInterrupts(await Effect.runPromise(Deferred.await(ended)))).toBe(true)
    await quiet()
  })
})

describe("handshakes", () => {
  it("take the first subprotocol offered, or the handler's choice, with the listener's headers", async () => {
    const first = await open("/echo", ["a", "b"])
    expect([first.ws.protocol, first.upgradeHeaders["x-static"]]).toEqual(["a", "always"])
    first.ws.terminate()
    const chosen = await open("/chosen", ["a", "b"])
    expect([chosen.ws.protocol, chosen.upgradeHeaders["x-own"]]).toEqual(["b", "1"])
    chosen.ws.terminate()
  })

  it("are refused with ordinary responses, at once or later", async () => {
    const headers = {
      upgrade: "websocket",
      connection: "Upgrade",
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    for (const [path, status] of [
      ["/refused", 401],
      ["/refused-later", 429],
    ] as const) {
      const answer = await rawRequest(server.port, requestBytes("GET", path, headers))
      expect([answer.status, jsonOf(answer)]).toEqual([status, { detail: "no" }])
    }
    const missing = await rawRequest(server.port, requestBytes("GET", "/nowhere", headers))
    expect(missing.status).toBe(404)
    const plain = await rawRequest(server.port, requestBytes("GET", "/echo"))
    expect([plain.status, jsonOf(plain)]).toEqual([400, { detail: "Bad Request" }])
  })

  it("that their client abandons interrupt the handler", async () => {
    ended = Deferred.makeUnsafe()
    const ws = new WebSocket(`${scheme("ws")}://127.0.0.1:${server.port}/never`)
    ws.on("error", () => {})
    await eventually(() => counts().inFlight === 1, "the request runs")
    ws.terminate()
    expect(Exit.hasInterrupts(await Effect.runPromise(Deferred.await(ended)))).toBe(true)
    await quiet()
  })
})

describe("ends", () => {
  it("carry the handler's code, cut down to what a frame may hold", async () => {
    const closes = await open("/closes")
    expect(await closes.closed).toEqual({ code: 4008, reason: "session limit" })
    expect(await serverEnd()).toEqual({ code: 4008, reason: "session limit" })
    const bad = await (await open("/bad-close")).closed
    expect([bad.code, bad.reason]).toEqual([1011, "é".repeat(61)])
  })

  it.each(["/closes", "/closes-at-first", "/done", "/dies"])(
    "are survived where the handshake came with messages behind it: %s",
    async (path) => {
      const handshake = requestBytes("GET", path, {
        connection: "upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
      })
      // Text frames of one character with the mask 0, whole or cut, and bytes that are none.
      const frames = Buffer.concat(
        Array.from({ length: 200 }, () => Buffer.from([0x81, 0x81, 0, 0, 0, 0, 97])),
      )
      for (const behind of [frames, frames.subarray(0, 1_003), Buffer.alloc(5_000, 0xff)]) {
        const connections = await Promise.all(
          Array.from({ length: 20 }, async () => {
            const connection = await RawConnection.open(server.port)
            await connection.send(Buffer.concat([handshake, behind]))
            return connection
          }),
        )
        await Promise.all(connections.map((connection) => connection.bytes(12)))
        for (const connection of connections) connection.destroy()
      }
      const alive = await open("/echo")
      alive.ws.send("still here")
      expect(String((await alive.next()).data)).toBe("still here")
      alive.ws.close()
      await quiet()
    },
  )

  it("are 1000 for a finished handler and 1011 for a failed one", async () => {
    expect((await (await open("/done")).closed).code).toBe(1000)
    expect((await (await open("/dies")).closed).code).toBe(1011)
    await quiet()
  })

  it("are 1001 for a stopped server", async () => {
    const other = await startListener([socketRoute("/deaf", () => Effect.never)])
    const ws = new WebSocket(`${scheme("ws")}://127.0.0.1:${other.port}/deaf`)
    await new Promise((resolve) => ws.on("open", resolve))
    const code = new Promise((resolve) => ws.on("close", resolve))
    await other.stop()
    expect(await code).toBe(1001)
    expect([other.listener.counts.webSockets, other.listener.counts.inFlight]).toEqual([0, 0])
  })
})

describe("a reader that takes nothing", () => {
  it("makes its writer wait, and is cut after the stall time", async () => {
    let wrote = 0
    const flood = socketRoute("/flood", ({ write }) =>
      Effect.forever(
        Effect.tap(write(Buffer.alloc(100_000)), () =>
          Effect.sync(() => {
            wrote++
          }),
        ),
      ),
    )
    // A listener of its own: on a busy machine this process may pause for that long while other tests are read from.
    const hasty = await startListener([flood], { settings: { stallTimeoutMs: 400 } })
    const client = await open("/flood", undefined, hasty.port)
    client.ws.pause()
    await eventually(() => hasty.listener.counts.slowReadersCut === 1, "the reader is cut")
    expect((await serverEnd()).code).toBe(1006)
    // The kernel's buffers and the bound; a writer that does not wait would have gone on.
    expect(wrote * 100_000).toBeLessThan(20_000_000)
    client.ws.terminate()
    await eventually(() => hasty.listener.counts.webSockets === 0, "the socket is gone")
    await hasty.stop()
  })

  it("and 200 writers at once lose nothing on a reader that takes its time", async () => {
    const client = await open("/crowd")
    let pauses = 0
    while (client.messages.length < 200) {
      await client.next()
      if (client.messages.length < 200 && pauses++ % 20 === 0) {
        client.ws.pause()
        await new Promise((resolve) => setTimeout(resolve, 10))
        client.ws.resume()
      }
    }
    expect((await client.closed).code).toBe(1000)
    expect(client.messages.every(({ data }) => data.length === 100_000)).toBe(true)
  })
})
