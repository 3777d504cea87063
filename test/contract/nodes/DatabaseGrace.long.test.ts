// The database that nodes share goes away and comes back: for the grace that is set, requests go on as if nothing had happened.
import { readFileSync } from "node:fs"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import { spoolFileIn } from "#store/ledger/ReceiptSpool.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { needs } from "../../support/groups/Needs.ts"
import { complete, type NewOrg, SharedNodes } from "../../support/nodes/SharedNodes.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually } from "../../support/nodes/TestNode.ts"

/** Money that is leased stays leased: on a slow machine more than the usual two seconds pass until the database has gone. */
const leaseTickMs = 3_600_000
const aSecond = () => new Promise((resolve) => setTimeout(resolve, 1_000))

describe("a database that is away for less than the grace", needs("postgresql"), () => {
  let shared: SharedNodes
  beforeAll(async () => {
    shared = await SharedNodes.start([fakeModel], { graceSeconds: 120, ownServer: true, leaseTickMs })
  })
  afterAll(() => shared?.stop())

  const spool = (at: 0 | 1) => readFileSync(spoolFileIn(shared.dataDir(at)), "utf8")

  /** Has both nodes know the keys, lease the money and write the receipts. */
  const known = async (...orgs: ReadonlyArray<NewOrg>) => {
    const nodes = [shared.one, shared.two]
    // After an outage each finds the database in its own time, and until then refuses a key that it has not read.
    await Promise.all(
      orgs.flatMap(({ key }) =>
        nodes.map((node) =>
          eventually(async () => (await complete(node, key)).status === 200, "the node knows the key"),
        ),
      ),
    )
    await Promise.all(nodes.map((node) => node.run(Effect.flatMap(UsageLedger, ({ flush }) => flush))))
  }

  it("is not noticed by requests with keys that were read and money that is leased", async () => {
    const invoiced = await shared.newOrg()
    const prepaid = await shared.newOrg(1_000_000_000)
    const stranger = await shared.newOrg()
    const operator = await shared.one.run(
      Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: invoiced.org, scope: "superadmin" })),
    )
    const tree = () =>
      shared.one.fetch("/v1/node/tree", { headers: { authorization: `Bearer ${operator.apiKey}` } })
    expect((await tree()).status).toBe(200)
    await known(invoiced, prepaid)
    await shared.server.kill()
    const counts = new Map([
      [invoiced.key, 2],
      [prepaid.key, 2],
    ])
    const until = performance.now() + 3_000
    await Promise.all(
      [shared.one, shared.two].flatMap((node) =>
        [invoiced, prepaid].map(async ({ key }) => {
          while (performance.now() < until) {
            const answer = await complete(node, key, { tokens: 20, tokenMs: 5 })
            expect(answer.status).toBe(200)
            counts.set(key, (counts.get(key) ?? 0) + 1)
          }
        }),
      ),
    )
    // What cannot be exact without it.
    const headers = { "idempotency-key": "once" }
    expect((await complete(shared.one, invoiced.key, { tokens: 4 }, headers)).status).toBe(503)
    expect((await complete(shared.one, stranger.key)).status).toBe(503)
    expect((await tree()).status).toBe(503)
    await eventually(() => spool(0).includes("rcpt_") && spool(1).includes("rcpt_"), "receipts are put aside")
    await shared.server.start()
    await eventually(async () => (await complete(shared.one, stranger.key)).status === 200, "it is back")
    await eventually(async () => (await complete(shared.two, stranger.key)).status === 200, "for both")
    await eventually(() => spool(0) === "" && spool(1) === "", "the receipts are in the database")
    for (const { key, org, orgId } of [invoiced, prepaid]) {
      const [usage] = await shared.usage(orgId)
      expect(usage?.requests).toBe(counts.get(key))
      if (org === prepaid.org) {
        expect(await shared.credits(org)).toBe(1_000_000_000 - (usage?.microDollars ?? 0))
      }
    }
  })

  it("costs no receipt even if the node ends meanwhile", async () => {
    const org = await shared.newOrg(1_000_000_000)
    await known(org)
    await shared.server.kill()
    for (let count = 0; count < 5; count++) expect((await complete(shared.two, org.key)).status).toBe(200)
    await shared.two.stop()
    expect(spool(1).match(/rcpt_/g)?.length).toBe(5)
    await shared.server.start()
    await shared.startNode(1)
    expect(spool(1)).toBe("")
    const [usage] = await shared.usage(org.orgId)
    expect(usage?.requests).toBe(7)
    expect(await shared.credits(org.org)).toBe(1_000_000_000 - (usage?.microDollars ?? 0))
  })

  it("hears of a revocation afterwards", async () => {
    const org = await shared.newOrg()
    await known(org)
    await shared.server.kill()
    await aSecond()
    expect((await complete(shared.one, org.key)).status).toBe(200)
    await shared.server.start()
    await eventually(
      () =>
        shared.two
          .run(Effect.flatMap(Accounts, (accounts) => accounts.revokeKey(org.keyId)))
          .then(() => true)
          .catch(() => false),
      "it is revoked at the other",
    )
    await eventually(async () => (await complete(shared.one, org.key)).status === 401, "and here")
  })
})

describe("a database that is away for longer than the grace", needs("postgresql"), () => {
  let shared: SharedNodes
  beforeAll(async () => {
    // Longer than a busy machine takes to end the server.
    shared = await SharedNodes.start([fakeModel], { graceSeconds: 8, ownServer: true, leaseTickMs })
  })
  afterAll(() => shared?.stop())

  it("has requests refused from then on, and answered again once it is back", async () => {
    const { key, orgId } = await shared.newOrg(1_000_000_000)
    expect((await complete(shared.one, key)).status).toBe(200)
    let answered = 1
    await shared.server.kill()
    await eventually(async () => {
      const { status } = await complete(shared.one, key)
      if (status === 200) answered++
      expect([200, 503]).toContain(status)
      return status === 503
    }, "the grace ends")
    expect(answered).toBeGreaterThan(1)
    await aSecond()
    const refused = await complete(shared.one, key)
    expect([refused.status, await refused.json()]).toEqual([503, { detail: "Store is unavailable" }])
    await shared.server.start()
    await eventually(async () => {
      const isBack = (await complete(shared.one, key)).status === 200
      if (isBack) answered++
      return isBack
    }, "it is back")
    expect((await shared.usage(orgId))[0]?.requests).toBe(answered)
  })
})

describe(
  "a proxy in front of the database that accepts connections and closes them",
  needs("postgresql"),
  () => {
    let shared: SharedNodes
    beforeAll(async () => {
      // No beat comes during the test.
      shared = await SharedNodes.start([fakeModel], { relayed: true, beatMs: 3_600_000 })
    })
    afterAll(() => shared?.stop())

    it("makes the node degraded, without waiting for a beat, and healthy again when it has a server", async () => {
      const health = async () => {
        const answer = await shared.one.fetch("/health")
        return ((await answer.json()) as { status: string }).status
      }
      expect(await health()).toBe("healthy")
      shared.relay.refuse()
      await eventually(async () => (await health()) === "degraded", "the node says so")
      shared.relay.thaw()
      await eventually(async () => (await health()) === "healthy", "the node says that it is over")
    })
  },
)
