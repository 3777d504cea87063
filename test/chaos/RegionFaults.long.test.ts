// Nodes of one database, as processes, under faults of the database, of the network to it and of clocks, and restarted one after the other:
// no live request fails that the grace covers, no job is repeated, and each receipt is written once. The times that it prints are for
// docs/regions-of-nodes.md; none is judged here.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { listener, noise, wavOf } from "../support/clients/LiveClient.ts"
import { poll, submit, transcribe, untilDone } from "../support/clients/TranscriptionClient.ts"
import { needs } from "../support/groups/Needs.ts"
import { Region } from "../support/nodes/Region.ts"
import { type Client, completion, type LoadCounts, quantile, startLoad } from "../support/nodes/RegionLoad.ts"
import { fakeModel, price } from "../support/nodes/TestCatalog.ts"
import { eventually } from "../support/nodes/TestNode.ts"
import { freePort } from "../support/servers/FreePort.ts"
import { printed, startProxy } from "../support/servers/ReverseProxies.ts"

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const say = (line: string) => console.info(`region: ${line}`)

const text = { ...fakeModel, price, options: { contextTokens: 2048, slots: 32 } }
/** 2 s of audio take it 0.25 s. */
const ears = listener({ callMs: 250 })
/** It is in work for about 15 s. */
const file = wavOf(noise(120, 1)) as Uint8Array<ArrayBuffer>

const rich = 1_000_000_000

interface Accounts {
  readonly key: string
  readonly orgId: string
}

/** One client of each organization at each node. */
const clientsOf = (region: Region, orgs: ReadonlyArray<Accounts>): ReadonlyArray<Client> =>
  orgs.flatMap(({ key }) =>
    [0, 1, 2].map((index) => ({
      key,
      base: () => (region.running.includes(index) ? region.node(index).base : undefined),
    })),
  )

/** Every node has read the keys and has leases. */
const warmUp = async (region: Region, orgs: ReadonlyArray<Accounts>): Promise<void> => {
  for (const { base, key } of clientsOf(region, orgs)) {
    await eventually(async () => (await completion(base()!, key)).status === 200, "the node serves")
  }
}

/** Receipts of requests, written once each, and the balance is what they leave. */
const checkReceipts = async (
  region: Region,
  { orgId }: Accounts,
  requests: number,
  credits?: number,
): Promise<void> => {
  const state = async () => {
    const [row] = await region.sql`
      SELECT o.credits_micro_dollars::float8 AS credits,
             (SELECT COUNT(*)::int FROM usage_ledger WHERE org_id = o.id AND kind = 'text') AS receipts,
             (SELECT COALESCE(SUM(micro_dollars), 0)::float8 FROM usage_ledger WHERE org_id = o.id) AS spent
      FROM orgs o WHERE id = ${orgId}`
    return row as { credits: number; receipts: number; spent: number }
  }
  await eventually(async () => (await state()).receipts >= requests, `${requests} receipts are written`)
  const { credits: left, receipts, spent } = await state()
  expect(receipts).toBe(requests)
  if (credits !== undefined) expect(left + spent).toBe(credits)
}

const summary = ({ answered, failures, tookMs }: LoadCounts): string =>
  `${[...answered.values()].reduce((sum, count) => sum + count, 0)} answered, ${failures.length} failed, ` +
  `p50 ${quantile(tookMs, 0.5)}, p99 ${quantile(tookMs, 0.99)}, slowest ${quantile(tookMs, 1)} ms`

/** How the database goes away and comes back. */
const faults = {
  killed: { away: (region: Region) => region.server.kill(), back: (region: Region) => region.server.start() },
  frozen: {
    away: async (region: Region) => region.server.freeze(),
    back: async (region: Region) => region.server.thaw(),
  },
  "cut off": {
    away: async (region: Region) => region.relay.freeze(),
    back: async (region: Region) => region.relay.thaw(),
  },
} as const
const kinds = ["killed", "frozen", "cut off"] as const

