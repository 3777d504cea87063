// Session tokens over real listeners: the auth role exchanges an API key for a token, the edge accepts it wherever it
// accepts the key, and no other token is accepted.
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { createLocalJWKSet, decodeJwt, type JSONWebKeySet, jwtVerify } from "jose"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { StoredKey } from "#store/signing/SigningKeyStore.ts"
import { rotateSigningKeys } from "#store/signing/SigningKeys.ts"
import { forgedTokens } from "../../support/clients/ForgedTokens.ts"
import { eventually } from "../../support/nodes/TestNode.ts"
import { startRoles, type TestRoles } from "../../support/nodes/TestRoles.ts"

let node: TestRoles
beforeAll(async () => {
  node = await startRoles()
})
afterAll(() => node.stop())

interface Session {
  readonly session_token: string
  readonly token_type: string
  readonly expires_in: number
  readonly expires_at: number
}

const askSession = (key: string, roles = node, headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${roles.base.auth}/v1/auth/session`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
  })
const sessionOf = async (key: string, roles = node): Promise<Session> => {
  const response = await askSession(key, roles)
  expect(response.status).toBe(200)
  return (await response.json()) as Session
}
const call = (token: string, path = "/v1/models", roles = node) =>
  fetch(roles.base.edge + path, { headers: { authorization: `Bearer ${token}` } })
const detailOf = async (response: Response): Promise<unknown> =>
  ((await response.json()) as { detail: unknown }).detail
const jwks = async (roles = node): Promise<JSONWebKeySet> =>
  (await (await fetch(`${roles.base.auth}/.well-known/jwks.json`)).json()) as JSONWebKeySet
const storedKeys = (roles = node): ReadonlyArray<StoredKey> =>
  JSON.parse(readFileSync(join(roles.dataDir, "signing-keys.json"), "utf8")).keys

describe("POST /v1/auth/session", () => {
  it("takes no body: a small one is dropped, one over the limit of all bodies is 413, if the credential is right", async () => {
    const send = (key: string, body: string) =>
      fetch(`${node.base.auth}/v1/auth/session`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body,
      })
    expect((await send(node.devKey, "{}")).status).toBe(200)
    const large = await send(node.devKey, "x".repeat(8_000_001))
    expect([large.status, await detailOf(large)]).toEqual([413, "body: larger than 8000000 bytes"])
    expect((await send("svc_wrong", "x".repeat(8_000_001))).status).toBe(401)
  })

  it("answers an API key with a token for an hour", async () => {
    const before = Math.floor(Date.now() / 1000)
    const response = await askSession(node.devKey)
    expect(response.headers.get("cache-control")).toBe("no-store")
    expect(response.headers.get("access-control-allow-origin")).toBe("*")
    const session = (await response.json()) as Session
    expect(session).toEqual({
      session_token: expect.any(String),
      token_type: "Bearer",
      expires_in: 3_600,
      expires_at: expect.any(Number),
    })
    expect(session.expires_at - before).toBeGreaterThanOrEqual(3_600)
    expect(session.expires_at - before).toBeLessThan(3_660)
  })

  it("puts the caller into the token, signed with a published key", async () => {
    const made = await node.accounts((accounts) =>
      accounts.createKey({ org: "acme", user: "ann", scope: "superadmin" }),
    )
    const { expires_at, session_token } = await sessionOf(made.apiKey)
    const { payload, protectedHeader } = await jwtVerify(session_token, createLocalJWKSet(await jwks()))
    expect(protectedHeader).toEqual({ alg: "EdDSA", typ: "session+jwt", kid: expect.any(String) })
    expect(payload).toEqual({
      iss: "edgewise",
      aud: "edgewise-edge",
      sub: expect.stringMatching(/^user_/),
      org: "acme",
      user: "ann",
      scope: "superadmin",
      key_id: made.keyId,
      jti: expect.stringMatching(/^[0-9a-f]{24}$/),
      iat: expires_at - 3_600,
      exp: expires_at,
    })
    expect(session_token).not.toContain(made.apiKey.slice(4))
  })

  it.each([
    ["no credential", "", 401, "Missing bearer token"],
    ["an unknown key", `svc_${"x".repeat(33)}`, 401, "Invalid API key"],
    ["a word", "nonsense", 401, "Invalid API key"],
  ])("refuses %s", async (_, key, status, detail) => {
    const response = await askSession(key)
    expect([response.status, await detailOf(response)]).toEqual([status, detail])
    expect(response.headers.get("www-authenticate")).toBe("Bearer")
  })

  it("does not exchange a session for another session", async () => {
    const { session_token } = await sessionOf(node.devKey)
    const response = await askSession(session_token)
    expect([response.status, await detailOf(response)]).toEqual([401, "Invalid API key"])
  })

  it("knows its two paths and their methods", async () => {
    const ask = (path: string, method: string) => fetch(node.base.auth + path, { method })
    for (const [path, method, status, allow] of [
      ["/v1/auth/session", "GET", 405, "POST, OPTIONS"],
      ["/v1/auth/session", "DELETE", 405, "POST, OPTIONS"],
      ["/.well-known/jwks.json", "POST", 405, "GET, HEAD, OPTIONS"],
      ["/v1/auth/session/", "POST", 404, null],
      ["/v1/models", "GET", 404, null],
      ["/", "GET", 404, null],
    ] as const) {
      const response = await ask(path, method)
      expect([path, method, response.status, response.headers.get("allow")]).toEqual([
        path,
        method,
        status,
        allow,
      ])
      expect(await detailOf(response)).toBe(status === 404 ? "Not Found" : "Method Not Allowed")
    }
    const preflight = await ask("/v1/auth/session", "OPTIONS")
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get("access-control-allow-methods")).toContain("POST")
    expect(preflight.headers.get("access-control-allow-headers")).toContain("Authorization")
  })

  it("publishes public halves only, for five minutes", async () => {
    const response = await fetch(`${node.base.auth}/.well-known/jwks.json`)
    expect(response.headers.get("cache-control")).toBe("public, max-age=300")
    const { keys } = (await response.json()) as JSONWebKeySet
    expect(keys.map((key) => Object.keys(key).sort())).toEqual([["alg", "crv", "kid", "kty", "use", "x"]])
    expect(keys[0]).toMatchObject({ kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig" })
  })

  it("keeps its key for its owner alone", () => {
    expect(statSync(join(node.dataDir, "signing-keys.json")).mode & 0o777).toBe(0o600)
  })
})

describe("a session at the edge", () => {
  it("is taken as the token of a socket's address", async () => {
    const { session_token } = await sessionOf(node.devKey)
    const opens = (token: string) => {
      const socket = new WebSocket(`${node.base.edge.replace("http", "ws")}/v1/completions/ws?token=${token}`)
      return new Promise<boolean>((resolve) => {
        socket.onopen = () => {
          socket.close()
          resolve(true)
        }
        socket.onerror = () => resolve(false)
      })
    }
    expect(await opens(session_token)).toBe(true)
    expect(await opens(`${session_token}x`)).toBe(false)
  })

  it("does what its key does", async () => {
    const { session_token } = await sessionOf(node.devKey)
    expect((await call(session_token)).status).toBe(200)
    const chat = await fetch(`${node.base.edge}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${session_token}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "fake", messages: [{ role: "user", content: "hello" }] }),
    })
    expect(chat.status).toBe(200)
    const operator = await call(session_token, "/v1/gpu/status")
    expect([operator.status, await detailOf(operator)]).toEqual([403, "Requires the superadmin scope"])
  })

  it("of a superadmin key may operate", async () => {
    const made = await node.accounts((accounts) => accounts.createKey({ org: "dev", scope: "superadmin" }))
    const { session_token } = await sessionOf(made.apiKey)
    expect((await call(session_token, "/v1/gpu/status")).status).toBe(200)
  })

  it("of an organization without a cent is 402 where the key is", async () => {
    await node.accounts((accounts) => accounts.createOrg({ name: "broke" }))
    const made = await node.accounts((accounts) => accounts.createKey({ org: "broke" }))
    const { session_token } = await sessionOf(made.apiKey)
    const response = await fetch(`${node.base.edge}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${session_token}` },
      body: JSON.stringify({ model: "fake", messages: [{ role: "user", content: "hello" }] }),
    })
    expect([response.status, await detailOf(response)]).toEqual([402, "Billing access denied"])
  })

  it("ends with its key on a node that has used it before", async () => {
    const made = await node.accounts((accounts) => accounts.createKey({ org: "gone" }))
    const { session_token } = await sessionOf(made.apiKey)
    expect((await call(session_token)).status).toBe(200)
    await node.accounts((accounts) => accounts.revokeKey(made.keyId))
    await eventually(async () => (await call(session_token)).status === 401, "the session is refused")
    expect(await detailOf(await call(session_token))).toBe("Invalid API key")
    expect(await detailOf(await askSession(made.apiKey))).toBe("Invalid API key")
  })

  it("nothing forged gets in", async () => {
    const { session_token } = await sessionOf(node.devKey)
    const forged = forgedTokens(storedKeys()[0]!, session_token, decodeJwt(session_token))
    expect(forged.length).toBeGreaterThan(100)
    const wrong: Array<unknown> = []
    for (const { detail, name, token } of forged) {
      // Twice: the second time the result may be cached.
      for (const _ of [1, 2]) {
        const response = await call(token)
        const said = await detailOf(response)
        if (response.status !== 401 || said !== detail) wrong.push([name, response.status, said, detail])
      }
    }
    expect(wrong).toEqual([])
    expect((await call(session_token)).status).toBe(200)
    const huge = await call(`a.${"b".repeat(40_000)}.c`)
    expect(huge.status).toBe(431)
    await huge.text()
  })
})

