// Region discovery over a real listener: forty callers of a made-up world, proxies that may and may not forward their
// addresses, regions that become unhealthy, and every path that this address does not serve.
import { writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { builtInRegions } from "#domain/regions/Regions.ts"
import { rawRequest, requestBytes } from "../../support/clients/RawHttp.ts"
import { eventually, temporaryDir } from "../../support/nodes/TestNode.ts"
import { startRoles, type TestRoles } from "../../support/nodes/TestRoles.ts"
import { type GeoValue, geoFile } from "../../support/servers/GeoFile.ts"

const dir = temporaryDir()
afterAll(dir.remove)

interface Route {
  readonly region: string
  readonly name: string
  readonly endpoint: string
  readonly ttl: number
}

const ask = (node: TestRoles, headers: Readonly<Record<string, string>> = {}, query = "") =>
  fetch(`${node.base.router}/v1/route${query}`, { headers })
const routeOf = async (
  node: TestRoles,
  headers?: Readonly<Record<string, string>>,
  query?: string,
): Promise<Route> => {
  const response = await ask(node, headers, query)
  expect(response.status).toBe(200)
  return (await response.json()) as Route
}

const at = (country: string, latitude: number, longitude: number): GeoValue => ({
  country: { iso_code: country },
  location: { latitude, longitude },
})
const only = (country: string): GeoValue => ({ country: { iso_code: country } })

/** Block, an address in it, its database entry, and the city whose regions it must be sent to at home and globally. */
const world: ReadonlyArray<readonly [string, string, GeoValue | undefined, string, string]> = [
  // Canada, also near the border: a nearer edge on the other side does not count.
  ["20.0.0.0/24", "20.0.0.1", at("CA", 43.7, -79.4), "yto", "yto"],
  ["20.0.1.0/24", "20.0.1.255", at("CA", 45.5, -73.6), "yul", "yul"],
  ["20.0.2.0/24", "20.0.2.7", at("CA", 49.3, -123.1), "yvr", "yvr"],
  ["20.0.3.0/24", "20.0.3.7", at("CA", 51.0, -114.1), "yvr", "yvr"],
  ["20.0.4.0/24", "20.0.4.7", at("CA", 49.9, -97.1), "yto", "chi"],
  ["20.0.5.0/24", "20.0.5.7", at("CA", 44.6, -63.6), "yul", "yul"],
  ["20.0.6.0/24", "20.0.6.7", at("CA", 42.3, -83.0), "yto", "yto"],
  ["20.0.7.0/24", "20.0.7.7", at("CA", 48.4, -123.4), "yvr", "yvr"],
  ["20.0.8.0/24", "20.0.8.7", at("CA", 60.7, -135.1), "yvr", "yvr"],
  ["20.0.9.0/24", "20.0.9.7", only("CA"), "yto", "yto"],
  // The United States.
  ["30.0.0.0/24", "30.0.0.1", at("US", 40.7, -74.0), "nyc", "nyc"],
  ["30.0.1.0/24", "30.0.1.1", at("US", 42.4, -71.1), "nyc", "nyc"],
  ["30.0.2.0/24", "30.0.2.1", at("US", 38.9, -77.0), "was", "was"],
  ["30.0.3.0/24", "30.0.3.1", at("US", 25.8, -80.2), "mia", "mia"],
  ["30.0.4.0/24", "30.0.4.1", at("US", 29.8, -95.4), "dfw", "dfw"],
  ["30.0.5.0/24", "30.0.5.1", at("US", 41.9, -87.6), "chi", "chi"],
  ["30.0.6.0/24", "30.0.6.1", at("US", 33.4, -112.1), "phx", "phx"],
  ["30.0.7.0/24", "30.0.7.1", at("US", 32.7, -117.2), "lax", "lax"],
  ["30.0.8.0/24", "30.0.8.1", at("US", 37.3, -121.9), "sfo", "sfo"],
  ["30.0.9.0/24", "30.0.9.1", at("US", 45.5, -122.7), "sea", "sea"],
  // Nearer to Canada's edges, but sent to those of their own country.
  ["30.0.10.0/24", "30.0.10.1", at("US", 44.5, -73.2), "nyc", "yul"],
  ["30.0.11.0/24", "30.0.11.1", at("US", 48.8, -122.5), "sea", "yvr"],
  ["30.0.12.0/24", "30.0.12.1", at("US", 43.2, -77.6), "nyc", "yto"],
  ["30.0.13.0/24", "30.0.13.1", at("US", 61.2, -149.9), "sea", "yvr"],
  ["30.0.14.0/24", "30.0.14.1", at("US", 21.3, -157.9), "sfo", "sfo"],
  ["30.0.15.0/24", "30.0.15.1", only("US"), "was", "was"],
  // No edge at home: by the measured table for Mexico and Japan, by distance for the others.
  ["40.0.0.0/24", "40.0.0.1", at("MX", 19.4, -99.1), "dfw", "dfw"],
  ["40.0.1.0/24", "40.0.1.1", at("MX", 32.5, -117.0), "lax", "lax"],
  ["40.0.2.0/24", "40.0.2.1", only("MX"), "dfw", "dfw"],
  ["41.0.0.0/24", "41.0.0.1", at("FR", 48.9, 2.4), "yul", "yul"],
  ["41.0.1.0/24", "41.0.1.1", only("FR"), "yul", "yul"],
  ["42.0.0.0/24", "42.0.0.1", at("JP", 35.7, 139.7), "sea", "yvr"],
  ["42.0.1.0/24", "42.0.1.1", only("JP"), "sea", "yvr"],
  ["43.0.0.0/24", "43.0.0.1", at("BR", -23.5, -46.6), "mia", "mia"],
  // IPv6.
  ["2a00:1::/32", "2a00:1::1", at("CA", 45.5, -73.6), "yul", "yul"],
  ["2a00:2::/32", "2a00:2:ffff::1", at("US", 34.1, -118.2), "lax", "lax"],
  ["2a00:3::/32", "2a00:3::a:b", at("FR", 43.3, 5.4), "yul", "yul"],
  ["2a00:4::/32", "2a00:4::1", only("JP"), "sea", "yvr"],
  // Unknown to the database: from where the router stands (Phoenix).
  ["-", "203.0.113.7", undefined, "phx", "phx"],
  ["-", "2001:db8::1", undefined, "phx", "phx"],
]

describe("forty callers", () => {
  let node: TestRoles
  beforeAll(async () => {
    const blocks = world.flatMap(([block, , value]) => (value === undefined ? [] : [[block, value] as const]))
    writeFileSync(join(dir.path, "geo.mmdb"), geoFile(Object.fromEntries(blocks)))
    node = await startRoles({
      roles: "router",
      region: "phx-01",
      regions: regionsFile("measured.json", undefined, { JP: { US: 95, CA: 110 }, MX: { US: 40 } }),
      geoipDb: join(dir.path, "geo.mmdb"),
      trustedProxies: "127.0.0.0/8",
    })
  })
  afterAll(() => node.stop())

  it("are sent to their country's nearest edge, or across the border by the network's measure", async () => {
    expect(world).toHaveLength(40)
    const answers = await Promise.all(
      world.map(async ([, address]) => {
        const headers = { "x-forwarded-for": address }
        const home = await routeOf(node, headers)
        const anywhere = await routeOf(node, headers, "?scope=global")
        return [address, home.region.slice(0, 3), anywhere.region.slice(0, 3)]
      }),
    )
    expect(answers).toEqual(world.map(([, address, , home, anywhere]) => [address, home, anywhere]))
  })

  it("get an answer to keep, and keep to themselves", async () => {
    const response = await ask(node, { "x-forwarded-for": "30.0.2.1" })
    expect(response.headers.get("cache-control")).toBe("private, max-age=60")
    expect(response.headers.get("content-type")).toBe("application/json")
    expect(response.headers.get("access-control-allow-origin")).toBe("*")
    expect(await response.json()).toEqual({
      region: "was-01",
      name: "Washington DC",
      endpoint: "https://was-01.test",
      ttl: 60,
    })
  })

  it("share the two sites of a city, each always with the same one", async () => {
    const sites = new Map<string, number>()
    for (let host = 0; host < 64; host++) {
      const headers = { "x-forwarded-for": `20.0.1.${host}` }
      const { region } = await routeOf(node, headers)
      expect((await routeOf(node, headers)).region).toBe(region)
      sites.set(region, (sites.get(region) ?? 0) + 1)
    }
    expect([...sites.keys()].sort()).toEqual(["yul-01", "yul-02"])
    expect(Math.min(...sites.values())).toBeGreaterThan(16)
  })
})

describe("a proxy's word", () => {
  const proxied = (trustedProxies?: string) =>
    startRoles({
      roles: "router",
      region: "phx-01",
      edgeDomain: "example.com",
      ...(trustedProxies === undefined ? {} : { trustedProxies }),
    })

  it("places the caller where the proxy is trusted", async () => {
    const node = await proxied("127.0.0.1")
    try {
      for (const [headers, region] of [
        [{ "cf-ipcountry": "CA", "cf-iplatitude": "49.2", "cf-iplongitude": "-123.0" }, "yvr-02"],
        [{ "cf-ipcountry": "ca", "cf-iplatitude": "49.2", "cf-iplongitude": "-123.0" }, "yvr-02"],
        [{ "cf-ipcountry": "CA" }, "yto-01"],
        [{ "cf-ipcountry": "CA", "cf-iplatitude": "up", "cf-iplongitude": "1" }, "yto-01"],
        [{ "cf-ipcountry": "CA", "cf-iplatitude": "95", "cf-iplongitude": "1" }, "yto-01"],
        [{ "cf-ipcountry": "XX" }, "phx-01"],
        [{ "cf-ipcountry": "T1" }, "phx-01"],
        [{ "cf-ipcountry": "CANADA" }, "phx-01"],
        // Unassigned: no hub, so from the router's place.
        [{ "cf-ipcountry": "QQ" }, "phx-01"],
        [{}, "phx-01"],
      ] as const) {
        const route = await routeOf(node, headers)
        expect([headers, route.region]).toEqual([headers, region])
        expect(route.endpoint).toBe(`https://api.${region}.edge.example.com`)
      }
    } finally {
      await node.stop()
    }
  })

  it("is ignored from untrusted proxies", async () => {
    for (const trusted of [undefined, "192.0.2.0/24,2001:db8::/32"]) {
      const node = await proxied(trusted)
      try {
        const headers = { "cf-ipcountry": "CA", "cf-iplatitude": "49.2", "cf-iplongitude": "-123.0" }
        expect((await routeOf(node, { ...headers, "x-forwarded-for": "192.0.2.1" })).region).toBe("phx-01")
      } finally {
        await node.stop()
      }
    }
  })
})

describe("everything else", () => {
  let node: TestRoles
  beforeAll(async () => {
    node = await startRoles()
  })
  afterAll(() => node.stop())

  it("is 403", async () => {
    const port = Number(new URL(node.base.router).port)
    for (const [method, path] of [
      ...["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "PROPFIND"].map(
        (name) => [name, "/v1/route"] as const,
      ),
      ...["/", "/v1", "/v1/route/", "/v1//route", "/V1/ROUTE", "/v1/routes", "/health", "/v1/models"].map(
        (path) => ["GET", path] as const,
      ),
      ["GET", "//v1/route"],
      ["GET", "/v1/route;x"],
    ] as const) {
      const response = await rawRequest(port, requestBytes(method, path), { toHead: method === "HEAD" })
      expect([method, path, response.status]).toEqual([method, path, 403])
      if (method !== "HEAD") expect(JSON.parse(response.body.toString())).toEqual({ detail: "Forbidden" })
    }
  })

  it("tells OpenAI's packages that it is a router", async () => {
    const reply = await fetch(`${node.base.router}/v1/models`, { headers: { "x-stainless-lang": "js" } })
    expect(reply.status).toBe(403)
    expect(await reply.json()).toEqual({
      detail: "Forbidden",
      error: {
        message:
          "Forbidden. This is a router, which serves GET /v1/route alone; the base URL of a client is that of an edge",
        type: "invalid_request_error",
        param: null,
        code: null,
      },
    })
  })

  it("and a scope that is none is 400", async () => {
    for (const query of ["?scope=", "?scope=world", "?scope=GLOBAL"]) {
      const response = await ask(node, {}, query)
      expect([query, response.status]).toEqual([query, 400])
      expect(await response.json()).toEqual({ detail: "scope: must be global, or left out" })
    }
    expect((await ask(node, {}, "?other=1")).status).toBe(200)
    const twice = await ask(node, {}, "?scope=global&scope=global")
    expect([twice.status, await twice.json()]).toEqual([400, { detail: "scope: must be given once" }])
  })

  it("a node by itself is its own region, at its edge's address", async () => {
    expect(await routeOf(node)).toEqual({ region: "local", name: "Local", endpoint: node.base.edge, ttl: 60 })
    expect((await routeOf(node, {}, "?scope=global")).endpoint).toBe(node.base.edge)
  })

  it("and one that listens on every address is reached under the name it was asked by", async () => {
    const open = await startRoles({ host: "0.0.0.0", region: "mia-01" })
    try {
      const edgePort = new URL(open.base.edge).port
      const port = Number(new URL(open.base.router).port)
      const ask = (host: string) => rawRequest(port, `GET /v1/route HTTP/1.1\r\nhost: ${host}\r\n\r\n`)
      const endpoint = async (host: string) =>
        (JSON.parse((await ask(host)).body.toString()) as Route).endpoint
      expect(await endpoint(`box.lan:${port}`)).toBe(`http://box.lan:${edgePort}`)
      expect(await endpoint(`[fd00::1]:${port}`)).toBe(`http://[fd00::1]:${edgePort}`)
      expect(await endpoint("evil'(1)")).toBe(`http://127.0.0.1:${edgePort}`)
      for (const host of ['evil"><script>', "user@evil:1"]) expect((await ask(host)).status).toBe(400)
    } finally {
      await open.stop()
    }
  })
})

describe("a sick region", () => {
  /** An edge of which only /health is known. */
  const fakeEdge = async () => {
    const edge = { status: 200, asked: 0, base: "", server: undefined as Server | undefined }
    const server = createServer((request, response) => {
      edge.asked += request.url === "/health" ? 1 : 0
      response.writeHead(edge.status).end("{}")
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    edge.base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    edge.server = server
    return edge
  }

  it("is avoided while it is, and none at all is 503", async () => {
    const [toronto, dallas] = [await fakeEdge(), await fakeEdge()]
    const regions = [
      {
        code: "yto-01",
        name: "Toronto",
        country: "CA",
        latitude: 43.7,
        longitude: -79.4,
        endpoint: toronto.base,
      },
      {
        code: "dfw-01",
        name: "Dallas",
        country: "US",
        latitude: 32.8,
        longitude: -96.8,
        endpoint: dallas.base,
      },
    ]
    const node = await startRoles({
      roles: "router",
      region: "yto-01",
      regions: regionsFile("sick.json", regions),
      regionHealthSeconds: "1",
    })
    const region = async () => {
      const response = await ask(node)
      return response.status === 200 ? ((await response.json()) as Route).region : response.status
    }
    try {
      expect(await region()).toBe("yto-01")
      toronto.status = 503
      await eventually(async () => (await region()) === "dfw-01", "Toronto is avoided")
      toronto.status = 200
      await eventually(async () => (await region()) === "yto-01", "Toronto is back")
      // A region that does not answer.
      toronto.server?.close()
      toronto.server?.closeAllConnections()
      await eventually(async () => (await region()) === "dfw-01", "Toronto is gone")
      dallas.status = 500
      await eventually(async () => (await region()) === 503, "no region is left")
      const none = await ask(node)
      expect(await none.json()).toEqual({ detail: "No healthy region" })
      expect(none.headers.get("retry-after")).toBe("5")
      expect(dallas.asked).toBeGreaterThan(1)
    } finally {
      await node.stop()
      toronto.server?.close()
      dallas.server?.close()
    }
  })
})

describe("what an operator may get wrong", () => {
  it.each([
    ["a file that is not there", { regions: join(dir.path, "none.json") }, /there is no such regions file/],
    [
      "a region without an address",
      { regions: regionsFile("bare.json", [place("abc-01")]) },
      /abc-01 has no endpoint/,
    ],
    [
      "a region twice",
      { regions: regionsFile("twice.json", [place("abc-01"), place("abc-01")]), edgeDomain: "x.test" },
      /abc-01 occurs twice/,
    ],
    [
      "a country that is none",
      { regions: regionsFile("odd.json", [{ ...place("a"), country: "Canada" }]) },
      /country/,
    ],
    ["no geo database", { geoipDb: join(dir.path, "none.mmdb") }, /geo database/],
    ["trusted proxies", { trustedProxies: "10.0.0.0/33" }, /EDGEWISE_TRUSTED_PROXIES/],
    ["roles", { roles: "edge,router,boss" }, /EDGEWISE_ROLES/],
    ["a domain", { edgeDomain: "https://example.com" }, /EDGEWISE_EDGE_DOMAIN/],
    ["a key set's address", { authJwksUrl: "file:///etc/passwd" }, /EDGEWISE_AUTH_JWKS_URL/],
  ])("%s stops the start with a word about it", async (_, flags, message) => {
    await expect(startRoles({ roles: "router", ...flags })).rejects.toThrow(message)
  })
})

function place(code: string) {
  return { code, name: code, country: "CA", latitude: 1, longitude: 2 }
}

/** A regions file; without regions of its own, those of protocol 15.4 with addresses by their codes. */
function regionsFile(
  name: string,
  regions: ReadonlyArray<object> = builtInRegions.map((region) => ({
    ...region,
    endpoint: `https://${region.code}.test`,
  })),
  rtt_ms: object = {},
): string {
  const path = join(dir.path, name)
  writeFileSync(path, JSON.stringify({ regions, rtt_ms }))
  return path
}