let nthKey = 0
/** Milliseconds until each node answers a request that cannot be answered without the database. */
const wholeAgain = async (region: Region, key: string): Promise<number> => {
  const since = performance.now()
  await Promise.all(
    region.running.map((index) =>
      eventually(async () => {
        const headers = { "idempotency-key": `whole-${++nthKey}` }
        const answer = await completion(region.node(index).base, key, headers)
        await answer.arrayBuffer()
        return answer.status === 200
      }, "the node is whole again"),
    ),
  )
  // The request itself takes 100 ms.
  return Math.round(performance.now() - since - 100)
}

describe("a database that is away for less than the grace of 60 s", needs("postgresql"), () => {
  let region: Region
  let invoiced: Accounts
  let prepaid: Accounts
  let other: Accounts
  let expected = ""
  beforeAll(async () => {
    region = await Region.start({
      models: [text, ears],
      nodes: 3,
      relayed: true,
      env: () => ({ EDGEWISE_DATABASE_GRACE_SECONDS: "60" }),
    })
    invoiced = await region.newOrg("invoiced")
    prepaid = await region.newOrg("prepaid", rich)
    other = await region.newOrg("other")
    const answer = await transcribe(region.target(0), file, { query: { model: "listener", sync: "true" } })
    expected = ((await answer.json()) as { text: string }).text
  })
  afterAll(() => region?.stop())
  const counts = new Map<string, number>()

  for (const seconds of [3, 25, 40]) {
    for (const kind of kinds) {
      it(`${kind} for ${seconds} s: no request fails and no job is repeated`, async () => {
        const orgs = [invoiced, prepaid]
        const before = await receiptsOf(region, orgs)
        await warmUp(region, [...orgs, other])
        const load = startLoad(clientsOf(region, orgs))
        const jobs: Array<string> = []
        for (const index of [0, 1, 2])
          jobs.push(await submit(region.target(index), file, { model: "listener" }))
        await eventually(
          async () => (await region.jobs()).filter(({ status }) => status === "processing").length >= 2,
          "they are in work",
        )
        load.during(`${kind} for ${seconds} s`)
        await faults[kind].away(region)
        await pause(seconds * 1_000)
        await faults[kind].back(region)
        const wholeMs = await wholeAgain(region, other.key)
        load.during("after it")
        await pause(2_000)
        const counted = await load.stop()
        for (const id of jobs) expect((await untilDone(region.target(0), id)).body.text).toBe(expected)
        const rows = (await region.jobs()).filter(({ id }) => jobs.includes(id))
        say(
          `database ${kind} for ${seconds} s: ${summary(counted)}; whole again after ${wholeMs} ms; attempts ${rows.map(({ attempt }) => attempt).join(" ")}`,
        )
        expect(counted.failures).toEqual([])
        expect(rows.map(({ attempt }) => attempt)).toEqual([1, 1, 1])
        for (const { key } of orgs) {
          // `warmUp` asked each node once.
          counts.set(key, (counted.answered.get(key) ?? 0) + 3 + (before.get(key) ?? 0))
        }
        await checkReceipts(region, invoiced, counts.get(invoiced.key)!)
        await checkReceipts(region, prepaid, counts.get(prepaid.key)!, rich)
        const heard = await region.receipts()
        for (const id of jobs) expect(heard.get(id)).toBe(120_000)
      })
    }
  }
})

const receiptsOf = async (region: Region, orgs: ReadonlyArray<Accounts>) => {
  const found = new Map<string, number>()
  for (const { key, orgId } of orgs) {
    const [row] = await region.sql`
      SELECT COUNT(*)::int AS receipts FROM usage_ledger WHERE org_id = ${orgId} AND kind = 'text'`
    found.set(key, row?.receipts as number)
  }
  return found
}

