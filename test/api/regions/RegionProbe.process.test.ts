// One probe of an edge, over real listeners: what it times, what counts as unhealthy, and that it leaves nothing open.
import type { RequestListener } from "node:http"
import { Effect } from "effect"
import { afterEach, expect, it, vi } from "vitest"
import { httpProbe } from "#api/regions/RegionProbe.ts"
import { eventually } from "../../support/nodes/TestNode.ts"
import { type LoopbackServer, startLoopbackServer } from "../../support/servers/LoopbackServer.ts"

const servers: Array<LoopbackServer> = []
afterEach(async () => {
  for (const { stop } of servers.splice(0)) await stop()
})

const serve = async (listener: RequestListener) => {
  const started = await startLoopbackServer(listener)
  servers.push(started)
  return { server: started.server, endpoint: started.url }
}

/** The time that a probe has ends when the test says so, and not where the machine stands still. */
const endlessTime = () => {
  const time = new AbortController()
  const given = vi.spyOn(AbortSignal, "timeout").mockReturnValue(time.signal)
  return { end: () => time.abort(), givenMs: () => given.mock.calls.map(([ms]) => ms) }
}
afterEach(() => {
  vi.restoreAllMocks()
})

const probe = (endpoint: string, everyMs = 10_000) =>
  Effect.runPromise(httpProbe(everyMs)({ code: "one", endpoint }))

it("times the second request of a connection, and closes that", async () => {
  endlessTime()
  const slowMs = 600
  const paths: Array<string | undefined> = []
  const ports = new Set<number | undefined>()
  const { endpoint, server } = await serve((request, response) => {
    paths.push(request.url)
    ports.add(request.socket.remotePort)
    // The first answer is ten times slower, as a handshake makes it.
    setTimeout(() => response.end("{}"), paths.length === 1 ? slowMs : slowMs / 10)
  })
  const beganMs = performance.now()
  const probed = await probe(endpoint)
  const wholeMs = performance.now() - beganMs
  expect(probed).toEqual({ healthy: true, roundTripMs: expect.any(Number) })
  const ms = probed.healthy ? probed.roundTripMs : Number.NaN
  // Timers may fire a millisecond early. The first answer's time is not in it, whatever the machine does beside.
  expect(ms).toBeGreaterThan(slowMs / 10 - 5)
  expect(ms).toBeLessThanOrEqual(wholeMs - slowMs + 5)
  expect([paths, ports.size]).toEqual([["/health", "/health"], 1])
  const open = () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)))
  await eventually(async () => (await open()) === 0, "the connection is closed")
})

it("times an edge that closes each connection, or has no time for a second answer, by the first", async () => {
  const { end, givenMs } = endlessTime()
  const closing = await serve(
    (_, response) => void response.writeHead(200, { connection: "close" }).end("{}"),
  )
  expect(await probe(closing.endpoint)).toMatchObject({ healthy: true })
  let asked = 0
  const slow = await serve((_, response) => {
    if (++asked === 1) response.end("{}")
    else end()
  })
  expect(await probe(slow.endpoint, 1_500)).toMatchObject({ healthy: true })
  expect([asked, ...givenMs()]).toEqual([2, 2_000, 1_500])
})

it.each<readonly [string, RequestListener]>([
  ["an answer that is not 200", (_, response) => void response.writeHead(503).end()],
  ["a redirect", (_, response) => void response.writeHead(302, { location: "/elsewhere" }).end()],
  ["an endless answer", (_, response) => void response.writeHead(200).write(Buffer.alloc(200_000))],
  [
    "an answer that breaks off",
    (_, response) =>
      void response.writeHead(200, { "content-length": "9" }).write("{}", () => response.destroy()),
  ],
  ["no answer in time", () => {}],
])("%s is unhealthy", async (_, listener) => {
  const { endpoint } = await serve(listener)
  expect(await probe(endpoint, 500)).toEqual({ healthy: false })
})

it("an address where nothing listens, or that is none, is unhealthy", async () => {
  expect(await probe("http://127.0.0.1:9")).toEqual({ healthy: false })
  expect(await probe("not an address")).toEqual({ healthy: false })
})
