// Credentials, prices, rates and cross-origin rules on every edge path, with
// the command line working on the same store while the node runs.
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { knownPaths } from "#api/EdgeRoutes.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { RawConnection, requestBytes } from "../../support/clients/RawHttp.ts"
import { TextStream } from "../../support/clients/TextStream.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { edgewise } from "../../support/nodes/NodeProcess.ts"
import { price } from "../../support/nodes/TestCatalog.ts"
import { eventually, onNode, startNode, type TestNode, untilIdle } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode()
})
afterAll(() => node.stop())

const chatPath = "/v1/chat/completions"
const chat = (steps: Readonly<Record<string, unknown>>, more: object = {}) => ({
  model: "fake",
  messages: [{ role: "user", content: script(steps) }],
  ...more,
})
const cli = async (...args: ReadonlyArray<string>): Promise<unknown> => {
  const { status, stderr, stdout } = await edgewise([...args, "--json"], { EDGEWISE_DATA_DIR: node.dataDir })
  expect([status, stderr]).toEqual([0, ""])
  return JSON.parse(stdout)
}
const newKey = (org: string, user?: string) =>
  node.run(
    Effect.flatMap(Accounts, (accounts) => accounts.createKey(user === undefined ? { org } : { org, user })),
  )

describe("credentials", () => {
  const withHeader = (authorization?: string) =>
    node.fetch("/v1/models", authorization === undefined ? {} : { headers: { authorization } })

  it.each([
    ["none", undefined, "Missing bearer token"],
    ["an empty bearer", "Bearer ", "Missing bearer token"],
    ["another scheme", "Basic dXNlcjpwYXNz", "Missing bearer token"],
    ["an unknown key", `Bearer svc_${"A".repeat(32)}`, "Invalid API key"],
    ["a key of the wrong length", "Bearer svc_short", "Invalid API key"],
    ["a word", "Bearer nonsense", "Invalid token: Not enough segments"],
    ["two segments", "Bearer a.b", "Invalid token: Not enough segments"],
    ["a token of an unknown issuer", "Bearer a.b.c", "Invalid token: Signature verification failed"],
  ])("%s is 401", async (_, authorization, detail) => {
    const response = await withHeader(authorization)
    expect(response.status).toBe(401)
    expect(await response.json()).toEqual({ detail })
    expect(response.headers.get("www-authenticate")).toBe("Bearer")
    expect(response.headers.get("access-control-allow-origin")).toBe("*")
  })

  it("a revoked key is 401 everywhere", async () => {
    for (const path of ["/v1/models", "/v1/models/status"]) {
      const response = await node.fetch(path, { headers: { authorization: `Bearer ${node.keys.revoked}` } })
      expect([path, response.status]).toEqual([path, 401])
    }
    const response = await node.post(chatPath, chat({}), { key: node.keys.revoked })
    expect(response.status).toBe(401)
    expect(await response.json()).toEqual({ detail: "Invalid API key" })
  })

  it("are asked for before a body is looked at", async () => {
    const connection = await RawConnection.open(node.port)
    await connection.send(requestBytes("POST", chatPath, { "content-length": "7000000" }))
    const response = await connection.response()
    expect(response.status).toBe(401)
    connection.destroy()
  })

  it("health, metrics and pages need none", async () => {
    for (const path of ["/health", "/metrics", "/", "/docs", "/docs/scalar.js", "/openapi.json"])
      expect([path, (await node.fetch(path)).status]).toEqual([path, 200])
  })

  it("a key made on the command line works at once, and one revoked there ends its streams", async () => {
    const made = (await cli("keys", "create", "--org", "late", "--user", "ann")) as Record<string, string>
    expect(made).toEqual({
      api_key: expect.stringMatching(/^svc_[0-9A-Za-z]{32,}$/),
      key_id: expect.any(String),
      org: "late",
      user: "ann",
      scope: "read-write",
    })
    const endless = chat({ tokens: 4000, tokenMs: 20 }, { stream: true, max_tokens: 4096 })
    const key = made.api_key!
    const stream = new TextStream(await node.post(chatPath, endless, { key }))
    const bystander = new TextStream(await node.post(chatPath, endless))
    await stream.take(3)
    // Read continuously: when a stream breaks, `fetch` drops bytes that were received and not yet read.
    const ended = stream.toEnd()
    await cli("keys", "revoke", made.key_id!)
    expect(await ended).toBe("cut")
    expect(JSON.parse(stream.events.at(-1)!)).toEqual({
      error: { message: "Invalid API key", type: "invalid_request_error" },
    })
    await eventually(
      async () => (await node.post(chatPath, chat({}), { key })).status === 401,
      "the key is refused",
    )
    const seen = bystander.events.length
    await bystander.take(seen + 3)
    await bystander.leave()
    await untilIdle(node)
  })
})