describe("rotation", () => {
  it("keeps tokens of the last key, announces the next, and --end-all ends every one", async () => {
    const { session_token } = await sessionOf(node.devKey)
    const { activeAtMs, kid } = await Effect.runPromise(rotateSigningKeys(node.dataDir, { endAll: false }))
    expect(activeAtMs - Date.now()).toBeGreaterThan(9 * 60_000)
    await eventually(
      async () => (await jwks()).keys.some((key) => key.kid === kid),
      "the next key is published",
    )
    expect((await jwks()).keys).toHaveLength(2)
    expect((await call(session_token)).status).toBe(200)
    // Published, not used yet: an edge that fetched the key set a moment ago must know the key of every signature.
    const another = (await sessionOf(node.devKey)).session_token
    expect(another.split(".")[0]).toBe(session_token.split(".")[0])

    await Effect.runPromise(rotateSigningKeys(node.dataDir, { endAll: true }))
    await eventually(async () => (await call(session_token)).status === 401, "the old session ends")
    expect(await detailOf(await call(session_token))).toBe("Invalid token: Signature verification failed")
    await eventually(
      async () => (await call((await sessionOf(node.devKey)).session_token)).status === 200,
      "a new session is good",
    )
  })
})

describe("limits", () => {
  it("a session shares its key's requests", async () => {
    const limited = await startRoles({ rateLimit: "6" })
    try {
      const one = (await sessionOf(limited.devKey, limited)).session_token
      const two = (await sessionOf(limited.devKey, limited)).session_token
      const statuses: Array<number> = []
      for (const credential of [limited.devKey, one, two, one, limited.devKey, two, one, limited.devKey])
        statuses.push((await call(credential, "/v1/models", limited)).status)
      expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 429, 429])
      const refused = await call(one, "/v1/models", limited)
      expect(await detailOf(refused)).toBe("Rate limit exceeded")
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    } finally {
      await limited.stop()
    }
  })

  it("wrong keys of one address are 429 beyond the limit, a good key passes; behind a trusted proxy each client has its own count", async () => {
    const proxied = await startRoles({ roles: "auth", trustedProxies: "127.0.0.1", rateLimit: "0" })
    try {
      const from = (address: string, key: string) => askSession(key, proxied, { "x-forwarded-for": address })
      const made = await proxied.accounts((accounts) => accounts.createKey({ org: "acme" }))
      /** Statuses up to the first 429: one more attempt is allowed every two seconds, which a slow machine may take. */
      const untilRefused = async (addresses: string, digit: string) => {
        const statuses: Array<number> = []
        for (;;) {
          const response = await from(addresses, `svc_${digit.repeat(33)}`)
          statuses.push(response.status)
          if (response.status === 429 || statuses.length === 60) return { statuses, response }
        }
      }
      const { statuses } = await untilRefused("192.0.2.1", "0")
      expect(statuses.slice(0, 30)).toEqual(new Array(30).fill(401))
      expect(statuses.at(-1)).toBe(429)
      expect((await from("192.0.2.1", made.apiKey)).status).toBe(200)
      const refused = await untilRefused("192.0.2.1", "1")
      expect(refused.statuses.at(-1)).toBe(429)
      expect(refused.statuses.length).toBeLessThan(30)
      expect(Number(refused.response.headers.get("retry-after"))).toBeGreaterThan(0)
      expect((await from("192.0.2.2", `svc_${"1".repeat(33)}`)).status).toBe(401)
      // Forwarded addresses before the trusted proxy's own entry come from the client and are not believed.
      expect((await untilRefused("192.0.2.9, 192.0.2.1", "1")).statuses.length).toBeLessThan(30)
    } finally {
      await proxied.stop()
    }
  })
})

