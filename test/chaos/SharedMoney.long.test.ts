// Three nodes as processes on one database spend a prepaid balance for a hundred clients, while they are killed and started again.
import { Effect, Layer } from "effect"
import postgres from "postgres"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import { postgresStoreLayer, type Store } from "#store/Store.ts"
import { needs } from "../support/groups/Needs.ts"
import { script } from "../support/nodes/FakeNode.ts"
import { type NodeProcess, startProcess } from "../support/nodes/NodeProcess.ts"
import { fakeModel } from "../support/nodes/TestCatalog.ts"
import { eventually, temporaryDir } from "../support/nodes/TestNode.ts"
import { type PostgresServer, startPostgres } from "../support/servers/PostgresServer.ts"

const clients = 100
const kills = 4
const credits = 300_000
/** 100 tokens of the fake model, and some for the prompt. */
const tokens = 100

describe("a prepaid balance on three nodes", needs("postgresql"), () => {
  let server: PostgresServer
  let url: string
  const dirs = [temporaryDir(), temporaryDir(), temporaryDir()]
  const nodes: Array<NodeProcess | undefined> = []

  const start = async (at: number): Promise<void> => {
    nodes[at] = await startProcess({
      models: [{ ...fakeModel, options: { contextTokens: 2048, slots: 32 }, runtime: { load: "start" } }],
      env: { EDGEWISE_DATA_DIR: dirs[at]!.path, EDGEWISE_DATABASE_URL: url },
    })
  }
  const beside = <A, E>(effect: Effect.Effect<A, E, Store>): Promise<A> =>
    Effect.runPromise(Effect.provide(effect, Layer.fresh(postgresStoreLayer(url))))

  beforeAll(async () => {
    server = await startPostgres()
    url = await server.freshUrl()
    await beside(Effect.void)
    await Promise.all(dirs.map((_, at) => start(at)))
  })
  afterAll(async () => {
    await Promise.all(nodes.map((node) => node?.dispose()))
    await server?.remove()
    for (const dir of dirs) dir.remove()
  })

  it("is never overspent, and all of it is spent but the price of one request", async () => {
    const { key, orgId } = await beside(
      Effect.gen(function* () {
        const accounts = yield* Accounts
        const { id } = yield* accounts.createOrg({ name: "prepaid", creditsMicroDollars: credits })
        return { orgId: id, key: (yield* accounts.createKey({ org: "prepaid" })).apiKey }
      }),
    )
    const sql = postgres(url, { max: 1 })
    const state = async () => {
      const [row] = await sql`
        SELECT o.credits_micro_dollars::int AS credits, o.leased_micro_dollars::int AS leased,
               (SELECT COALESCE(SUM(micro_dollars), 0)::int FROM leases WHERE org_id = o.id) AS sum,
               (SELECT COALESCE(SUM(micro_dollars), 0)::int FROM usage_ledger WHERE org_id = o.id) AS spent,
               (SELECT COALESCE(MAX(micro_dollars), 0)::int FROM usage_ledger WHERE org_id = o.id) AS dearest
        FROM orgs o WHERE id = ${orgId}`
      return row as { credits: number; leased: number; sum: number; spent: number; dearest: number }
    }
    const ask = async (at: number): Promise<number> => {
      const node = nodes[at]
      if (node === undefined) return 0
      try {
        const answer = await fetch(`${node.base}/v1/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
          body: JSON.stringify({ model: "fake", prompt: script({ tokens }), max_tokens: tokens }),
        })
        await answer.arrayBuffer()
        return answer.status
      } catch {
        return 0
      }
    }
    let isSpent = false
    let answered = 0
    const statuses = new Set<number>()
    const asking = Array.from({ length: clients }, async (_, client) => {
      for (let turn = client; !isSpent; turn++) {
        const status = await ask(turn % dirs.length)
        statuses.add(status)
        if (status === 200) answered++
        else await new Promise((resolve) => setTimeout(resolve, 50))
      }
    })
    const watching = (async () => {
      while (!isSpent) {
        const now = await state()
        expect(now.leased).toBe(now.sum)
        expect(now.credits).toBeGreaterThanOrEqual(now.leased)
        expect(now.credits + now.spent).toBe(credits)
        isSpent = now.dearest > 0 && now.credits < now.dearest
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
    })()
    for (let kill = 0; kill < kills; kill++) {
      const until = credits * (1 - (kill + 1) / (kills + 2))
      await eventually(async () => (await state()).credits < until, "more of it is spent")
      const at = kill % dirs.length
      const node = nodes[at]
      nodes[at] = undefined
      node?.signal("SIGKILL")
      await node?.exited
      await node?.dispose()
      await start(at)
    }
    await Promise.all([...asking, watching])
    // Refused at every node, in time.
    await eventually(async () => (await state()).leased === 0, "nothing is leased at the end")
    for (const at of dirs.keys()) {
      const since = performance.now()
      expect(await ask(at)).toBe(402)
      console.info(`refused in ${Math.round(performance.now() - since)} ms`)
    }
    const end = await state()
    console.info(`${answered} answered, ${JSON.stringify(end)}, statuses ${[...statuses].join(" ")}`)
    expect(end.credits).toBeGreaterThanOrEqual(0)
    expect(end.credits).toBeLessThan(end.dearest)
    await sql.end()
  })
})
