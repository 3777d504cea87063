// The operator token over real listeners: what it opens, and from where. A proxy on this machine is a connection from 127.0.0.1
// with its headers.
import { existsSync, readFileSync } from "node:fs"
import { networkInterfaces } from "node:os"
import { join } from "node:path"
import * as OpenApi from "effect/http-api/OpenApi"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { EdgeApi } from "#api/declared/EdgeApi.ts"
import { jsonOf, rawRequest } from "../../support/clients/RawHttp.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { temporaryDir } from "../../support/nodes/TestNode.ts"
import { startRoles, type TestRoles } from "../../support/nodes/TestRoles.ts"
import { type ApiDocument, operationsOf } from "../../support/wire/ApiDocument.ts"

const invalid = [401, { detail: "Invalid operator token" }]
const elsewhere = [401, { detail: "The operator token is for the operators' endpoints only" }]

const tokenOf = ({ dataDir }: TestRoles): string =>
  readFileSync(join(dataDir, "operator-token"), "utf8").trim()

const ask = async (
  url: string,
  credential: string,
  headers: Readonly<Record<string, string>> = {},
  method = "GET",
) => {
  const response = await fetch(url, {
    method,
    headers: { ...headers, authorization: `Bearer ${credential}` },
    ...(method === "POST" ? { body: "{}" } : {}),
  })
  const text = await response.text()
  return [response.status, response.status === 200 ? "" : JSON.parse(text)]
}

const tree = (base: string, credential: string, headers: Readonly<Record<string, string>> = {}) =>
  ask(`${base}/v1/node/tree`, credential, headers)

describe("on a node that only this machine can reach", () => {
  let node: TestRoles
  let token: string
  beforeAll(async () => {
    node = await startRoles({ metricsAuth: "true", authFailureLimit: "0" })
    token = tokenOf(node)
  })
  afterAll(() => node.stop())

  it("opens the operators' endpoints", async () => {
    expect(token).toMatch(new RegExp(`^op_${new URL(node.base.edge).port}_[0-9A-Za-z]{43}$`))
    for (const path of ["/v1/node/tree", "/v1/gpu/status", "/v1/models", "/v1/models/status", "/metrics"])
      expect([path, await ask(node.base.edge + path, token)]).toEqual([path, [200, ""]])
    const response = await fetch(`${node.base.edge}/health`, {
      headers: { authorization: `Bearer ${token}` },
    })
    expect(await response.json()).toHaveProperty("details")
  })

  it("opens nothing that belongs to an organization", async () => {
    const others = operationsOf(OpenApi.fromApi(EdgeApi) as unknown as ApiDocument).filter(
      ({ path }) => path.startsWith("/v1/") && !/^\/v1\/(models|gpu|node)\b/.test(path),
    )
    expect(others.length).toBeGreaterThan(8)
    for (const { method, path } of others)
      expect([path, await ask(node.base.edge + path, token, {}, method.toUpperCase())]).toEqual([
        path,
        elsewhere,
      ])
    const socket = await SocketClient.connect(
      `${node.base.edge.replace("http", "ws")}/v1/completions/ws?token=${token}`,
    )
    expect(socket).toMatchObject({ status: 401 })
    expect(await ask(`${node.base.auth}/v1/auth/session`, token, {}, "POST")).toMatchObject([401, {}])
  })

  it("is refused through a proxy, and where it differs", async () => {
    for (const headers of [
      { "x-forwarded-for": "203.0.113.7" },
      { "x-forwarded-for": "127.0.0.1" },
      { forwarded: "for=127.0.0.1" },
      { "x-real-ip": "127.0.0.1" },
      { via: "1.1 proxy" },
      { "x-forwarded-proto": "https" },
    ])
      expect([headers, await tree(node.base.edge, token, headers)]).toEqual([headers, invalid])
    const last = token.endsWith("0") ? "1" : "0"
    for (const wrong of [`${token.slice(0, -1)}${last}`, token.slice(0, -1), `${token}0`, "op_", "op_8080_x"])
      expect([wrong, await tree(node.base.edge, wrong)]).toEqual([wrong, invalid])
  })
})

it("a trusted proxy is not believed that its caller is on this machine", async () => {
  const node = await startRoles({ roles: "edge", trustedProxies: "127.0.0.1", authFailureLimit: "0" })
  try {
    const token = tokenOf(node)
    expect(await tree(node.base.edge, token)).toEqual([200, ""])
    for (const address of ["127.0.0.1", "::1", "203.0.113.7"])
      expect(await tree(node.base.edge, token, { "x-forwarded-for": address })).toEqual(invalid)
  } finally {
    await node.stop()
  }
})

/** An IPv4 address of this machine that is not loopback, if it has one. */
const outsideAddress = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === "IPv4" && !internal)?.address

it("on a node that other machines can reach, it is accepted from this one alone", async () => {
  const node = await startRoles({ roles: "edge", host: "0.0.0.0", authFailureLimit: "0" }, [fakeModel])
  try {
    const token = tokenOf(node)
    const at = (host: string) => node.base.edge.replace("0.0.0.0", host)
    expect(await tree(at("127.0.0.1"), token)).toEqual([200, ""])
    if (outsideAddress !== undefined) expect(await tree(at(outsideAddress), token)).toEqual(invalid)
    // A proxy that adds no header, or a page of another site whose name leads here.
    const named = `GET /v1/node/tree HTTP/1.1\r\nhost: example.com\r\nauthorization: Bearer ${token}\r\n\r\n`
    const refused = await rawRequest(Number(new URL(node.base.edge).port), named)
    expect([refused.status, jsonOf(refused)]).toEqual(invalid)
  } finally {
    await node.stop()
  }
})

it("ends with its node: the file is removed, and the next start makes another", async () => {
  const dir = temporaryDir()
  const dataDir = join(dir.path, "data")
  const first = await startRoles({ roles: "edge", dataDir })
  const old = tokenOf(first)
  await first.stop()
  expect(existsSync(join(dataDir, "operator-token"))).toBe(false)
  const second = await startRoles({ roles: "edge", dataDir })
  try {
    const fresh = tokenOf(second)
    expect(fresh).not.toBe(old)
    expect(await tree(second.base.edge, old)).toEqual(invalid)
    expect(await tree(second.base.edge, fresh)).toEqual([200, ""])
  } finally {
    await second.stop()
    dir.remove()
  }
})
