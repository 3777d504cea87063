// The addresses from which the development key is accepted, over real listeners and every way in: requests, WebSockets,
// the session exchange, and the token itself. A proxy on this machine is a connection from 127.0.0.1 with its headers.
import { networkInterfaces } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  exchange,
  type Headers,
  invalidKey,
  list,
  throughProxy,
} from "../../support/clients/CredentialRequests.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, temporaryDir } from "../../support/nodes/TestNode.ts"
import { startRoles, type TestRoles } from "../../support/nodes/TestRoles.ts"

const models = [fakeModel, listener()]

const sockets = ["/v1/completions/ws", "/v1/audio/transcriptions/ws", "/v1/realtime?intent=transcription"]

/** Each WebSocket with the credential in the query, in the header and in a subprotocol: "open", or the refusal. */
const knockAtSockets = async (base: string, credential: string, headers: Headers = {}) => {
  const answers: Array<unknown> = []
  for (const path of sockets) {
    const url = base.replace("http", "ws") + path
    const inQuery = `${url}${path.includes("?") ? "&" : "?"}token=${credential}`
    const attempts = [
      SocketClient.connect(inQuery, headers),
      SocketClient.connect(url, { ...headers, authorization: `Bearer ${credential}` }),
      ...(path === "/v1/completions/ws"
        ? []
        : [SocketClient.connect(url, headers, [`openai-insecure-api-key.${credential}`])]),
    ]
    for (const socket of await Promise.all(attempts)) {
      answers.push(socket instanceof SocketClient ? "open" : [socket.status, socket.body])
      if (socket instanceof SocketClient) socket.socket.close()
    }
  }
  return answers
}
const doors = 8

describe("on a node that only this machine can reach", () => {
  let node: TestRoles
  let token: string
  let ordinary: string
  beforeAll(async () => {
    node = await startRoles({ authFailureLimit: "0" }, models)
    token = (await exchange(node.base.auth, node.devKey)).token
    ordinary = (await node.accounts((accounts) => accounts.createKey({ org: "dev" }))).apiKey
  })
  afterAll(() => node.stop())

  it("the key and its session are accepted by every endpoint", async () => {
    for (const credential of [node.devKey, token]) {
      expect(await list(node.base.edge, credential)).toEqual([200, ""])
      expect(await knockAtSockets(node.base.edge, credential)).toEqual(Array(doors).fill("open"))
    }
  })

  it("neither opens one through a proxy, with the answer of a wrong key", async () => {
    for (const credential of [node.devKey, token]) {
      expect(await list(node.base.edge, credential, throughProxy)).toEqual(invalidKey)
      expect(await knockAtSockets(node.base.edge, credential, throughProxy)).toEqual(
        Array(doors).fill([...invalidKey]),
      )
    }
    for (const headers of [
      { forwarded: "for=203.0.113.7" },
      { "cf-connecting-ip": "203.0.113.7" },
      { "x-real-ip": "203.0.113.7" },
      { "x-forwarded-for": "127.0.0.1" },
      { via: "1.1 proxy" },
    ])
      expect([headers, await list(node.base.edge, node.devKey, headers)]).toEqual([headers, invalidKey])
    const wrong = `svc_${"x".repeat(33)}`
    expect(await list(node.base.edge, wrong, throughProxy)).toEqual(invalidKey)
  })

  it("the key is not exchanged through a proxy", async () => {
    const refused = await exchange(node.base.auth, node.devKey, throughProxy)
    expect([refused.status, refused.text]).toEqual(invalidKey)
  })

  it("another key of the same organization is accepted from everywhere", async () => {
    expect(await list(node.base.edge, ordinary, throughProxy)).toEqual([200, ""])
    expect((await exchange(node.base.auth, ordinary, throughProxy)).status).toBe(200)
  })
})

it("a trusted proxy on this machine is believed about its caller", async () => {
  const node = await startRoles({ trustedProxies: "127.0.0.1", authFailureLimit: "0" }, models)
  try {
    for (const [headers, expected] of [
      [{}, 200],
      [{ "x-forwarded-for": "127.0.0.1" }, 200],
      [{ "x-forwarded-for": "::1", "x-forwarded-proto": "https" }, 200],
      [throughProxy, 401],
      [{ "x-forwarded-for": "127.0.0.1, 203.0.113.7" }, 401],
      [{ "x-forwarded-for": "203.0.113.7, 127.0.0.1" }, 401],
      [{ "cf-connecting-ip": "203.0.113.7" }, 401],
    ] as const) {
      expect([headers, (await list(node.base.edge, node.devKey, headers))[0]]).toEqual([headers, expected])
      expect([headers, (await exchange(node.base.auth, node.devKey, headers)).status]).toEqual([
        headers,
        expected,
      ])
    }
  } finally {
    await node.stop()
  }
})

