// Region discovery by the network: a router probes edges of which some are slow, and sends callers across borders by
// what it measures. The edges stand on this machine; their delays differ by far more than a busy machine adds.
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { inLong } from "../../support/groups/Runs.ts"
import { eventually, parseMetrics, temporaryDir } from "../../support/nodes/TestNode.ts"
import { startRoles, type TestRoles } from "../../support/nodes/TestRoles.ts"
import { startLoopbackServer } from "../../support/servers/LoopbackServer.ts"

/** An edge of which only /health is known. */
const fakeEdge = async (delayMs: number) => {
  const edge = { delayMs, status: 200 }
  const { stop, url } = await startLoopbackServer((_, response) => {
    setTimeout(() => response.writeHead(edge.status).end("{}"), edge.delayMs)
  })
  return Object.assign(edge, { endpoint: url, close: stop })
}
type FakeEdge = Awaited<ReturnType<typeof fakeEdge>>

const dir = temporaryDir()
let toronto: FakeEdge
let newYork: FakeEdge
let saoPaulo: FakeEdge
let regions: string
beforeAll(async () => {
  ;[toronto, newYork, saoPaulo] = await Promise.all([fakeEdge(300), fakeEdge(0), fakeEdge(150)])
  regions = join(dir.path, "regions.json")
  const place = (
    code: string,
    country: string,
    latitude: number,
    longitude: number,
    { endpoint }: FakeEdge,
  ) => ({
    code,
    name: code,
    country,
    latitude,
    longitude,
    endpoint,
  })
  writeFileSync(
    regions,
    JSON.stringify({
      regions: [
        place("yto-01", "CA", 43.65, -79.38, toronto),
        place("nyc-01", "US", 40.71, -74.01, newYork),
        place("sao-01", "BR", -23.55, -46.63, saoPaulo),
      ],
    }),
  )
})
afterAll(async () => {
  for (const edge of [toronto, newYork, saoPaulo]) await edge.close()
  dir.remove()
})

const routeOf = async (node: TestRoles, headers: Readonly<Record<string, string>>, query = "") => {
  const response = await fetch(`${node.base.router}/v1/route${query}`, { headers })
  const body = (await response.json()) as { readonly region: string }
  expect(Object.keys(body)).toEqual(["region", "name", "endpoint", "ttl"])
  return body.region
}
const inGreenland = { "cf-ipcountry": "GL" }
const inCanada = { "cf-ipcountry": "CA" }

const flags = () => ({ regions, region: "yto-01", trustedProxies: "127.0.0.1" })

it("a router that does not probe goes by distance", async () => {
  const node = await startRoles({ ...flags(), roles: "router" })
  try {
    expect(await routeOf(node, inGreenland)).toBe("yto-01")
  } finally {
    await node.stop()
  }
})

it("one that probes goes by what it measures, across borders only, and follows changes", inLong, async () => {
  const node = await startRoles({ ...flags(), roles: "edge,router", regionHealthSeconds: "1" })
  try {
    await eventually(async () => (await routeOf(node, inGreenland)) === "nyc-01", "New York is the quickest")
    // Borders first, and worldwide is by distance (protocol 15.2).
    expect(await routeOf(node, inCanada)).toBe("yto-01")
    expect(await routeOf(node, inGreenland, "?scope=global")).toBe("yto-01")

    let metrics: ReadonlyMap<string, number> = new Map()
    const ms = (region: string) =>
      metrics.get(`edgewise_region_round_trip_ms{region="${region}"}`) ?? Number.NaN
    await eventually(async () => {
      metrics = parseMetrics(await (await fetch(`${node.base.edge}/metrics`)).text())
      return ms("yto-01") >= 0 && ms("nyc-01") < ms("sao-01")
    }, "every region is measured")
    expect(ms("yto-01")).toBeGreaterThan(290)
    expect(ms("sao-01")).toBeGreaterThan(145)
    expect(metrics.get('edgewise_region_healthy{region="yto-01"}')).toBe(1)

    newYork.status = 503
    await eventually(async () => (await routeOf(node, inGreenland)) === "sao-01", "New York is unhealthy")
    expect(await routeOf(node, inCanada)).toBe("yto-01")
    newYork.status = 200
    await eventually(async () => (await routeOf(node, inGreenland)) === "nyc-01", "New York is back")

    // Toronto is quick from now on, and New York slow: visible at the next round, complete after five.
    toronto.delayMs = 0
    newYork.delayMs = 300
    await eventually(
      async () => (await routeOf(node, inGreenland)) === "yto-01",
      "Toronto is the quickest",
      40_000,
    )
  } finally {
    await node.stop()
  }
})

it("a router of unknown place measures for callers of unknown place alone", async () => {
  ;[toronto.delayMs, newYork.delayMs, saoPaulo.delayMs] = [300, 150, 0]
  const node = await startRoles({ ...flags(), region: "local", roles: "router", regionHealthSeconds: "1" })
  try {
    await eventually(async () => (await routeOf(node, {})) === "sao-01", "São Paulo is the quickest")
    expect(await routeOf(node, inGreenland)).toBe("yto-01")
  } finally {
    await node.stop()
  }
})
