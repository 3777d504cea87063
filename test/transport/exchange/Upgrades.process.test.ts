// When a request becomes a WebSocket: at once, after its handler has waited, or woken by another request. uWebSockets.js ended the
// process, or closed the new socket without a close frame, where that happened at a wrong moment (Handshake.ts, SpareResponse.ts).
import { Deferred, Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { afterAll, beforeAll, expect, it } from "vitest"
import { rawRequest, requestBytes } from "../../support/clients/RawHttp.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { scheme } from "../../support/servers/TestCertificates.ts"
import { startListener, type TestListener } from "../TestListener.ts"

let woken = Deferred.makeUnsafe<void>()
let waiting = 0

const socket = (path: `/${string}`, before: Effect.Effect<void>) =>
  HttpRouter.route(
    "GET",
    path,
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      yield* before
      const upgraded = yield* request.upgrade
      const { pull } = yield* upgraded.reader
      const { write } = yield* upgraded.writer
      yield* write("{}")
      yield* pull
      return HttpServerResponse.empty()
    }).pipe(Effect.catch(() => Effect.succeed(HttpServerResponse.empty()))),
  )

let server: TestListener
beforeAll(async () => {
  const answer = (text: string) =>
    HttpServerResponse.text(text).pipe(
      HttpServerResponse.setHeader("x-woke", "1"),
      Effect.succeed,
      Effect.tap(Deferred.succeed(woken, undefined)),
    )
  server = await startListener([
    socket("/now", Effect.void),
    socket("/later", Effect.sleep("1 millis")),
    socket(
      "/woken",
      Effect.suspend(() => {
        waiting++
        return Deferred.await(woken)
      }),
    ),
    HttpRouter.route(
      "GET",
      "/wakes",
      Effect.suspend(() => answer("at once")),
    ),
    HttpRouter.route(
      "GET",
      "/wakes-first",
      Effect.suspend(() => Effect.delay(Effect.andThen(answer("later"), answer("later")), "1 millis")),
    ),
    HttpRouter.route(
      "POST",
      "/wakes",
      Effect.suspend(() => answer("with a body")),
    ),
  ])
})
afterAll(() => server.stop())

const open = (path: string) => SocketClient.open(`${scheme("ws")}://127.0.0.1:${server.port}${path}`)

const opensAndEnds = async (opening: Promise<SocketClient>) => {
  const client = await opening
  await client.until((frames) => frames.length === 1)
  client.send("bye")
  expect(await client.closed).toEqual({ code: 1000, reason: "" })
}

it.each(["/now", "/later"])("%s", async (path) => {
  await Promise.all(Array.from({ length: 20 }, () => opensAndEnds(open(path))))
})

it.each([
  ["an answer at once", requestBytes("GET", "/wakes")],
  ["one that comes later", requestBytes("GET", "/wakes-first")],
  ["one to a body", requestBytes("POST", "/wakes", {}, "body")],
])("woken by another request: %s", async (_name, bytes) => {
  for (let round = 0; round < 5; round++) {
    woken = Deferred.makeUnsafe()
    waiting = 0
    const clients = Array.from({ length: 3 }, () => open("/woken"))
    while (waiting < 3) await new Promise((resolve) => setTimeout(resolve, 1))
    expect((await rawRequest(server.port, bytes)).status).toBe(200)
    await Promise.all(clients.map(opensAndEnds))
  }
})
