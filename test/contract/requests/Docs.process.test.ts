// The API reference over HTTP: small, cached, compressed, from this node alone,
// and made only on request.
import { createHash } from "node:crypto"
import type { Worker } from "node:worker_threads"
import { gunzipSync } from "node:zlib"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  headerOf,
  RawConnection,
  type RawResponse,
  rawRequest,
  requestBytes,
} from "../../support/clients/RawHttp.ts"
import { eventually, startNode, type TestNode } from "../../support/nodes/TestNode.ts"

const threads: Array<Worker> = []
const countThread = (worker: Worker) => threads.push(worker)

let node: TestNode
let threadsAtStart = 0
beforeAll(async () => {
  process.on("worker", countThread)
  node = await startNode()
  threadsAtStart = threads.length
})
afterAll(async () => {
  process.off("worker", countThread)
  await node.stop()
})

type Headers = Readonly<Record<string, string>>
const get = (path: string, headers: Headers = {}) => rawRequest(node.port, requestBytes("GET", path, headers))
const head = (path: string, headers: Headers = {}) =>
  rawRequest(node.port, requestBytes("HEAD", path, headers), { toHead: true })
const gzip = { "accept-encoding": "gzip" }

/** The page's text, and the address of the script in it. */
const page = async () => {
  const html = (await get("/docs")).body.toString("utf8")
  return { html, scriptPath: `/${/<script src="([^"]+)"/.exec(html)?.[1]}` }
}

it("makes the script once, on the first request, whichever client disconnects", async () => {
  const left = await RawConnection.open(node.port)
  await left.send(requestBytes("GET", "/docs"))
  await eventually(() => threads.length > threadsAtStart, "the thread has started")
  left.destroy()
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, i) => get(i % 2 === 0 ? "/docs" : "/docs/scalar.js", gzip)),
  )
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  await get("/docs/scalar.js")
  expect(threads.length).toBe(threadsAtStart + 1)
  await eventually(() => threads.at(-1)?.threadId === -1, "the thread has ended")
})

describe("the page", () => {
  it("is small, and says what it may load", async () => {
    const response = await get("/docs")
    expect(response.status).toBe(200)
    expect(response.body.length).toBeLessThan(2_048)
    expect(headerOf(response, "content-type")).toBe("text/html; charset=utf-8")
    expect(headerOf(response, "cache-control")).toBe("no-cache")
    expect(headerOf(response, "x-content-type-options")).toBe("nosniff")
    expect(headerOf(response, "referrer-policy")).toBe("no-referrer")
    const rules = (headerOf(response, "content-security-policy") ?? "").split("; ")
    expect(rules).toEqual(
      expect.arrayContaining(["default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"]),
    )
    const inline = /<script>(.*?)<\/script>/s.exec(response.body.toString("utf8"))?.[1] ?? ""
    const digest = createHash("sha256").update(inline).digest("base64")
    expect(rules).toContain(`script-src 'self' 'sha256-${digest}'`)
  })

  it("names the script by what is in it", async () => {
    const { scriptPath } = await page()
    const { body } = await get(scriptPath)
    const hash = createHash("sha256").update(body).digest("base64url")
    expect(scriptPath).toMatch(/^\/docs\/scalar\.js\?v=[\w-]{22}$/)
    expect(hash.startsWith(scriptPath.split("=")[1]!)).toBe(true)
  })
})

describe("the script", () => {
  it("is whole and, for clients that accept gzip, a third of its size", async () => {
    const { scriptPath } = await page()
    const plain = await get(scriptPath)
    const zipped = await get(scriptPath, gzip)
    expect([plain.complete, zipped.complete]).toEqual([true, true])
    expect(headerOf(plain, "content-encoding")).toBe(undefined)
    expect(headerOf(zipped, "content-encoding")).toBe("gzip")
    expect(gunzipSync(zipped.body).equals(plain.body)).toBe(true)
    expect(zipped.body.length * 3).toBeLessThan(plain.body.length)
    // As a page would run it, and nothing of the page around it.
    expect(plain.body.toString("utf8")).toContain("createApiReference")
    expect(plain.body.includes("</script")).toBe(false)
    expect(plain.body.subarray(0, 2).toString()).toBe("/*")
    for (const response of [plain, zipped]) {
      expect(headerOf(response, "content-type")).toBe("text/javascript; charset=utf-8")
      expect(headerOf(response, "x-content-type-options")).toBe("nosniff")
    }
  })

  it.each(["/docs/scalar.js", "/docs/scalar.js?v=of-an-older-node"])(
    "at %s, an address that does not name this text, is asked for again each time",
    async (path) => {
      const response = await head(path)
      expect([response.status, headerOf(response, "cache-control")]).toEqual([200, "no-cache"])
    },
  )

  it("at the page's own address is kept for ever", async () => {
    expect(headerOf(await head((await page()).scriptPath), "cache-control")).toBe(
      "public, max-age=31536000, immutable",
    )
  })
})

const caching = ({ headers }: RawResponse) =>
  ["etag", "vary", "cache-control", "content-encoding", "content-length", "content-type"].map((name) => [
    name,
    headers.get(name),
  ])

describe.each(["/", "/docs", "/docs/scalar.js", "/openapi.json"])("%s", (path) => {
  it.each([{}, gzip])("with %j is 304 for a client that has it", async (accept) => {
    const response = await get(path, accept)
    const etag = headerOf(response, "etag") ?? ""
    expect(etag).toMatch(/^"[\w-]{22}(-gzip)?"$/)
    expect(headerOf(response, "vary")).toBe("accept-encoding")
    const again = await get(path, { ...accept, "if-none-match": `"other", ${etag}` })
    expect([again.status, again.body.length]).toEqual([304, 0])
    expect([headerOf(again, "etag"), headerOf(again, "vary")]).toEqual([etag, "accept-encoding"])
    expect((await get(path, { ...accept, "if-none-match": '"other"' })).status).toBe(200)
  })

  it("has a tag for each coding", async () => {
    const plain = headerOf(await get(path), "etag")
    expect(headerOf(await get(path, gzip), "etag")).not.toBe(plain)
    expect((await get(path, { ...gzip, "if-none-match": plain! })).status).toBe(200)
  })

  it.each([{}, gzip])(
    "with %j answers HEAD with GET's head, on a connection that goes on",
    async (accept) => {
      const connection = await RawConnection.open(node.port)
      await connection.send(requestBytes("HEAD", path, accept))
      const answer = await connection.response({ toHead: true })
      await connection.send(requestBytes("HEAD", path, { ...accept, "if-none-match": "*" }))
      const unchanged = await connection.response({ toHead: true })
      await connection.send(requestBytes("GET", path, accept))
      const whole = await connection.response()
      connection.destroy()
      expect([answer.status, unchanged.status, whole.status]).toEqual([200, 304, 200])
      expect(caching(answer)).toEqual(caching(whole))
    },
  )

  it("takes no POST", async () => {
    const response = await node.fetch(path, { method: "POST" })
    expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"])
  })
})