describe("roles apart", () => {
  it("an edge fetches the key set from the auth service", async () => {
    const auth = await startRoles({ roles: "auth" })
    const edge = await startRoles({
      roles: "edge",
      dataDir: auth.dataDir,
      authJwksUrl: `${auth.base.auth}/.well-known/jwks.json`,
    })
    try {
      expect([auth.base.edge, auth.base.router, edge.base.auth]).toEqual(["", "", ""])
      const made = await auth.accounts((accounts) => accounts.createKey({ org: "acme" }))
      const { session_token } = await sessionOf(made.apiKey, auth)
      expect((await call(session_token, "/v1/models", edge)).status).toBe(200)
      expect((await call(`${session_token}x`, "/v1/models", edge)).status).toBe(401)
    } finally {
      await edge.stop()
      await auth.stop()
    }
  })

  it("an edge that never reached the auth service says 503, and still takes API keys", async () => {
    const lonely = await startRoles({ roles: "edge", authJwksUrl: "http://127.0.0.1:9/jwks.json" })
    try {
      const { session_token } = await sessionOf(node.devKey)
      const response = await call(session_token, "/v1/models", lonely)
      expect([response.status, await detailOf(response)]).toEqual([503, "Session tokens cannot be checked"])
      expect(response.headers.get("retry-after")).toBe("10")
      expect((await call(lonely.devKey, "/v1/models", lonely)).status).toBe(200)
    } finally {
      await lonely.stop()
    }
  })
})
