// Wrong credentials at an edge: counted by the address that trusted proxies report, 429 beyond the limit; a good
// credential passes nevertheless. Over real listeners.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { headerOf, rawRequest, requestBytes } from "../../support/clients/RawHttp.ts"
import { startRoles, type TestRoles } from "../../support/nodes/TestRoles.ts"

const limit = 6
let proxied: TestRoles
let bare: TestRoles
beforeAll(async () => {
  const authFailureLimit = String(limit)
  ;[proxied, bare] = await Promise.all([
    // The right credential comes from other addresses as well.
    startRoles({ roles: "edge", authFailureLimit, trustedProxies: "127.0.0.1", devKey: "anywhere" }),
    startRoles({ roles: "edge", authFailureLimit }),
  ])
})
afterAll(() => Promise.all([proxied.stop(), bare.stop()]))

type Headers = Readonly<Record<string, string>>

const ask = async (node: TestRoles, authorization: string | undefined, headers: Headers = {}) => {
  const all = authorization === undefined ? headers : { ...headers, authorization }
  const port = Number(new URL(node.base.edge).port)
  const response = await rawRequest(port, requestBytes("GET", "/v1/models", all))
  return {
    status: response.status,
    retryAfter: headerOf(response, "retry-after"),
    body: response.body.toString(),
  }
}
const guess = (digit: number) => `Bearer svc_${String(digit).padStart(33, "x")}`
const from = (address: string): Headers => ({ "x-forwarded-for": address })

describe("wrong credentials from one address", () => {
  it("are 401 up to the limit and 429 beyond it; a good one passes", async () => {
    const here = from("192.0.2.1")
    for (let i = 0; i < limit; i++) {
      expect(await ask(proxied, guess(i), here)).toMatchObject({ status: 401 })
    }
    const refused = await ask(proxied, guess(limit), here)
    expect(refused).toMatchObject({ status: 429, body: '{"detail":"Rate limit exceeded"}' })
    // One failure is forgiven every 60 s / 6.
    expect(Number(refused.retryAfter)).toBeGreaterThan(0)
    expect(Number(refused.retryAfter)).toBeLessThanOrEqual(10)
    expect((await ask(proxied, `Bearer ${proxied.devKey}`, here)).status).toBe(200)
    expect((await ask(proxied, undefined, here)).status).toBe(401)
  })

  it("do not touch other addresses", async () => {
    expect((await ask(proxied, `Bearer ${proxied.devKey}`, from("192.0.2.2"))).status).toBe(200)
    expect((await ask(proxied, `Bearer ${proxied.devKey}`)).status).toBe(200)
    expect((await ask(proxied, guess(0), from("198.51.100.7"))).status).toBe(401)
  })

  it("are counted by network where the address is IPv6", async () => {
    for (let i = 0; i < limit; i++) {
      expect((await ask(proxied, guess(i), from(`2001:db8:0:7::${i + 1}`))).status).toBe(401)
    }
    expect((await ask(proxied, guess(0), from("2001:db8:0:7:ffff::1"))).status).toBe(429)
    expect((await ask(proxied, guess(0), from("2001:db8:0:8::1"))).status).toBe(401)
  })

  it("are not counted while nothing is guessed at: no credential at all, or a good one", async () => {
    const here = from("192.0.2.3")
    for (let i = 0; i < 3 * limit; i++) {
      expect((await ask(proxied, undefined, here)).status).toBe(401)
      expect((await ask(proxied, `Bearer ${proxied.devKey}`, here)).status).toBe(200)
    }
  })

  it("are counted at the peer's address where no proxy is trusted, whatever the headers contain", async () => {
    for (let i = 0; i < limit; i++) {
      expect((await ask(bare, guess(i), from(`192.0.2.${i}`))).status).toBe(401)
    }
    expect((await ask(bare, guess(0), from("203.0.113.9"))).status).toBe(429)
  })

  it("count on a WebSocket's address as well", async () => {
    const port = Number(new URL(proxied.base.edge).port)
    const statuses: Array<number> = []
    for (let i = 0; i <= limit; i++) {
      const headers = {
        ...from("192.0.2.4"),
        upgrade: "websocket",
        connection: "Upgrade",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      }
      const target = `/v1/audio/transcriptions/ws?token=svc_${String(i).padStart(33, "y")}`
      statuses.push((await rawRequest(port, requestBytes("GET", target, headers))).status)
    }
    expect(statuses).toEqual([...new Array<number>(limit).fill(401), 429])
  })
})
