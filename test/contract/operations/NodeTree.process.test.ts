// GET /v1/node/tree (protocol 12.11) and its drawing by `edgewise tree`.
import { Effect, Schema } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { NodeTreeRecord, type TreeRecord } from "#api/operations/NodeTree.ts"
import { drawTree } from "#cli/commands/Tree.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { listener, noise, openLive } from "../../support/clients/LiveClient.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
let operator = ""
beforeAll(async () => {
  node = await startNode({ models: [fakeModel, { ...fakeModel, id: "second" }, listener()] })
  await untilLoaded(node, "fake", "listener")
  const made = Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "ops", scope: "superadmin" }))
  operator = (await node.run(made)).apiKey
})
afterAll(() => node.stop())

const decode = Schema.decodeUnknownSync(NodeTreeRecord)
const readTree = async (): Promise<TreeRecord> => {
  const answer = await node.fetch("/v1/node/tree", { headers: { authorization: `Bearer ${operator}` } })
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/json"])
  return decode(await answer.json(), { onExcessProperty: "error" }).tree
}
const childOf = (parent: TreeRecord, name: string): TreeRecord => {
  const found = parent.children.find((child) => child.name === name)
  if (found === undefined) throw new Error(`no ${name} under ${parent.name}`)
  return found
}

it("shows the parts of the node in the order of their start, with what each holds", async () => {
  const tree = await readTree()
  expect(tree.children.map(({ name }) => name)).toEqual([
    "store",
    "devices",
    "models",
    "memory",
    "live sessions",
    "conversations",
    "transcription jobs",
  ])
  const model = childOf(childOf(tree, "models"), "model fake")
  expect(model).toMatchObject({ kind: "model", state: "loaded", restarts: 0, mailbox: { depth: 0 } })
  expect(model.children).toMatchObject([
    { name: "engine fake", kind: "engine", state: "running", holds: { requests: 0, threads: 1 } },
  ])
  const host = childOf(childOf(tree, "devices"), "the host")
  // The watch of the memory sends it a reading every second, which may wait just now.
  expect(host).toMatchObject({
    kind: "device",
    state: "running",
    mailbox: { depth: expect.any(Number), bound: 1_024 },
  })
  expect(host.holds.memory_bytes).toBeGreaterThan(0)
})

it("counts all live sessions and lists those that have sent audio, which are actors", async () => {
  const live = async () => childOf(await readTree(), "live sessions")
  const clients = [await openLive(node), await openLive(node), await openLive(node)]
  clients[0]!.socket.send(noise(0.5))
  clients[1]!.socket.send(noise(0.5))
  let seen = await live()
  await eventually(async () => {
    seen = await live()
    return (
      seen.children_total === 3 &&
      seen.children.every(({ kind, state }) => kind !== "session" || state === "waiting")
    )
  }, "two sessions, which wait, and the idle watch")
  const { children, holds } = seen
  expect(holds).toEqual({ sessions: 3 })
  expect(children.filter(({ kind }) => kind === "session")).toMatchObject([
    { state: "waiting", restarts: 0, mailbox: { depth: 0, bound: 1 } },
    { state: "waiting", restarts: 0, mailbox: { depth: 0, bound: 1 } },
  ])
  for (const client of clients) client.vanish()
  await eventually(async () => {
    const { children_total, holds } = await live()
    return children_total === 1 && holds.sessions === 0
  }, "no session outlives its connection")
})

it("draws it", async () => {
  const lines = drawTree(await readTree()).split("\n")
  expect(lines[0]).toMatch(/^name +kind +state +age +restarts +mailbox +holds$/)
  expect(
    lines.some((line) =>
      /^│ {2}│ {2}└─ engine fake +engine +running +(?:\d+m)?\d+s +0 +0\/\d+ +\d+ MB/.test(line),
    ),
  ).toBe(true)
})
