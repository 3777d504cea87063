// Forced calls of the real engine, streamed over HTTP.
import { afterAll, beforeAll, it } from "vitest"
import { llamaModel } from "../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../support/nodes/TestNode.ts"
import { expectForcedCalls } from "./ForcedCalls.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [{ ...llamaModel, runtime: { load: "start" } }] })
})
afterAll(() => node.stop())

it(
  "100 calls reassemble, parse, are valid, and leave nothing in the content",
  () => expectForcedCalls(node, 100),
  300_000,
)
