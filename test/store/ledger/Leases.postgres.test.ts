// Leases of prepaid balances over several nodes on one PostgreSQL: what three nodes spend together, calls between them, ends and
// deaths of nodes. The nodes are stores of this process, each with a data directory and an id of its own.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { type Context, Effect, Exit, Layer, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { textUsage } from "#domain/models/Usage.ts"
import { Accounts, type Principal } from "#store/accounts/Accounts.ts"
import { idleMs } from "#store/ledger/Lease.ts"
import { makeLeaseRows } from "#store/ledger/LeaseRows.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { postgresStoreLayer, type Store, storeLayer } from "#store/Store.ts"
import { databaseNow } from "#store/sql/StoreNode.ts"
import { needs } from "../../support/groups/Needs.ts"
import { eventually, temporaryDir } from "../../support/nodes/TestNode.ts"
import { type PostgresServer, sharedPostgres } from "../../support/servers/PostgresServer.ts"

class LedgerNode {
  readonly #url: string
  readonly #dir = temporaryDir()
  #scope = Scope.makeUnsafe()
  #services: Effect.Success<ReturnType<LedgerNode["build"]>> | undefined

  constructor(url: string) {
    this.#url = url
  }

  build() {
    const layer = Layer.fresh(storeLayer({ dataDir: this.#dir.path, databaseUrl: this.#url }))
    return Layer.buildWithScope(layer, this.#scope)
  }

  async start(): Promise<void> {
    this.#scope = Scope.makeUnsafe()
    this.#services = await Effect.runPromise(this.build())
  }

  run<A, E>(effect: Effect.Effect<A, E, Store>): Promise<A> {
    return Effect.runPromise(Effect.provideContext(effect, this.#services!))
  }

  /** Reserves and holds it: the scope is the caller's. */
  reserve(principal: Principal, amount: number, scope: Scope.Scope) {
    return this.run(
      Effect.result(
        Scope.provide(
          Effect.flatMap(UsageLedger, (ledger) => ledger.reserve(principal, amount)),
          scope,
        ),
      ),
    )
  }

  /** True: paid. False: refused. */
  spend(principal: Principal, amount: number): Promise<boolean> {
    return this.run(
      Effect.gen(function* () {
        const ledger = yield* UsageLedger
        const held = yield* ledger.reserve(principal, amount)
        yield* Effect.yieldNow
        yield* ledger.settle(held, { model: "llm", usage: textUsage(1, 1), microDollars: amount })
        return true
      }).pipe(
        Effect.scoped,
        Effect.catchTag("PaymentRequired", () => Effect.succeed(false)),
      ),
    )
  }

  get id(): string {
    return readFileSync(join(this.#dir.path, "node-id"), "utf8").trim()
  }

  flush(): Promise<void> {
    return this.run(Effect.flatMap(UsageLedger, (ledger) => ledger.flush))
  }

  stop(): Promise<void> {
    return Effect.runPromise(Scope.close(this.#scope, Exit.void))
  }

  remove(): void {
    this.#dir.remove()
  }
}

describe("nodes that lease a prepaid balance", needs("postgresql"), () => {
  let server: Pick<PostgresServer, "freshUrl">
  let nodes: ReadonlyArray<LedgerNode>
  const commandScope = Scope.makeUnsafe()
  let commands: Context.Context<Store>
  let orgs = 0

  beforeAll(async () => {
    server = await sharedPostgres()
    const url = await server.freshUrl()
    commands = await Effect.runPromise(Layer.buildWithScope(postgresStoreLayer(url), commandScope))
    nodes = [new LedgerNode(url), new LedgerNode(url), new LedgerNode(url)]
    for (const node of nodes) await node.start()
  })
  afterAll(async () => {
    for (const node of nodes ?? []) {
      await node.stop()
      node.remove()
    }
    await Effect.runPromise(Scope.close(commandScope, Exit.void))
  })

  /** As the command line does it, with a connection that is kept: what is looked at must not have idled before it was read. */
  const beside = <A, E>(effect: Effect.Effect<A, E, Store>): Promise<A> =>
    Effect.runPromise(Effect.provideContext(effect, commands))

  const member = (creditsMicroDollars: number): Promise<Principal> => {
    const name = `org${++orgs}`
    return beside(
      Effect.gen(function* () {
        const accounts = yield* Accounts
        yield* accounts.createOrg({ name, creditsMicroDollars })
        return yield* accounts.authenticate((yield* accounts.createKey({ org: name })).apiKey)
      }),
    )
  }

  const stateOf = (orgId: string) =>
    beside(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [row] = yield* sql<{
          readonly credits: number
          readonly leased: number
          readonly sum: number
          readonly least: number
          readonly spent: number
        }>`
          SELECT o.credits_micro_dollars AS credits, o.leased_micro_dollars AS leased,
                 (SELECT COALESCE(SUM(micro_dollars), 0) FROM leases WHERE org_id = o.id) AS sum,
                 (SELECT COALESCE(MIN(micro_dollars), 0) FROM leases WHERE org_id = o.id) AS least,
                 (SELECT COALESCE(SUM(micro_dollars), 0) FROM usage_ledger WHERE org_id = o.id) AS spent
          FROM orgs o WHERE id = ${orgId}`
        return row!
      }),
    )

  const lease = (orgId: string, nodeId: string, microDollars: number) =>
    beside(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`INSERT INTO leases (org_id, node_id, micro_dollars) VALUES (${orgId}, ${nodeId}, ${microDollars})`
        yield* sql`UPDATE orgs SET leased_micro_dollars = leased_micro_dollars + ${microDollars} WHERE id = ${orgId}`
      }),
    )

  it("spend together no more than it, and all but the price of one request", async () => {
    const credits = 10_000
    const price = 37
    const user = await member(credits)
    let isOver = false
    const watching = (async () => {
      while (!isOver) {
        const state = await stateOf(user.orgId)
        expect(state.leased).toBe(state.sum)
        expect(state.credits).toBeGreaterThanOrEqual(state.leased)
        expect(state.least).toBeGreaterThanOrEqual(0)
        expect(state.credits + state.spent).toBe(credits)
      }
    })()
    const paid = await Promise.all(
      Array.from({ length: 60 }, async (_, client) => {
        for (let count = 0; ; count++) {
          if (!(await nodes[client % 3]!.spend(user, price))) return count
        }
      }),
    )
    isOver = true
    await watching
    // What some of them had to spare is given back by now, or on its way: a last one gets it.
    let more = 0
    await eventually(async () => (await stateOf(user.orgId)).leased === 0, "all leases come back")
    while (await nodes[more % 3]!.spend(user, price)) more++
    for (const node of nodes) await node.flush()
    const requests = paid.reduce((sum, count) => sum + count, more)
    const { credits: left, spent } = await stateOf(user.orgId)
    expect(spent).toBe(requests * price)
    expect(left).toBeGreaterThanOrEqual(0)
    expect(left).toBeLessThan(price)
    await eventually(async () => (await stateOf(user.orgId)).leased === 0, "nothing is leased at the end")
  })

  it("give back at once what they do not need when another needs it, and leave what they do", async () => {
    const scope = Scope.makeUnsafe()
    const leasing = async () => {
      const user = await member(1_000)
      expect((await nodes[0]!.reserve(user, 10, scope))._tag).toBe("Success")
      return { user, ...(await stateOf(user.orgId)) }
    }
    let first = await leasing()
    // Where the machine stands still for two seconds, a lease has idled before it was read.
    while (first.leased === 10) first = await leasing()
    // The first one has leased a slice, of which it uses little.
    expect(first.leased).toBeGreaterThan(10)
    const { user } = first
    expect((await nodes[1]!.reserve(user, 990, scope))._tag).toBe("Success")
    expect(await stateOf(user.orgId)).toMatchObject({ credits: 1_000, leased: 1_000 })
    expect((await nodes[2]!.reserve(user, 1, scope))._tag).toBe("Failure")
    // Reserved money still belongs to the organization: work that costs nothing may go on.
    expect((await nodes[2]!.reserve(user, 0, scope))._tag).toBe("Success")
    await Effect.runPromise(Scope.close(scope, Exit.void))
    await eventually(async () => (await nodes[2]!.spend(user, 1_000)) === true, "all of it is free again")
    await nodes[2]!.flush()
    expect(await stateOf(user.orgId)).toMatchObject({ credits: 0, leased: 0, spent: 1_000 })
  })

  it("ask the database once for many requests of a rich organization", async () => {
    /** What is leased after a request and after a thousand more, and the longest time between two of them, milliseconds. */
    const spending = async () => {
      const user = await member(1_000_000_000)
      await nodes[0]!.spend(user, 10)
      let atMs = performance.now()
      let longestMs = 0
      const seen = () => {
        longestMs = Math.max(longestMs, performance.now() - atMs)
        atMs = performance.now()
      }
      await nodes[0]!.flush()
      const before = (await stateOf(user.orgId)).leased
      for (let round = 0; round < 1_000; round++) {
        await nodes[0]!.spend(user, 10)
        seen()
      }
      await nodes[0]!.flush()
      const after = (await stateOf(user.orgId)).leased
      seen()
      return { before, after, longestMs }
    }
    let spent = await spending()
    // Where the machine stands still for two seconds, the lease has idled, and is another one.
    while (spent.longestMs > idleMs / 2) spent = await spending()
    expect(spent.before).toBeGreaterThan(1_000_000)
    // One slice, less what was charged: no second one was asked for.
    expect(spent.after).toBe(spent.before - 10_000)
  })

  it("end their leases when they stop, and at their start those of a start before", async () => {
    const user = await member(1_000)
    const scope = Scope.makeUnsafe()
    await nodes[2]!.reserve(user, 100, scope)
    expect((await stateOf(user.orgId)).leased).toBeGreaterThanOrEqual(100)
    await nodes[2]!.stop()
    expect(await stateOf(user.orgId)).toMatchObject({ credits: 1_000, leased: 0, sum: 0 })
    // As a killed one leaves it.
    await lease(user.orgId, nodes[2]!.id, 700)
    await nodes[2]!.start()
    expect(await stateOf(user.orgId)).toMatchObject({ credits: 1_000, leased: 0, sum: 0 })
  })

  it("lose their leases ten minutes after they were seen last, judged twice by the database's clock", async () => {
    const user = await member(1_000)
    const seenMs = (minutes: number) =>
      beside(
        Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql`
            INSERT INTO nodes (id, seen_at_ms)
            VALUES ('node_gone', ${sql.literal(databaseNow)} - ${minutes * 60_000}::BIGINT)
            ON CONFLICT (id) DO UPDATE SET seen_at_ms = EXCLUDED.seen_at_ms`,
        ),
      )
    const endDead = (before: ReadonlyMap<string, number>) =>
      beside(Effect.flatMap(makeLeaseRows, (rows) => rows.endDead(before)))
    const leased = async () => (await stateOf(user.orgId)).leased
    await lease(user.orgId, "node_gone", 400)
    await seenMs(9)
    expect([...(await endDead(new Map())).keys()]).toEqual([])
    await seenMs(11)
    const found = await endDead(new Map())
    expect([[...found.keys()], await leased()]).toEqual([["node_gone"], 400])
    // It was seen once more, as all are after a jump of the database's clock.
    await seenMs(10.5)
    const again = await endDead(found)
    expect([[...again.keys()], await leased()]).toEqual([["node_gone"], 400])
    await endDead(again)
    expect(await stateOf(user.orgId)).toMatchObject({ credits: 1_000, leased: 0, sum: 0 })
  })
})
