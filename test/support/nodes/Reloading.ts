// Edits the catalog of a running node and reloads it, as an operator does over HTTP.
import { Effect } from "effect"
import { expect } from "vitest"
import { Redeployment } from "#actors/model/Redeployment.ts"
import type { ReloadRecord } from "#api/operations/CatalogReload.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { type TestModel, writeCatalog } from "./TestCatalog.ts"
import type { TestNode } from "./TestNode.ts"

/** A key with the scope that a reload requires. */
export const operatorKey = (node: TestNode): Promise<string> =>
  node.run(
    Effect.flatMap(Accounts, (accounts) =>
      Effect.map(accounts.createKey({ org: "dev", scope: "superadmin" }), ({ apiKey }) => apiKey),
    ),
  )

export const askToReload = async (node: TestNode): Promise<Response> =>
  node.post("/v1/models/reload", "", { key: await operatorKey(node) })

/** Writes the catalog and makes the node reload it. */
export const reload = async (node: TestNode, models: ReadonlyArray<TestModel>): Promise<ReloadRecord> => {
  writeCatalog(node.catalog, models)
  const response = await askToReload(node)
  expect(response.status).toBe(200)
  return (await response.json()) as ReloadRecord
}

/** Engines that were removed or replaced and have not ended. */
export const leaving = (node: TestNode): Promise<number> =>
  node.run(Effect.map(Redeployment, (redeployment) => redeployment.leaving().length))