describe("money", () => {
  it("an organization without a cent gets 402, with credits it does not", async () => {
    const response = await node.post(chatPath, chat({}), { key: node.keys.broke })
    expect(response.status).toBe(402)
    expect(await response.json()).toEqual({ detail: "Billing access denied" })
    expect((await node.post(chatPath, chat({}), { key: node.keys.credit })).status).toBe(200)
  })

  /** The price of protocol 5.1, rounded up once for each request. */
  const costOf = (inputTokens: number, outputTokens: number): number =>
    Math.ceil(
      (inputTokens * price.inputPerMillionTokens + outputTokens * price.outputPerMillionTokens) / 1_000_000,
    )

  /** Charge and balance of an organization that began with 5 USD. */
  const charged = async (org: string) =>
    node.run(
      Effect.gen(function* () {
        const ledger = yield* UsageLedger
        yield* ledger.flush
        const { creditsMicroDollars, id } = yield* (yield* Accounts).showOrg(org)
        const rows = yield* ledger.usage(id, 0)
        return { spent: 5_000_000 - creditsMicroDollars, rows }
      }),
    )

  it("is charged for a whole request by its usage, and `edgewise usage` agrees", async () => {
    const { apiKey } = await newKey("whole")
    let spent = 0
    let input = 0
    let output = 0
    for (const tokens of [1, 7, 100]) {
      const response = await node.post(chatPath, chat({ tokens }), { key: apiKey })
      const { usage } = (await response.json()) as { usage: Record<string, number> }
      spent += costOf(usage.prompt_tokens!, usage.completion_tokens!)
      input += usage.prompt_tokens!
      output += usage.completion_tokens!
    }
    expect(output).toBe(108)
    expect((await charged("whole")).spent).toBe(spent)
    expect(await cli("usage", "--org", "whole")).toMatchObject({
      org: "whole",
      usage: [
        {
          model: "fake",
          kind: "text",
          requests: 3,
          input_tokens: input,
          output_tokens: output,
          usd: usd(spent),
        },
      ],
      total_usd: usd(spent),
    })
    expect(await cli("orgs", "show", "whole")).toMatchObject({ credits_usd: usd(5_000_000 - spent) })
  })

  it("is charged for what was generated by a stream that its client left", async () => {
    const { apiKey } = await newKey("left")
    const body = chat({ tokens: 4000, tokenMs: 20 }, { stream: true, max_tokens: 4096 })
    const stream = new TextStream(await node.post(chatPath, body, { key: apiKey }))
    await stream.take(10)
    const seen = stream.events.length
    await stream.leave()
    await untilIdle(node)
    const { rows, spent } = await charged("left")
    expect(rows).toHaveLength(1)
    const { inputTokens, outputTokens } = rows[0]!
    expect(outputTokens).toBeGreaterThanOrEqual(seen)
    // Tokens in flight at the disconnect; far below the 4,000 that were requested.
    expect(outputTokens).toBeLessThan(2_000)
    expect(spent).toBe(costOf(inputTokens, outputTokens))
  })

  it.each([
    [true, [{ requests: 1, inputTokens: 1, outputTokens: 4 }]],
    // No part of an answer that failed as a whole was delivered.
    [false, []],
  ])("is charged for what was delivered before a failure (stream: %s)", async (stream, expected) => {
    const org = `failed-${stream}`
    const { apiKey } = await newKey(org)
    const response = await node.post(chatPath, chat({ tokens: 9, failAt: 4 }, { stream }), { key: apiKey })
    await response.text().catch(() => "cut")
    await untilIdle(node)
    const { rows, spent } = await charged(org)
    expect(rows).toHaveLength(expected.length)
    expect(rows).toMatchObject(expected)
    expect(spent).toBe(stream ? costOf(1, 4) : 0)
  })

  it("is not charged for what was refused", async () => {
    const { apiKey } = await newKey("refused")
    for (const body of [
      chat({}, { temperature: 9 }),
      chat({}, { model: "unknown" }),
      { model: "fake", messages: [{ role: "user", content: "w ".repeat(9000) }] },
    ])
      expect((await node.post(chatPath, body, { key: apiKey })).status).toBeGreaterThanOrEqual(400)
    expect(await charged("refused")).toEqual({ spent: 0, rows: [] })
  })

  it("cannot be overspent by requests side by side", async () => {
    const { apiKey } = await newKey("tight")
    await node.run(
      Effect.gen(function* () {
        const accounts = yield* Accounts
        yield* accounts.createOrg({ name: "pocket", creditsMicroDollars: 1_000 })
      }),
    )
    const pocket = await newKey("pocket")
    // Each asks for up to 4,096 tokens, which is 3,072 micro-dollars: more than there is.
    const large = await node.post(chatPath, chat({ tokens: 1 }, { max_tokens: 4096 }), { key: pocket.apiKey })
    expect(large.status).toBe(402)
    // 400 tokens are 300 micro-dollars: three requests fit beside each other, in any order.
    const statuses = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const body = chat({ tokens: 400, tokenMs: 1 }, { max_tokens: 400 })
        return (await node.post(chatPath, body, { key: pocket.apiKey })).status
      }),
    )
    expect(statuses.filter((status) => status === 200)).toHaveLength(3)
    expect(statuses.filter((status) => status === 402)).toHaveLength(9)
    await node.run(Effect.flatMap(UsageLedger, (ledger) => ledger.flush))
    const { creditsMicroDollars } = await node.run(
      Effect.flatMap(Accounts, (accounts) => accounts.showOrg("pocket")),
    )
    expect(creditsMicroDollars).toBe(1_000 - 3 * costOf(1, 400))
    // No other user was refused meanwhile.
    expect((await node.post(chatPath, chat({}), { key: apiKey })).status).toBe(200)
  })
})

