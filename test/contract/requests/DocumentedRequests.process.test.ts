// A few hundred requests that are generated from the OpenAPI documents. DocumentedRequests.long.test.ts sends thousands.
import { afterAll, beforeAll, expect, it } from "vitest"
import { type DocumentedNode, startDocumented } from "./DocumentedNode.ts"
import { expectDocumented, type Seen } from "./DocumentedRequests.ts"

let node: DocumentedNode
beforeAll(async () => {
  node = await startDocumented()
})
afterAll(() => node.stop())

it("300 requests get documented replies", async () => {
  const seen: Seen = new Map()
  await expectDocumented(node.target, 300, seen, 22)
  expect(seen.size).toBe(node.target.operations.length)
})
