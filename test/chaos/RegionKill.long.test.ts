// Nodes on one database with shared uploads: nodes and the database are killed with -9 at random points under jobs and live requests, and
// nodes are frozen. Every accepted job ends once, with the text of an undisturbed run and one receipt, the jobs of a dead node go on
// elsewhere, and a prepaid balance is exact.
// CHAOS_KILLS, CHAOS_JOBS and CHAOS_SEED set how often.
import { cpSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { listener, noise, wavOf } from "../support/clients/LiveClient.ts"
import { submit, transcribe, untilDone } from "../support/clients/TranscriptionClient.ts"
import { needs } from "../support/groups/Needs.ts"
import { Region } from "../support/nodes/Region.ts"
import { startLoad } from "../support/nodes/RegionLoad.ts"
import { fakeModel, price } from "../support/nodes/TestCatalog.ts"
import { eventually } from "../support/nodes/TestNode.ts"

type Bytes = Uint8Array<ArrayBuffer>
const kills = Number(process.env.CHAOS_KILLS ?? 12)
const jobCount = Number(process.env.CHAOS_JOBS ?? 24)
const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000)
/** Within this time the work of a dead node begins elsewhere: 18 s until it counts as dead, and what a busy machine adds. */
const elsewhereMs = 20_000
/** A busy machine is given so long to answer polls again. */
const refusedMs = 60_000
/** Waiting for it takes most of the time of a kill. */
const mostWaits = 10
const credits = 1_000_000_000

/** 2 s of audio take it 0.25 s. */
const model = listener({ callMs: 250 })