describe("the rate limit", () => {
  it("is the user's, whatever key, and says when to come back", async () => {
    const limited = await startNode({ rateLimit: 4 })
    try {
      const keyOf = (user: string) =>
        limited.run(Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "team", user })))
      const [first, second, other] = [await keyOf("ann"), await keyOf("ann"), await keyOf("bob")]
      const ask = ({ apiKey }: { readonly apiKey: string }) =>
        limited.fetch("/v1/models", { headers: { authorization: `Bearer ${apiKey}` } })
      const statuses: Array<number> = []
      for (const key of [first, second, first, second, other]) statuses.push((await ask(key)).status)
      expect(statuses).toEqual([200, 200, 200, 200, 200])
      for (const key of [first, second]) {
        const refused = await ask(key)
        expect(refused.status).toBe(429)
        expect(await refused.json()).toEqual({ detail: "Rate limit exceeded" })
        expect(refused.headers.get("retry-after")).toMatch(/^[0-9]+$/)
        const wait = Number(refused.headers.get("retry-after"))
        expect(wait).toBeGreaterThan(0)
        expect(wait).toBeLessThanOrEqual(60)
      }
      expect((await limited.post(chatPath, chat({}), { key: first.apiKey })).status).toBe(429)
      expect((await ask(other)).status).toBe(200)
      // Requests to /health count for no user.
      expect((await limited.fetch("/health")).status).toBe(200)
    } finally {
      await limited.stop()
    }
  })
})

/** Node's parser refuses a method that it does not know with 400. */
const unknownMethod = onNode ? "SEARCH" : "NONSENSE"

