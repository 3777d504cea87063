// GET /v1/usage over a real node: whose key it is, what is left, and the receipts of its answers.
import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [fakeModel] })
})
afterAll(() => node.stop())

interface Usage {
  readonly organization: string
  readonly scope: string
  readonly balance_micro_dollars: number
  readonly receipts: ReadonlyArray<{ readonly receipt_id: string; readonly micro_dollars: number }>
}

const get = (query: string, key = node.keys.credit) =>
  node.fetch(`/v1/usage${query}`, { headers: { authorization: `Bearer ${key}` } })
const usage = async (query = "", key?: string) => (await (await get(query, key)).json()) as Usage

const chat = async (key: string) => {
  const body = { model: "fake", messages: [{ role: "user", content: "hi" }] }
  const response = await node.post("/v1/chat/completions", body, { key })
  expect([response.status, await response.text()]).toMatchObject([200, expect.any(String)])
  return response.headers.get("x-receipt-id") ?? ""
}

it("says whose key it is and what its organization has left", async () => {
  expect(await usage()).toEqual({
    object: "usage",
    organization: "credit",
    user: "default",
    scope: "read-write",
    balance_micro_dollars: 5_000_000,
    payment_method: false,
    receipts: [],
  })
  const made = Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "ops", scope: "superadmin" }))
  expect(await usage("", (await node.run(made)).apiKey)).toMatchObject({
    organization: "ops",
    scope: "superadmin",
  })
})

it("has the receipt of an answer as soon as the answer is complete, and charges for it", async () => {
  const before = await usage()
  const id = await chat(node.keys.credit)
  const one = await usage(`?receipt_id=${id}`)
  expect(one.receipts).toMatchObject([
    { receipt_id: id, model: "fake", kind: "text", output_tokens: 16, audio_ms: 0 },
  ])
  const { micro_dollars: price } = one.receipts[0]!
  expect(price).toBeGreaterThan(0)
  expect(one.balance_micro_dollars).toBe(before.balance_micro_dollars - price)
  const second = await chat(node.keys.credit)
  expect((await usage()).receipts.map(({ receipt_id }) => receipt_id).toSorted()).toEqual(
    [id, second].toSorted(),
  )
})

it("shows no other organization's receipt", async () => {
  const id = await chat(node.keys.dev)
  expect((await usage(`?receipt_id=${id}`)).receipts).toEqual([])
  expect((await usage(`?receipt_id=${id}`, node.keys.dev)).receipts).toHaveLength(1)
  expect((await usage("?receipt_id=rcpt_unknown")).receipts).toEqual([])
})

it("lists the newest hundred receipts", async () => {
  // Ten at a time: a node refuses what would wait too long, and a slow machine makes many wait.
  const ids: Array<string> = []
  for (let group = 0; group < 11; group++)
    ids.push(...(await Promise.all(Array.from({ length: 10 }, () => chat(node.keys.dev)))))
  const listed = (await usage("", node.keys.dev)).receipts
  expect(listed).toHaveLength(100)
  expect(listed.every(({ receipt_id }) => receipt_id !== "")).toBe(true)
  expect(new Set(ids).size).toBe(110)
})

it("needs a credential, and takes its parameter once", async () => {
  expect((await node.fetch("/v1/usage")).status).toBe(401)
  expect((await get("", node.keys.revoked)).status).toBe(401)
  const twice = await get("?receipt_id=a&receipt_id=b")
  expect([twice.status, await twice.json()]).toEqual([400, { detail: "receipt_id: must be given once" }])
})
