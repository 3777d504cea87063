// The development key where nodes share a database.
import { expect, it } from "vitest"
import { exchange, invalidKey, list, throughProxy } from "../../support/clients/CredentialRequests.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { needs } from "../../support/groups/Needs.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startRoles } from "../../support/nodes/TestRoles.ts"
import { sharedPostgres } from "../../support/servers/PostgresServer.ts"

const models = [fakeModel, listener()]

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
