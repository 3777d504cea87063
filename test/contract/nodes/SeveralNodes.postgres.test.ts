// Nodes that share a Postgres database, each with a data directory of its own: a change on one takes effect on the
// other, money adds up over both, and a request with an Idempotency-Key is answered once.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import { needs } from "../../support/groups/Needs.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { edgewise } from "../../support/nodes/NodeProcess.ts"
import { complete, SharedNodes } from "../../support/nodes/SharedNodes.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually } from "../../support/nodes/TestNode.ts"

describe("two nodes on one database", needs("postgresql"), () => {
  let shared: SharedNodes
  beforeAll(async () => {
    shared = await SharedNodes.start([fakeModel])
    // A server, two nodes and their engines: a long timeout for a busy machine.
  })
  afterAll(() => shared?.stop())

  it("know each other's keys and revocations", async () => {
    const { apiKey, keyId } = await shared.one.run(
      Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "credit", user: "both" })),
    )
    expect((await complete(shared.two, apiKey)).status).toBe(200)
    expect((await complete(shared.one, apiKey)).status).toBe(200)
    await shared.two.run(Effect.flatMap(Accounts, (accounts) => accounts.revokeKey(keyId)))
    expect((await complete(shared.two, apiKey)).status).toBe(401)
    // That it takes no more than five seconds is held by test/store, on a clock of its own.
    await eventually(
      async () => (await complete(shared.one, apiKey)).status === 401,
      "the other node refuses it",
    )
  })

  it("stop a stream whose key is revoked at the other", async () => {
    const { key, keyId } = await shared.newOrg()
    const answer = await shared.one.fetch("/v1/completions", {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "fake",
        prompt: script({ tokens: 1000, tokenMs: 50 }),
        max_tokens: 1000,
        stream: true,
      }),
    })
    expect(answer.status).toBe(200)
    await shared.two.run(Effect.flatMap(Accounts, (accounts) => accounts.revokeKey(keyId)))
    // The script's thousand tokens take 50 s.
    const text = await answer.text().catch(() => "")
    expect(text).not.toContain("[DONE]")
  })

  it("meter exactly, together, under concurrent load", async () => {
    const { key, org, orgId } = await shared.newOrg(1_000_000_000)
    // As many at a time as the models have slots, so that none is refused.
    const clients = 32
    const each = 10
    const answers = await Promise.all(
      Array.from({ length: clients }, async (_, index) => {
        const said: Array<string> = []
        for (let i = 0; i < each; i++) {
          const answer = await complete(index % 2 === 0 ? shared.one : shared.two, key)
          said.push(answer.status === 200 ? "answered" : await answer.text())
        }
        return said
      }),
    )
    const requests = clients * each
    expect(answers.flat()).toEqual(Array(requests).fill("answered"))
    const [row] = await shared.usage(orgId)
    expect(row).toMatchObject({ requests, outputTokens: requests * 4 })
    expect(await shared.credits(org)).toBe(1_000_000_000 - (row?.microDollars ?? 0))
  })

  it("together spend a prepaid balance to the price of one request, and not more", async () => {
    // Each answer costs 750 micro-dollars and some for its prompt: enough for about twenty.
    const credits = 15_500
    const { key, org, orgId } = await shared.newOrg(credits)
    const clients = 24
    const paid = await Promise.all(
      Array.from({ length: clients }, async (_, index) => {
        const node = index % 2 === 0 ? shared.one : shared.two
        for (let answered = 0; ; answered++) {
          const answer = await complete(node, key, { tokens: 1000 })
          if (answer.status === 402) return answered
          expect(answer.status).toBe(200)
        }
      }),
    )
    const answered = () => paid.reduce((sum, one) => sum + one, 0)
    await shared.usage(orgId)
    // What one of them had to spare when the other's last request was refused.
    while ((await complete(shared.one, key, { tokens: 1000 })).status === 200) paid.push(1)
    const [usage] = await shared.usage(orgId)
    const left = await shared.credits(org)
    expect([usage?.requests, left]).toEqual([answered(), credits - (usage?.microDollars ?? 0)])
    expect(left).toBeGreaterThanOrEqual(0)
    expect(left).toBeLessThan((usage?.microDollars ?? 0) / answered())
  })

  it("are named by the command line with what they have leased", async () => {
    const { org, orgId } = await shared.newOrg(1_000_000)
    await shared.beside(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`INSERT INTO leases (org_id, node_id, micro_dollars) VALUES (${orgId}, 'node_other', 125000)`
        yield* sql`UPDATE orgs SET leased_micro_dollars = 125000 WHERE id = ${orgId}`
      }),
    )
    const env = { EDGEWISE_DATABASE_URL: shared.databaseUrl, EDGEWISE_DATA_DIR: shared.dataDir(0) }
    const shown = await edgewise(["orgs", "show", org, "--json"], env)
    expect(JSON.parse(shown.stdout)).toMatchObject({
      credits_usd: "1.00",
      leased: [{ node: "node_other", usd: "0.125" }],
    })
    const text = await edgewise(["orgs", "show", org], env)
    expect(text.stdout).toContain("\n0.125 USD of it leased to node_other\n")
  })

  it("answer an Idempotency-Key once, whichever of them is asked", async () => {
    const { key, orgId } = await shared.newOrg()
    const headers = { "idempotency-key": "retry-me" }
    const first = await complete(shared.one, key, { tokens: 7 }, headers)
    const text = await first.text()
    expect(first.status).toBe(200)
    const again = await complete(shared.two, key, { tokens: 7 }, headers)
    expect([again.status, again.headers.get("idempotency-replayed"), await again.text()]).toEqual([
      200,
      "true",
      text,
    ])
    expect((await complete(shared.two, key, { tokens: 8 }, headers)).status).toBe(422)

    // While the first answer is being made: to both nodes at once, repeatedly.
    const racing = { "idempotency-key": "at-once" }
    const steps = { tokens: 20, tokenMs: 10 }
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        complete(index % 2 === 0 ? shared.one : shared.two, key, steps, racing),
      ),
    )
    const fresh = answers.filter((a) => a.status === 200 && a.headers.get("idempotency-replayed") === null)
    expect(fresh.length).toBe(1)
    expect(answers.filter(({ status }) => status !== 200 && status !== 409)).toEqual([])
    expect((await shared.usage(orgId))[0]?.requests).toBe(2)
    // No key is left claimed.
    await eventually(
      async () =>
        (await shared.beside(Effect.flatMap(SqlClient.SqlClient, (sql) => sql`SELECT id FROM answer_claims`)))
          .length === 0,
      "claims are given up",
    )
  })
})
