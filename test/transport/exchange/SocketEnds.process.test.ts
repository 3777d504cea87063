// Every end of a WebSocket is one of a short list (protocol 16.1): what the client sees of it, and what is counted.
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { CloseEvent } from "effect/socket/Socket"
import { afterAll, beforeAll, expect, it } from "vitest"
import WebSocket from "ws"
import type { SocketEnd } from "#http/NodeMeters.ts"
import { RawConnection, requestBytes } from "../../support/clients/RawHttp.ts"
import { scheme } from "../../support/servers/TestCertificates.ts"
import { eventually, onNode, startListener, type TestListener } from "../TestListener.ts"

const socket = (
  path: `/${string}`,
  frames: { readonly single: number; readonly atOnce: number },
  code?: number,
) =>
  HttpRouter.route(
    "GET",
    path,
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const upgraded = yield* request.upgrade
      const { pull } = yield* upgraded.reader
      const { write, writeAll } = yield* upgraded.writer
      const frame = Buffer.alloc(100_000)
      for (let sent = 0; sent < frames.single; sent++) yield* write(frame)
      if (frames.atOnce > 0) {
        // The client stops reading.
        yield* Effect.sleep("100 millis")
        yield* writeAll([frame, ...Array.from({ length: frames.atOnce }, () => frame)])
      }
      if (code !== undefined) yield* write(new CloseEvent(code, ""))
      yield* Effect.forever(pull)
      return HttpServerResponse.empty()
    }).pipe(Effect.catch(() => Effect.succeed(HttpServerResponse.empty()))),
  )

let server: TestListener
beforeAll(async () => {
  server = await startListener(
    [
      socket("/waits", { single: 0, atOnce: 0 }),
      socket("/closes", { single: 0, atOnce: 0 }, 4008),
      socket("/flood", { single: 1_000, atOnce: 0 }),
      socket("/burst", { single: 0, atOnce: 200 }),
    ],
    // The shortest time that uWebSockets.js has.
    { settings: { stallTimeoutMs: 400, webSocketIdleSeconds: 8 } },
  )
})
afterAll(() => server.stop())

const open = async (path: string) => {
  const ws = new WebSocket(`${scheme("ws")}://127.0.0.1:${server.port}${path}`, { autoPong: false })
  ws.on("error", () => {})
  const closed = new Promise<number>((resolve) => ws.on("close", resolve))
  await new Promise((resolve) => ws.on("open", resolve))
  return { ws, closed }
}

/** The one end that is counted after `act`. */
const counted = async (act: () => Promise<unknown>): Promise<SocketEnd | undefined> => {
  const { counts } = server.listener
  const before = { ...counts.socketEnds }
  const sum = (ends: Readonly<Record<string, number>>) => Object.values(ends).reduce((a, b) => a + b, 0)
  await act()
  await eventually(() => sum(counts.socketEnds) > sum(before), "it is counted")
  expect(sum(counts.socketEnds)).toBe(sum(before) + 1)
  const [how] =
    Object.entries(counts.socketEnds).find(([name, count]) => count > before[name as SocketEnd]) ?? []
  return how as SocketEnd | undefined
}

it("the client closes", async () => {
  const how = await counted(async () => {
    const { closed, ws } = await open("/waits")
    ws.close(4001, "bye")
    expect(await closed).toBe(4001)
  })
  expect(how).toBe("client")
})

it("the node closes", async () => {
  const how = await counted(async () => expect(await (await open("/closes")).closed).toBe(4008))
  expect(how).toBe("node")
})

it("the client leaves without a close frame", async () => {
  expect(await counted(async () => (await open("/waits")).ws.terminate())).toBe("vanished")
})

it("the client does not read", async () => {
  const how = await counted(async () => (await open("/flood")).ws.pause())
  expect(how).toBe("unread")
})

it("the client sends what is no frame", async () => {
  const how = await counted(async () => {
    const connection = await RawConnection.open(server.port)
    const handshake = requestBytes("GET", "/waits", {
      connection: "upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
    })
    await connection.send(handshake)
    await connection.bytes(12)
    // Reserved bits, which no extension was agreed for.
    await connection.send(Buffer.from([0xf1, 0x80, 0, 0, 0, 0]))
    await connection.closed
  })
  expect(how).toBe("malformed")
})

it("the client answers no ping", async () => {
  const how = await counted(async () => {
    const { closed } = await open("/waits")
    expect(await closed).toBe(1006)
  })
  expect(how).toBe("silent")
})

it.runIf(!onNode)("a close frame behind frames that were lost is lost too", async () => {
  let closed: Promise<number> | undefined
  const before = server.listener.counts.socketEnds.unread
  const how = await counted(async () => {
    const client = await open("/burst")
    closed = client.closed
    client.ws.pause()
    await eventually(() => server.listener.counts.socketEnds.unread > before, "the node has closed it")
    client.ws.resume()
  })
  expect(how).toBe("unread")
  expect(await closed).toBe(1006)
})
