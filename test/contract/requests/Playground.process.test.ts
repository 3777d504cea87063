// The playground's files over a listening server: content types, policy, caching, and nothing outside of the folder.
import { readdirSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, expect, it } from "vitest"
import { rawRequest } from "../../support/clients/RawHttp.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode()
})
afterAll(() => node.stop())

const folder = fileURLToPath(new URL("../../../src/web", import.meta.url))
const types: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
}
const served = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) =>
  /\.(?:js|css|svg)$/.test(path),
)

it("serves the page with a policy that allows nothing inline and nothing from elsewhere", async () => {
  const response = await node.fetch("/")
  expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8")
  const policy = response.headers.get("content-security-policy") ?? ""
  expect(policy).toContain("default-src 'none'")
  expect(policy).not.toMatch(/unsafe|https?:|\*/)
  const html = await response.text()
  // Addresses are relative, so that a proxy may serve the node under a prefix.
  for (const [, address = ""] of html.matchAll(/(?:src|href)="([^"#]+)"/g)) {
    expect([address, /^(?:playground\/|docs$)/.test(address)]).toEqual([address, true])
    expect([address, (await node.fetch(`/${address}`)).status]).toEqual([address, 200])
  }
  expect(html).not.toMatch(/<script(?![^>]*src=)|<style|\sstyle=|\son\w+=/)
})

it("serves every script, style and picture with its type, and 304 to a client that has it", async () => {
  expect(served.length).toBeGreaterThan(25)
  for (const path of served) {
    const response = await node.fetch(`/playground/${path}`)
    const type = types[path.split(".").at(-1)!]
    expect([path, response.status, response.headers.get("content-type")]).toEqual([path, 200, type])
    await response.text()
    const headers = { "if-none-match": response.headers.get("etag") ?? "" }
    expect([path, (await node.fetch(`/playground/${path}`, { headers })).status]).toEqual([path, 304])
  }
})

it("serves the voice modules under addresses with and without their folder", async () => {
  const modules = served.filter((path) => path.startsWith("voice/"))
  expect(modules.length).toBeGreaterThan(10)
  for (const path of modules) {
    const [own, other] = await Promise.all(
      [path, path.slice("voice/".length)].map(async (at) => (await node.fetch(`/playground/${at}`)).text()),
    )
    expect([path, other]).toEqual([path, own])
  }
})

it("serves nothing else, and nothing outside of the folder", async () => {
  const paths = [
    "/playground/",
    "/playground/nothing.js",
    "/playground/tsconfig.json",
    "/playground/voice/audio/worklet.d.ts",
    "/playground/voice/README.md",
    "/playground/voice/test/talk/Ledger.test.ts",
    "/playground/../package.json",
    "/playground/%2e%2e/package.json",
    "/playground/..%2f..%2fpackage.json",
    "/playground//main.js",
    "/playground/index.html",
  ]
  for (const path of paths) {
    const { body, status } = await rawRequest(node.port, `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
    expect([path, status, Buffer.from(body).toString()]).toEqual([path, 404, '{"detail":"Not Found"}'])
  }
})

it("takes GET and HEAD only", async () => {
  const refused = await node.fetch("/playground/main.js", { method: "POST" })
  expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"])
  expect((await node.fetch("/playground/main.js", { method: "HEAD" })).status).toBe(200)
})

it("is one route in the metrics, whatever is asked for", async () => {
  await node.fetch("/playground/anything-at-all")
  const names = [...(await node.metrics()).keys()]
  expect(names.some((name) => name.includes('route="/playground/*"'))).toBe(true)
  expect(names.filter((name) => name.includes("anything-at-all"))).toEqual([])
})