describe("a database that is away for longer than the grace of 2 s", needs("postgresql"), () => {
  let region: Region
  let prepaid: Accounts
  beforeAll(async () => {
    region = await Region.start({
      models: [text],
      nodes: 3,
      relayed: true,
      env: () => ({ EDGEWISE_DATABASE_GRACE_SECONDS: "2" }),
    })
    prepaid = await region.newOrg("prepaid", rich)
  })
  afterAll(() => region?.stop())

  for (const kind of kinds) {
    it(`${kind}: is refused at once from then on, and is whole again by itself`, async () => {
      const [before = 0] = (await receiptsOf(region, [prepaid])).values()
      await warmUp(region, [prepaid])
      let answered = 3
      const [node] = region.running
      const { base } = region.node(node!)
      await faults[kind].away(region)
      await eventually(async () => {
        const answer = await completion(base, prepaid.key)
        await answer.arrayBuffer()
        if (answer.status === 200) answered++
        return answer.status === 503
      }, "the grace ends")
      const tookMs: Array<number> = []
      // What a request takes that asks for nothing.
      const floorMs: Array<number> = []
      const until = performance.now() + 5_000
      while (performance.now() < until) {
        const sent = performance.now()
        const answer = await completion(base, prepaid.key)
        await answer.arrayBuffer()
        tookMs.push(performance.now() - sent)
        expect(answer.status).toBe(503)
        const asked = performance.now()
        await (await fetch(`${base}/nothing`)).arrayBuffer()
        floorMs.push(performance.now() - asked)
        await pause(5)
      }
      await faults[kind].back(region)
      const wholeMs = await wholeAgain(region, prepaid.key)
      say(
        `database ${kind} for longer than the setting: ${tookMs.length} times 503, p50 ${quantile(tookMs, 0.5)}, ` +
          `p99 ${quantile(tookMs, 0.99)}, slowest ${quantile(tookMs, 1)} ms (404 in between: p50 ${quantile(floorMs, 0.5)}, ` +
          `p99 ${quantile(floorMs, 0.99)}, slowest ${quantile(floorMs, 1)}); whole again after ${wholeMs} ms`,
      )
      await eventually(async () => {
        const [now = 0] = (await receiptsOf(region, [prepaid])).values()
        // `wholeAgain` was answered once by each node.
        return now === before + answered + 3
      }, "each answer has one receipt")
    })
  }
})

describe("a standby that becomes the primary", needs("postgresql"), () => {
  it("is not noticed: no request fails, no job is repeated, each receipt is there once", async () => {
    const region = await Region.start({ models: [text, ears], nodes: 3, standby: true })
    try {
      const orgs = [await region.newOrg("invoiced"), await region.newOrg("prepaid", rich)]
      const other = await region.newOrg("other")
      await warmUp(region, [...orgs, other])
      const load = startLoad(clientsOf(region, orgs))
      const jobs: Array<string> = []
      for (const index of [0, 1, 2])
        jobs.push(await submit(region.target(index), file, { model: "listener" }))
      await pause(2_000)
      load.during("the failover")
      const since = performance.now()
      await region.failOver()
      const promotedMs = Math.round(performance.now() - since)
      const wholeMs = await wholeAgain(region, other.key)
      load.during("after it")
      await pause(2_000)
      const counted = await load.stop()
      for (const id of jobs) expect((await untilDone(region.target(0), id)).status).toBe(200)
      const rows = await region.jobs()
      say(
        `standby promoted (${promotedMs} ms): ${summary(counted)}; whole again after ${wholeMs} ms; attempts ${rows.map(({ attempt }) => attempt).join(" ")}`,
      )
      expect(counted.failures).toEqual([])
      expect(rows.map(({ attempt }) => attempt)).toEqual([1, 1, 1])
      await checkReceipts(region, orgs[0]!, counted.answered.get(orgs[0]!.key)! + 3)
      await checkReceipts(region, orgs[1]!, counted.answered.get(orgs[1]!.key)! + 3, rich)
    } finally {
      await region.stop()
    }
  })
})

