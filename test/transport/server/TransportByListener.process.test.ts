// Which library reads the bytes of a real listener with the default setting, and who may connect where only trusted
// proxies may. The names are those of the header that uWebSockets.js adds to its answers.
import { networkInterfaces } from "node:os"
import { Effect, Logger } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { afterEach, expect, it } from "vitest"
import { parseProxies } from "#domain/access/ClientAddress.ts"
import type { ListenOptions } from "#transport/server/TransportServer.ts"
import { RawConnection, requestBytes } from "../../support/clients/RawHttp.ts"
import { ownFiles } from "../../support/servers/TestCertificates.ts"
import { eventually, startListener, type TestListener } from "../TestListener.ts"

const routes = [HttpRouter.route("GET", "/now", Effect.succeed(HttpServerResponse.text("now")))]
const request = requestBytes("GET", "/now")
const started: Array<TestListener> = []
const logged: Array<string> = []

const log = Logger.make(({ message }) => void logged.push(String(message)))

const listen = async (options: Partial<ListenOptions>): Promise<TestListener> => {
  const server = await startListener(
    routes,
    { transport: "auto", ...options },
    undefined,
    Logger.layer([log]),
  )
  started.push(server)
  return server
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.stop()))
  logged.length = 0
})

/** The status, and whether uWebSockets.js answered. */
const answer = async ({ port }: TestListener, host = "127.0.0.1") => {
  const connection = await RawConnection.open(port, host)
  await connection.send(request)
  const { headers, status } = await connection.response()
  connection.destroy()
  return [status, headers.has("uwebsockets") ? "uws" : "node"]
}

/** The listener, in the same process, reads what has come to its sockets in each turn of the event loop. */
const loopTurns = async (): Promise<void> => {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** An IPv4 address of this machine that is not loopback, if it has one. */
const outsideAddress = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === "IPv4" && !internal)?.address

it("is uWebSockets.js on loopback, and Node's own server on all addresses and with TLS", async () => {
  expect(await answer(await listen({}))).toEqual([200, "uws"])
  expect(await answer(await listen({ host: "0.0.0.0" }))).toEqual([200, "node"])
  expect(await answer(await listen({ tls: await ownFiles() }))).toEqual([200, "node"])
  expect(await answer(await listen({ host: "0.0.0.0", transport: "uws" }))).toEqual([200, "uws"])
  expect(await answer(await listen({ transport: "node" }))).toEqual([200, "node"])
})

it("answers a request that is cut at any place of its first line where strangers can connect", async () => {
  const server = await listen({ host: "0.0.0.0" })
  const firstLine = request.indexOf("\r\n")
  const connections = await Promise.all(
    Array.from({ length: firstLine }, () => RawConnection.open(server.port)),
  )
  await eventually(() => server.listener.counts.connections === firstLine, "all are accepted")
  const statuses = await Promise.all(
    connections.map(async (connection, at) => {
      await connection.send(request.slice(0, at + 1))
      await loopTurns()
      await connection.send(request.slice(at + 1))
      const { status } = await connection.response()
      connection.destroy()
      return status
    }),
  )
  expect(statuses).toEqual(Array(firstLine).fill(200))
})

it.runIf(outsideAddress !== undefined)(
  "accepts trusted proxies and loopback, and closes others before it reads, with one warning",
  async () => {
    const outside = outsideAddress ?? ""
    // On `::` IPv4 addresses come in IPv6 form.
    for (const host of ["0.0.0.0", "::"]) {
      const named = await listen({ host, isTrusted: parseProxies(outside)! })
      expect(await answer(named)).toEqual([200, "uws"])
      expect(await answer(named, outside)).toEqual([200, "uws"])
    }
    const others = await listen({ host: "0.0.0.0", isTrusted: parseProxies("10.99.99.99")! })
    for (let i = 0; i < 3; i++) {
      const stranger = await RawConnection.open(others.port, outside)
      stranger.socket.write(request)
      await stranger.closed
      expect(stranger.unread.length).toBe(0)
    }
    expect(await answer(others)).toEqual([200, "uws"])
    const { connectionsRefused, requests, unlistedRefused } = others.listener.counts
    expect([unlistedRefused, connectionsRefused, requests]).toEqual([3, 0, 1])
    expect(logged.filter((line) => line.includes("EDGEWISE_TRUSTED_PROXIES"))).toHaveLength(1)
    // An operator who chooses a library decides about connections with the firewall.
    for (const transport of ["node", "uws"] as const) {
      const forced = await listen({ host: "0.0.0.0", isTrusted: parseProxies("10.99.99.99")!, transport })
      expect(await answer(forced, outside)).toEqual([200, transport])
    }
  },
)
