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
/**
 * Statuses of wrong credentials until one is refused with 429, and that answer. One failure is forgiven every 60 s / 6, which a machine
 * that stands still may take for a few: then there are more of them than the limit.
 */
const untilRefused = async <A extends { readonly status: number }>(wrong: (nth: number) => Promise<A>) => {
  const statuses: Array<number> = []
  for (;;) {
    const answer = await wrong(statuses.length)
    statuses.push(answer.status)
    if (answer.status !== 401 || statuses.length === 10 * limit) return { statuses, answer }
  }
}
const expectRefused = (statuses: ReadonlyArray<number>) => {
  expect(statuses.slice(0, limit)).toEqual(new Array<number>(limit).fill(401))
  expect(statuses.at(-1)).toBe(429)
}
const guess = (digit: number) => `Bearer svc_${String(digit).padStart(33, "x")}`
const from = (address: string): Headers => ({ "x-forwarded-for": address })

describe("wrong credentials from one address", () => {
  it("are 401 up to the limit and 429 beyond it; a good one passes", async () => {
    const here = from("192.0.2.1")
    const { answer: refused, statuses } = await untilRefused((i) => ask(proxied, guess(i), here))
    expectRefused(statuses)
    expect(refused.body).toBe('{"detail":"Rate limit exceeded"}')
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
    const { statuses } = await untilRefused((i) =>
      ask(proxied, guess(i), from(i < limit ? `2001:db8:0:7::${i + 1}` : "2001:db8:0:7:ffff::1")),
    )
    expectRefused(statuses)
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
    const { statuses } = await untilRefused((i) =>
      ask(bare, guess(i), from(i < limit ? `192.0.2.${i}` : "203.0.113.9")),
    )
    expectRefused(statuses)
  })

  it("count on a WebSocket's address as well", async () => {
    const port = Number(new URL(proxied.base.edge).port)
    const { statuses } = await untilRefused((i) => {
      const headers = {
        ...from("192.0.2.4"),
        upgrade: "websocket",
        connection: "Upgrade",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      }
      const target = `/v1/audio/transcriptions/ws?token=svc_${String(i).padStart(33, "y")}`
      return rawRequest(port, requestBytes("GET", target, headers))
    })
    expectRefused(statuses)
  })
})
