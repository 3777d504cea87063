// The development key where nodes share a database.
import { expect, it } from "vitest"
import { listener } from "../../support/clients/LiveClient.ts"
import { needs } from "../../support/groups/Needs.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startRoles } from "../../support/nodes/TestRoles.ts"
import { sharedPostgres } from "../../support/servers/PostgresServer.ts"

type Headers = Readonly<Record<string, string>>

const throughProxy: Headers = { "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https" }
const invalidKey = [401, '{"detail":"Invalid API key"}'] as const

const models = [fakeModel, listener()]

/** The answer of the edge to a credential in a header. */
const list = async (base: string, credential: string, headers: Headers = {}) => {
  const response = await fetch(`${base}/v1/models`, {
    headers: { ...headers, authorization: `Bearer ${credential}` },
  })
  return [response.status, response.ok ? "" : await response.text()] as const
}

const exchange = async (base: string, credential: string, headers: Headers = {}) => {
  const response = await fetch(`${base}/v1/auth/session`, {
    method: "POST",
    headers: { ...headers, authorization: `Bearer ${credential}` },
  })
  const text = await response.text()
  return {
    status: response.status,
    text,
    token: (JSON.parse(text) as { session_token?: string }).session_token ?? "",
  }
}

it(
  "a shared database has none, and one of before is refused, unless the operator says anywhere",
  needs("postgresql"),
  async () => {
    const server = await sharedPostgres()
    const databaseUrl = await server.freshUrl()
    const start = (devKey: string, dataDir?: string) =>
      startRoles({ databaseUrl, devKey, ...(dataDir === undefined ? {} : { dataDir }) }, models)
    const none = await start("loopback")
    expect(none.devKey).toBe("")
    await none.stop()
    const anywhere = await start("anywhere")
    // Another node, with a data directory of its own.
    const other = await start("loopback")
    try {
      expect(await list(anywhere.base.edge, anywhere.devKey, throughProxy)).toEqual([200, ""])
      const { token } = await exchange(anywhere.base.auth, anywhere.devKey)
      for (const credential of [anywhere.devKey, token])
        expect(await list(other.base.edge, credential)).toEqual(invalidKey)
    } finally {
      await Promise.all([anywhere.stop(), other.stop()])
    }
  },
)
