// New WebSockets while garbage is collected inside of uWebSockets.js's upgrade: the collector writes to memory that the library has given
// back and still reads (SpareResponse.ts). Without the spare response 1 of 100 sockets is closed at once.
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { expect, it } from "vitest"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { scheme } from "../../support/servers/TestCertificates.ts"
import { startListener } from "../TestListener.ts"

const socket = HttpRouter.route(
  "GET",
  "/later",
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    yield* Effect.sleep("1 millis")
    const upgraded = yield* request.upgrade
    const { pull } = yield* upgraded.reader
    yield* (yield* upgraded.writer).write("{}")
    yield* pull
    return HttpServerResponse.empty()
  }).pipe(Effect.catch(() => Effect.succeed(HttpServerResponse.empty()))),
)

const opensAndEnds = async (port: number) => {
  const client = await SocketClient.open(`${scheme("ws")}://127.0.0.1:${port}/later`)
  await client.until((frames) => frames.length === 1)
  client.send("bye")
  expect(await client.closed).toEqual({ code: 1000, reason: "" })
}

it("a socket that opens while garbage is collected stays open", async () => {
  const server = await startListener([socket])
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as () => void
  setFlagsFromString("--no-expose-gc")
  const { queueMicrotask: own } = globalThis
  let collected = 0
  // Called by what the library calls inside of an upgrade (UwsSocket.ts).
  globalThis.queueMicrotask = (work) => {
    if (new Error().stack?.includes("UwsSocket") === true) {
      collected++
      collect()
    }
    own(work)
  }
  try {
    for (let round = 0; round < 60; round++)
      await Promise.all(Array.from({ length: 10 }, () => opensAndEnds(server.port)))
  } finally {
    globalThis.queueMicrotask = own
    await server.stop()
  }
  if (server.listener.transport.name === "uws") expect(collected).toBe(600)
})