/** Shifts the clock of a node's own process: `Date`, and all that goes by it. */
const shifted = (hours: number): Readonly<Record<string, string>> => {
  const code = `const real = Date, by = ${hours * 3_600_000};
globalThis.Date = class Date extends real {
  constructor(...given) { given.length === 0 ? super(real.now() + by) : super(...given) }
  static now() { return real.now() + by }
}`
  return { NODE_OPTIONS: `--import=data:text/javascript;base64,${Buffer.from(code).toString("base64")}` }
}

describe("nodes whose clocks are 25 h ahead and 25 h behind", needs("postgresql"), () => {
  it("lose, repeat and refuse nothing", async () => {
    const hours = [25, -25, 0]
    const region = await Region.start({
      models: [text, ears],
      nodes: 3,
      env: (index) => (hours[index] === 0 ? {} : shifted(hours[index]!)),
    })
    try {
      for (const [index, by] of hours.entries()) {
        const answer = await fetch(`${region.node(index).base}/health`)
        const said = Date.parse(`${((await answer.json()) as { timestamp: string }).timestamp}Z`)
        expect(Math.round((said - Date.now()) / 3_600_000) + 0).toBe(by)
      }
      const prepaid = await region.newOrg("prepaid", rich)
      await warmUp(region, [prepaid])
      const load = startLoad(clientsOf(region, [prepaid]))
      const once = { "idempotency-key": "once" }
      const kept = await (await completion(region.node(0).base, region.key, once)).text()
      const jobs: Array<string> = []
      for (const index of [0, 1, 2])
        jobs.push(await submit(region.target(index), file, { model: "listener" }))
      // The one that was started again deletes nothing and gives nothing twice either.
      for (const id of jobs) await untilDone(region.target(2), id)
      for (const index of [0, 1]) {
        await region.stopNode(index)
        await region.startNode(index)
      }
      await warmUp(region, [prepaid])
      await pause(3_000)
      const counted = await load.stop()
      for (const index of [0, 1, 2]) {
        expect(await (await completion(region.node(index).base, region.key, once)).text()).toBe(kept)
        for (const id of jobs) expect((await poll(region.target(index), id)).body.status).toBe("completed")
      }
      const rows = await region.jobs()
      say(
        `clocks of two nodes 25 h off: ${summary(counted)}; attempts ${rows.map(({ attempt }) => attempt).join(" ")}`,
      )
      expect(rows.map(({ attempt }) => attempt)).toEqual([1, 1, 1])
      const refused = counted.failures.filter(
        (failure) => !/ECONN|terminated|socket|draining|503/i.test(failure),
      )
      expect(refused).toEqual([])
      const heard = await region.receipts()
      for (const id of jobs) expect(heard.get(id)).toBe(120_000)
      await checkReceipts(region, prepaid, counted.answered.get(prepaid.key)! + 6, rich)
    } finally {
      await region.stop()
    }
  })
})

