// Clients that disconnect at any byte of any kind of request: the process keeps running (touching a response after its
// end kills it), and every counter of something open returns to zero.
import { Effect, Stream } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import fc from "fast-check"
import { afterAll, beforeAll, expect, it } from "vitest"
import { sinkResponse } from "#http/SinkBody.ts"
import { chunkedBytes, RawConnection, rawRequest, requestBytes } from "../../support/clients/RawHttp.ts"
import { eventually, startListener, type TestListener } from "../TestListener.ts"

const Request = HttpServerRequest.HttpServerRequest
const route = HttpRouter.route

let server: TestListener
beforeAll(async () => {
  server = await startListener(
    [
      route("GET", "/now", Effect.succeed(HttpServerResponse.text("now"))),
      route("GET", "/later", Effect.as(Effect.sleep("1 millis"), HttpServerResponse.text("later"))),
      route("GET", "/bytes", Effect.succeed(HttpServerResponse.uint8Array(new Uint8Array(9_000_000)))),
      route(
        "GET",
        "/stream",
        Effect.succeed(
          HttpServerResponse.stream(
            Stream.range(1, 100).pipe(
              Stream.mapEffect(() => Effect.as(Effect.yieldNow, new Uint8Array(90_000))),
            ),
          ),
        ),
      ),
      route(
        "GET",
        "/sink",
        Effect.succeed(
          sinkResponse(
            (sink) =>
              Effect.gen(function* () {
                for (let i = 0; i < 50; i++) {
                  sink.write("x".repeat(20_000))
                  yield* Effect.yieldNow
                }
              }),
            { contentType: "text/plain" },
          ),
        ),
      ),
      route(
        "POST",
        "/text",
        Effect.gen(function* () {
          const request = yield* Request
          return HttpServerResponse.text(yield* request.text)
        }),
      ),
      route("POST", "/ignores", Effect.as(Effect.sleep("1 millis"), HttpServerResponse.text("ignored"))),
      route(
        "GET",
        "/socket",
        Effect.gen(function* () {
          const request = yield* Request
          yield* Effect.sleep("1 millis")
          const socket = yield* request.upgrade
          const { pull } = yield* socket.reader
          const writer = yield* socket.writer
          yield* writer.write("x".repeat(500_000))
          yield* Effect.forever(Effect.flatMap(pull, (frames) => writer.writeAll(frames)))
          return HttpServerResponse.empty()
        }).pipe(Effect.catch(() => Effect.succeed(HttpServerResponse.empty()))),
      ),
    ],
    // Short enough that every deadline also strikes now and then.
    {
      settings: {
        stallTimeoutMs: 40,
        bodyStallTimeoutMs: 40,
        bodyGraceMs: 40,
        bodyPauseTimeoutMs: 40,
        lingerMs: 10,
        bodyBytes: 500_000,
      },
    },
  )
})
afterAll(() => server.stop())

const requests: ReadonlyArray<Buffer> = [
  requestBytes("GET", "/now"),
  requestBytes("GET", "/later"),
  requestBytes("GET", "/bytes"),
  requestBytes("GET", "/stream"),
  requestBytes("GET", "/sink"),
  requestBytes("GET", "/nowhere", { "x-long": "a".repeat(40_000) }),
  requestBytes("POST", "/text", {}, "a".repeat(1_000)),
  requestBytes("POST", "/text", {}, "a".repeat(400_000)),
  requestBytes("POST", "/text", {}, "a".repeat(600_000)),
  requestBytes("POST", "/ignores", {}, "a".repeat(600_000)),
  Buffer.concat([
    requestBytes("POST", "/text", { "transfer-encoding": "chunked" }),
    chunkedBytes(["abc", "def"]),
  ]),
  requestBytes("GET", "/socket", {
    upgrade: "websocket",
    connection: "Upgrade",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
  }),
]

const leaving = fc.record({
  request: fc.constantFrom(...requests),
  /** Part of the request that is sent. */
  part: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
  reads: fc.boolean(),
  staysMs: fc.integer({ min: 0, max: 60 }),
  how: fc.constantFrom("destroy", "reset", "end"),
})

it("clients that leave at any moment leave nothing behind", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(leaving, { minLength: 8, maxLength: 24 }), async (clients) => {
      await Promise.all(
        clients.map(async ({ request, part, reads, staysMs, how }) => {
          const connection = await RawConnection.open(server.port)
          if (!reads) connection.socket.pause()
          connection.socket.write(request.subarray(0, Math.ceil(request.length * part)))
          await new Promise((resolve) => setTimeout(resolve, staysMs))
          if (how === "destroy") connection.socket.destroy()
          else if (how === "reset") connection.reset()
          else {
            connection.socket.end()
            connection.socket.resume()
            await new Promise((resolve) => setTimeout(resolve, 100))
            connection.socket.destroy()
          }
        }),
      )
      const { counts } = server.listener
      await eventually(
        () =>
          counts.inFlight === 0 &&
          counts.connections === 0 &&
          counts.webSockets === 0 &&
          counts.bodyBufferedBytes === 0 &&
          counts.replyBufferedBytes === 0,
        `everything is closed: ${JSON.stringify(counts)}`,
      )
      expect((await rawRequest(server.port, requestBytes("GET", "/now"))).body.toString()).toBe("now")
    }),
    { numRuns: 30 },
  )
})