/** Park and Miller's generator: a run can be repeated by its seed. */
const randoms = (from: number) => {
  let state = (from % 2_147_483_646) + 1
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Some are one window, some take seconds. */
const files = [2, 9, 40].map((seconds, nth) => ({
  seconds,
  bytes: wavOf(noise(seconds, nth + 1)) as Bytes,
}))

describe("a region of three nodes", needs("postgresql"), () => {
  let region: Region
  const texts = new Map<number, string>()
  beforeAll(async () => {
    region = await Region.start({ models: [{ ...fakeModel, price }, model], nodes: 3 })
    for (const [which, { bytes }] of files.entries()) {
      const answer = await transcribe(region.target(0), bytes, { query: { model: "listener", sync: "true" } })
      texts.set(which, ((await answer.json()) as { text: string }).text)
    }
  })
  afterAll(() => region?.stop())

  /** Index of a node that works at a job, and the job; undefined if none does. */
  const atWork = async () => {
    const jobs = (await region.jobs()).filter(({ status }) => status === "processing")
    for (const job of jobs) {
      const index = region.running.find((running) => region.id(running) === job.node_id)
      if (index !== undefined) return { index, job }
    }
    return undefined
  }

  /** The end of a job. A poll may be refused while the database, which was killed a moment ago, is slow. */
  const endOf = async (target: ReturnType<typeof region.target>, id: string) => {
    let end = await untilDone(target, id)
    for (const since = performance.now(); end.status === 503 && performance.now() - since < refusedMs; ) {
      await pause(500)
      end = await untilDone(target, id)
    }
    return end
  }

  /** Every job of these ids has ended well, once. */
  const checkAll = async (accepted: ReadonlyMap<string, number>) => {
    const target = region.target(region.running[0]!)
    for (const [id, which] of accepted) {
      expect(await endOf(target, id)).toEqual({
        status: 200,
        body: { text: texts.get(which), job_id: id, status: "completed" },
      })
    }
    const receipts = await region.receipts()
    for (const [id, which] of accepted) expect(receipts.get(id), id).toBe(files[which]!.seconds * 1000)
  }

  it(
    `loses, repeats and overcharges nothing in ${kills} kills of nodes and database during ${jobCount} jobs (seed ${seed})`,
    { timeout: kills * 60_000 + 240_000 },
    async () => {
      const random = randoms(seed)
      const prepaid = await region.newOrg("prepaid", credits)
      const load = startLoad(
        [region, prepaid].flatMap(({ key }) =>
          [0, 1, 2].map((index) => ({
            key,
            base: () => (region.running.includes(index) ? region.node(index).base : undefined),
          })),
        ),
      )
      const accepted = new Map<string, number>()
      const tookMs: Array<number> = []
      let struck = 0
      let databaseKills = 0
      for (let kill = 0; kill < kills; kill++) {
        while (accepted.size < Math.ceil((jobCount * (kill + 1)) / kills)) {
          const which = Math.floor(random() * files.length)
          const index = region.running[Math.floor(random() * region.running.length)]!
          const id = await submit(region.target(index), files[which]!.bytes, { model: "listener" }).catch(
            () => undefined,
          )
          if (id === undefined) break
          accepted.set(id, which)
        }
        await pause(random() * 800)
        if (random() < 0.2) {
          databaseKills++
          await region.server.kill()
          await pause(random() * 3_000)
          await region.server.start()
          continue
        }
        const victim = await atWork().catch(() => undefined)
        const index = victim?.index ?? region.running[Math.floor(random() * region.running.length)]!
        const killedAtMs = performance.now()
        await region.kill(index)
        if (victim !== undefined) struck++
        // Some come back at once and take their jobs up themselves; of others the jobs must go elsewhere.
        if (victim !== undefined && tookMs.length < mostWaits && random() < 0.4) {
          const { attempt, id } = victim.job
          await eventually(
            async () => {
              const job = (await region.jobs()).find((each) => each.id === id)!
              return job.attempt > attempt || job.status === "completed"
            },
            "its job goes on elsewhere",
            elsewhereMs + 20_000,
          )
          tookMs.push(Math.round(performance.now() - killedAtMs))
        }
        await region.startNode(index)
      }
      console.info(
        `${struck} of ${kills - databaseKills} kills met a job in work, ${databaseKills} killed the database; work elsewhere after ${tookMs.join(", ")} ms`,
      )
      await checkAll(accepted)
      // Jobs whose acceptance never reached a client are done all the same.
      const target = region.target(region.running[0]!)
      for (const { id } of await region.jobs()) expect((await endOf(target, id)).status).toBe(200)
      const receipts = await region.receipts()
      for (const { id } of await region.jobs()) expect(receipts.has(id)).toBe(true)
      for (const ms of tookMs) expect(ms).toBeLessThan(elsewhereMs)
      const { answered, failures } = await load.stop()
      const balance = async () => {
        const [row] = await region.sql`
          SELECT o.credits_micro_dollars::float8 AS left, o.leased_micro_dollars::float8 AS leased,
                 (SELECT COALESCE(SUM(micro_dollars), 0)::float8 FROM usage_ledger WHERE org_id = o.id) AS spent,
                 (SELECT COUNT(*)::int FROM usage_ledger WHERE org_id = o.id) AS receipts
          FROM orgs o WHERE id = ${prepaid.orgId}`
        return row as { left: number; leased: number; spent: number; receipts: number }
      }
      // What idles is given back after two seconds, what a killed node had when it started again.
      await eventually(async () => (await balance()).leased === 0, "nothing is leased at the end")
      const end = await balance()
      console.info(
        `${accepted.size} jobs accepted; live: ${[...answered.values()].join(" and ")} answered, ${failures.length} cut or refused; ` +
          `prepaid: ${answered.get(prepaid.key)} answers, ${JSON.stringify(end)}`,
      )
      expect(end.left + end.spent).toBe(credits)
    },
  )

  it("moves nothing from a node that is frozen for 10 s", async () => {
    const accepted = new Map<string, number>()
    for (let nth = 0; nth < 6; nth++)
      accepted.set(await submit(region.target(0), files[2]!.bytes, { model: "listener" }), 2)
    const before = new Map((await region.jobs()).map(({ attempt, id }) => [id, attempt]))
    const { index, job } = (await atWork())!
    region.node(index).signal("SIGSTOP")
    await pause(10_000)
    region.node(index).signal("SIGCONT")
    await checkAll(accepted)
    const after = (await region.jobs()).find(({ id }) => id === job.id)!
    expect(after.attempt).toBe(Math.max(1, before.get(job.id) ?? 1))
  })

  it("moves the jobs of a node that is frozen for 60 s, whose late results count for nothing", async () => {
    const accepted = new Map<string, number>()
    for (let nth = 0; nth < 6; nth++)
      accepted.set(await submit(region.target(1), files[2]!.bytes, { model: "listener" }), 2)
    await eventually(async () => (await atWork()) !== undefined, "a node works")
    const { index, job } = (await atWork())!
    region.node(index).signal("SIGSTOP")
    const other = region.running.find((running) => running !== index)!
    try {
      await eventually(
        async () => {
          const now = (await region.jobs()).find(({ id }) => id === job.id)!
          return now.attempt > job.attempt
        },
        "its job goes on elsewhere",
        elsewhereMs + 20_000,
      )
      for (const id of accepted.keys()) await untilDone(region.target(other), id)
      await pause(60_000 - elsewhereMs)
    } finally {
      region.node(index).signal("SIGCONT")
    }
    await pause(5_000)
    await checkAll(accepted)
    expect((await region.jobs()).find(({ id }) => id === job.id)).toMatchObject({
      status: "completed",
      attempt: job.attempt + 1,
    })
    // The node that was frozen works again.
    const id = await submit(region.target(index), files[0]!.bytes, { model: "listener" })
    await checkAll(new Map([[id, 0]]))
  })

  it("refuses to start a copy of a data directory whose node runs", async () => {
    const copy = `${region.dataDir(0)}-copy`
    cpSync(region.dataDir(0), copy, { recursive: true })
    await expect(region.startCopy(copy)).rejects.toThrow(
      /runs on another data directory, of which this one is a copy/,
    )
  })
})