describe("a database whose commits take 50 ms, behind a network that loses 5 %", needs("postgresql"), () => {
  it("loses nothing, and live requests hardly notice", async () => {
    const region = await Region.start({
      models: [text],
      nodes: 3,
      relayed: true,
      database: ["fsync=on", "commit_siblings=0"],
    })
    try {
      const orgs = [await region.newOrg("invoiced"), await region.newOrg("prepaid", rich)]
      await warmUp(region, orgs)
      const answered = new Map(orgs.map(({ key }) => [key, 3]))
      const measured: Array<string> = []
      const undisturbed: Array<number> = []
      const disturbed = { "commits of 50 ms": [] as Array<number>, "5 % lost": [] as Array<number> }
      const set = async (microseconds: number) => {
        await region.sql.unsafe(`ALTER SYSTEM SET commit_delay = ${microseconds}`)
        await region.sql`SELECT pg_reload_conf()`
        await pause(200)
      }
      const run = async (into: Array<number>) => {
        const load = startLoad(clientsOf(region, orgs))
        await pause(6_000)
        const counted = await load.stop()
        expect(counted.failures).toEqual([])
        for (const [key, count] of counted.answered) answered.set(key, answered.get(key)! + count)
        into.push(...counted.tookMs)
      }
      // In turn, so that a change of the machine's load meets all alike.
      for (let round = 0; round < 3; round++) {
        await run(undisturbed)
        await set(50_000)
        await run(disturbed["commits of 50 ms"])
        await set(0)
        region.relay.lose(0.05)
        await run(disturbed["5 % lost"])
        region.relay.lose(0)
      }
      const least = quantile(undisturbed, 0.99)
      measured.push(`undisturbed p99 ${least} ms`)
      for (const [what, times] of Object.entries(disturbed)) {
        const p99 = quantile(times, 0.99)
        measured.push(`${what} p99 ${p99} ms, ${Math.round((p99 / least) * 100) / 100} times`)
      }
      say(measured.join("; "))
      await checkReceipts(region, orgs[0]!, answered.get(orgs[0]!.key)!)
      await checkReceipts(region, orgs[1]!, answered.get(orgs[1]!.key)!, rich)
    } finally {
      await region.stop()
    }
  })
})

describe("a rolling restart behind HAProxy", needs("postgresql", "haproxy"), () => {
  it("fails no request", async () => {
    const ports = [await freePort(), await freePort(), await freePort()]
    const region = await Region.start({
      models: [text, ears],
      nodes: 3,
      env: (index) => ({ EDGEWISE_PORT: String(ports[index]) }),
    })
    const one = "    server node1 127.0.0.1:8080 check maxconn 8000\n"
    if (!printed.haproxy.includes(one)) throw new Error("docs/proxies.md has no such line")
    const servers = ports.map((port, at) => `    server node${at} 127.0.0.1:${at === 0 ? 8080 : port}\n`)
    const config = printed.haproxy
      .replace("    retry-on conn-failure\n", rolling.defaults)
      .replace(one, rolling.backend + servers.join(""))
    const proxy = await startProxy("haproxy", ports[0]!, config)
    try {
      const orgs = [await region.newOrg("invoiced"), await region.newOrg("prepaid", rich)]
      await warmUp(region, orgs)
      const load = startLoad(
        orgs.flatMap(({ key }) => Array.from({ length: 6 }, () => ({ key, base: () => proxy.base }))),
      )
      const jobs: Array<string> = []
      for (const index of [0, 1, 2])
        jobs.push(await submit(region.target(index), file, { model: "listener" }))
      await pause(2_000)
      for (const index of [0, 1, 2]) {
        load.during(`node ${index} is restarted`)
        await region.stopNode(index)
        await pause(500)
        await region.startNode(index)
        await pause(2_000)
      }
      const counted = await load.stop()
      say(`rolling restart of three nodes: ${summary(counted)}`)
      expect(counted.failures).toEqual([])
      for (const id of jobs) expect((await untilDone(region.target(0), id)).status).toBe(200)
      const heard = await region.receipts()
      for (const id of jobs) expect(heard.get(id)).toBe(120_000)
      await checkReceipts(region, orgs[0]!, counted.answered.get(orgs[0]!.key)! + 3)
      await checkReceipts(region, orgs[1]!, counted.answered.get(orgs[1]!.key)! + 3, rich)
    } finally {
      await proxy.stop()
      await region.stop()
    }
  })
})

/** As docs/regions-of-nodes.md prints them. */
const rolling = {
  defaults: "    retry-on conn-failure 503\n    option redispatch 1\n    retries 3\n",
  backend: "    timeout check 5s\n    default-server check inter 500ms fall 1 rise 1 maxconn 8000\n",
}
