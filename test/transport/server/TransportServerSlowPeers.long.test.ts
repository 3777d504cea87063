// Peers that are slow but valid, for longer than uWS's own 10 to 12 s timer, with the default settings; and the one
// that uWS itself cuts. All cases wait side by side.
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Sink, sinkResponse } from "#http/SinkBody.ts"
import { RawConnection, requestBytes } from "../../support/clients/RawHttp.ts"
import { startListener, type TestListener } from "../TestListener.ts"

const pastUwsMs = 14_000
const chunk = Buffer.alloc(16_000, 97)
const chunks = 500

/** Writes 8 MB as the reader takes it. */
const patient = (sink: Sink): Effect.Effect<void> =>
  Effect.callback((resume) => {
    let written = 0
    const fill = (): void => {
      while (written < chunks) {
        written++
        if (!sink.write(chunk)) break
      }
      if (written === chunks) resume(Effect.void)
    }
    sink.onDrain(fill)
    fill()
  })

const read = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  return HttpServerResponse.text(String((yield* request.text).length))
})

let server: TestListener
beforeAll(async () => {
  server = await startListener([
    HttpRouter.route("POST", "/read", read),
    HttpRouter.route("POST", "/read-late", Effect.andThen(Effect.sleep(pastUwsMs), read)),
    HttpRouter.route("GET", "/sink", Effect.succeed(sinkResponse(patient, { contentType: "audio/pcm" }))),
    HttpRouter.route(
      "GET",
      "/bytes",
      Effect.succeed(HttpServerResponse.uint8Array(Buffer.alloc(8_000_000, 97))),
    ),
    HttpRouter.route("GET", "/think", Effect.as(Effect.sleep(pastUwsMs), HttpServerResponse.text("42"))),
  ])
})
afterAll(() => server.stop())

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

describe.concurrent("past uWS's timer", () => {
  it("an upload of 4 KB/s goes on", async () => {
    const connection = await RawConnection.open(server.port)
    const size = 4 * pastUwsMs
    await connection.send(requestBytes("POST", "/read", { "content-length": String(size) }))
    for (let sent = 0; sent < size; sent += 1_000) {
      await sleep(245)
      await connection.send(Buffer.alloc(1_000, 97))
    }
    const answer = await connection.response()
    expect([answer.status, answer.body.toString()]).toEqual([200, String(size)])
    connection.destroy()
  })

  it("an upload whose handler reads late waits", async () => {
    const connection = await RawConnection.open(server.port)
    await connection.send(requestBytes("POST", "/read-late", {}, Buffer.alloc(7_000_000, 97)))
    const answer = await connection.response()
    expect([answer.status, answer.body.toString()]).toEqual([200, "7000000"])
    connection.destroy()
  })

  it("a reader that pauses gets the rest, of a sink and of bytes", async () => {
    for (const answer of await Promise.all(
      ["/sink", "/bytes"].map(async (path) => {
        const connection = await RawConnection.open(server.port)
        connection.socket.pause()
        await connection.send(requestBytes("GET", path))
        await sleep(pastUwsMs)
        connection.socket.resume()
        return connection.response()
      }),
    )) {
      expect([answer.complete, answer.body.length]).toEqual([true, 8_000_000])
    }
  })

  it("a handler that thinks is left in peace", async () => {
    const connection = await RawConnection.open(server.port)
    await connection.send(requestBytes("GET", "/think"))
    expect((await connection.response()).body.toString()).toBe("42")
    connection.destroy()
  })

  it("but a head that never ends is cut by then, trickling or not", async () => {
    await Promise.all(
      [false, true].map(async (trickles) => {
        const connection = await RawConnection.open(server.port)
        await connection.send("GET /read HTTP/1.1\r\nhost: t\r\nx-a: ")
        const trickle = setInterval(() => trickles && connection.socket.write("a"), 500)
        await connection.closed
        clearInterval(trickle)
        expect(connection.unread.length).toBe(0)
      }),
    )
  })
})
