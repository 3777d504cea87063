// The requests that a node gets most often make no generator functions. V8 gives each such closure that runs a hidden class in its old
// space, which refers to the closure, and so keeps the request and what it reached until the next full collection: two chat requests a
// millisecond then moved a tenth of their memory to the old space, and pauses of 3 ms came ten times a second.
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest"
import { script } from "../../support/nodes/FakeNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [fakeModel] })
  await untilLoaded(node, "fake")
})
afterAll(() => node.stop())

/** What all generators of the process inherit from. Each generator function has a prototype object of its own below it. */
const generators = Object.getPrototypeOf(function* () {}).prototype
const next = generators.next
let known: WeakSet<object>
let fresh = 0
beforeEach(() => {
  known = new WeakSet()
  generators.next = function (this: object, ...values: ReadonlyArray<unknown>) {
    const ofFunction = Object.getPrototypeOf(this)
    if (!known.has(ofFunction)) {
      known.add(ofFunction)
      fresh++
    }
    return next.apply(this, values)
  }
})
afterEach(() => {
  generators.next = next
})

const messages = [{ role: "user", content: script({ tokens: 3 }) }]
const measured = 40

it.each<readonly [string, string, object]>([
  ["a chat", "/v1/chat/completions", { messages }],
  ["a streamed chat", "/v1/chat/completions", { messages, stream: true }],
  ["a completion", "/v1/completions", { prompt: script({ tokens: 3 }) }],
  ["a streamed completion", "/v1/completions", { prompt: script({ tokens: 3 }), stream: true }],
])("%s makes no generator functions", async (_, path, body) => {
  const ask = async (times: number) => {
    for (let i = 0; i < times; i++) {
      const response = await node.post(path, { model: "fake", ...body })
      await response.text()
      expect(response.status).toBe(200)
    }
  }
  await ask(3)
  fresh = 0
  await ask(measured)
  // Not 0: what the node does beside requests makes some.
  expect(fresh).toBeLessThan(measured / 2)
})