describe("every edge path", () => {
  /** Those that the OpenAPI document does not describe: pages and WebSockets. */
  const pages = ["/", "/playground/*", "/docs", "/docs/scalar.js", "/metrics", "/openapi.json"]
  const sockets = [
    "/v1/completions/ws",
    "/v1/audio/transcriptions/ws",
    "/v1/realtime",
    "/v1/telephony/twilio",
  ]
  const edgePaths = async () => {
    const { paths } = (await (await node.fetch("/openapi.json")).json()) as { paths: Record<string, object> }
    return { documented: paths, all: [...new Set([...Object.keys(paths), ...pages, ...sockets])] }
  }

  it("answers a preflight with the cross-origin headers, and its methods", async () => {
    const { all, documented } = await edgePaths()
    // No path of the node is left out.
    expect(all.map((path) => path.replace("{id}", ":id")).toSorted()).toEqual(
      Object.keys(knownPaths).toSorted(),
    )
    for (const path of [...all, "/no/such/path"]) {
      const response = await node.fetch(path, {
        method: "OPTIONS",
        headers: {
          origin: "https://app.example",
          "access-control-request-method": "POST",
          "access-control-request-headers": "authorization,content-type",
        },
      })
      expect([path, response.status]).toEqual([path, 204])
      expect(response.headers.get("access-control-allow-origin")).toBe("*")
      const allowed = (response.headers.get("access-control-allow-headers") ?? "").toLowerCase()
      expect(allowed).toContain("authorization")
      expect(allowed).toContain("content-type")
      const methods = (response.headers.get("access-control-allow-methods") ?? "").split(/, */)
      for (const method of Object.keys(documented[path] ?? {}))
        expect(methods).toContain(method.toUpperCase())
    }
  })

  it("carries the cross-origin header on answers and refusals alike", async () => {
    for (const path of (await edgePaths()).all) {
      const response = await node.fetch(path, { headers: { origin: "https://app.example" } })
      expect([path, response.headers.get("access-control-allow-origin")]).toEqual([path, "*"])
      await response.arrayBuffer()
    }
  })

  it("answers another method with 405 and Allow, and another path with 404", async () => {
    const { all, documented } = await edgePaths()
    for (const path of all) {
      const known = Object.keys(documented[path] ?? { get: {} }).map((method) => method.toUpperCase())
      const wrong = ["GET", "POST", "PUT", "PATCH", "DELETE", "PROPFIND", unknownMethod].filter(
        (method) => !known.includes(method),
      )
      for (const method of wrong) {
        const response = await node.fetch(path, { method })
        expect([path, method, response.status]).toEqual([path, method, 405])
        expect(await response.json()).toEqual({ detail: "Method Not Allowed" })
        const allow = (response.headers.get("allow") ?? "").split(/, */)
        for (const each of known) expect(allow).toContain(each)
        expect(allow).not.toContain(method)
      }
    }
    for (const path of [
      "/v1",
      "/v1/",
      "/v1/chat/completions/",
      "/v1/chat",
      "/v2/models",
      "/nowhere",
      "//health",
      "/HEALTH",
      "/v1/models/x/y/z",
    ]) {
      for (const method of ["GET", "POST"]) {
        const response = await node.fetch(path, { method })
        expect([path, response.status]).toEqual([path, 404])
        expect(await response.json()).toEqual({ detail: "Not Found" })
      }
    }
  })

  it("answers HEAD as GET, without a body", async () => {
    for (const path of ["/health", "/v1/models", "/", "/metrics"]) {
      const headers = { authorization: `Bearer ${node.keys.dev}` }
      const get = await node.fetch(path, { headers })
      const head = await node.fetch(path, { method: "HEAD", headers })
      expect([path, head.status]).toEqual([path, get.status])
      expect(head.headers.get("content-type")).toBe(get.headers.get("content-type"))
      expect((await head.arrayBuffer()).byteLength).toBe(0)
      await get.arrayBuffer()
    }
  })
})

/** Micro-dollars as the command line prints them. */
function usd(microDollars: number): string {
  const [whole, fraction = ""] = (microDollars / 1_000_000).toFixed(6).split(".")
  return `${whole}.${fraction.replace(/0{1,4}$/, "")}`
}