/** An IPv4 address of this machine that is not loopback, if it has one. */
const outsideAddress = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === "IPv4" && !internal)?.address

/** A listener on every address, as other machines reach it; by loopback where this machine has no other address. */
const outside = (base: string): string => {
  const url = new URL(base)
  url.hostname = outsideAddress ?? "127.0.0.2"
  return url.origin
}

describe("on a node that other machines can reach", () => {
  it("no key is made, and one of before is refused from everywhere", async () => {
    const dir = temporaryDir()
    const dataDir = join(dir.path, "data")
    // One after the other: a data directory has one edge.
    const first = await startRoles({ dataDir }, models)
    const { devKey } = first
    const { token } = await exchange(first.base.auth, devKey)
    await first.stop()
    const fresh = await startRoles({ host: "0.0.0.0" }, models)
    const again = await startRoles({ host: "0.0.0.0", dataDir, authFailureLimit: "0" }, models)
    try {
      expect([devKey === "", fresh.devKey, again.devKey]).toEqual([false, "", ""])
      const local = again.base.edge.replace("0.0.0.0", "127.0.0.1")
      for (const base of [local, outside(again.base.edge)]) {
        expect(await list(base, devKey)).toEqual(invalidKey)
        expect(await list(base, token)).toEqual(invalidKey)
        expect(await knockAtSockets(base, devKey)).toEqual(Array(doors).fill([...invalidKey]))
      }
      expect((await exchange(outside(again.base.auth), devKey)).status).toBe(401)
    } finally {
      await Promise.all([fresh.stop(), again.stop()])
      dir.remove()
    }
  })

  it("unless the operator says anywhere", async () => {
    const node = await startRoles({ host: "0.0.0.0", devKey: "anywhere" }, models)
    try {
      const base = outside(node.base.edge)
      expect(await list(base, node.devKey, throughProxy)).toEqual([200, ""])
      expect(await knockAtSockets(base, node.devKey)).toEqual(Array(doors).fill("open"))
      const { token } = await exchange(outside(node.base.auth), node.devKey)
      expect(await list(base, token)).toEqual([200, ""])
    } finally {
      await node.stop()
    }
  })
})

it("off makes none and refuses one of before", async () => {
  const dir = temporaryDir()
  const dataDir = join(dir.path, "data")
  const first = await startRoles({ dataDir }, models)
  await first.stop()
  const off = await startRoles({ devKey: "off", dataDir }, models)
  const fresh = await startRoles({ devKey: "off" }, models)
  try {
    expect([off.devKey, fresh.devKey]).toEqual(["", ""])
    expect(await list(off.base.edge, first.devKey)).toEqual(invalidKey)
    expect((await exchange(off.base.auth, first.devKey)).status).toBe(401)
  } finally {
    await Promise.all([off.stop(), fresh.stop()])
    dir.remove()
  }
})

it("its organization pays from 100 USD of credits, and is refused beyond them until it is credited", async () => {
  const dear = { ...fakeModel, price: { inputPerMillionTokens: 0, outputPerMillionTokens: 20e12 } }
  const node = await startRoles({ roles: "edge" }, [dear])
  try {
    const status = async (max_tokens: number) => {
      const response = await fetch(`${node.base.edge}/v1/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${node.devKey}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "fake", prompt: "x", max_tokens }),
      })
      await response.arrayBuffer()
      return response.status
    }
    // At 20 USD a token.
    expect([await status(5), await status(6)]).toEqual([200, 402])
    await node.accounts((accounts) => accounts.creditOrg("dev", 120_000_000))
    await eventually(async () => (await status(6)) === 200, "the credit is seen")
    const org = await node.accounts((accounts) => accounts.showOrg("dev"))
    expect(org.paymentMethod).toBe(false)
  } finally {
    await node.stop()
  }
})
