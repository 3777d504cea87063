// The shared database is killed and cut off again and again under live requests: none fails, and each receipt is written once.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { needs } from "../support/groups/Needs.ts"
import { complete, SharedNodes } from "../support/nodes/SharedNodes.ts"
import { fakeModel } from "../support/nodes/TestCatalog.ts"
import { eventually } from "../support/nodes/TestNode.ts"

const seconds = (count: number) => new Promise((resolve) => setTimeout(resolve, count * 1_000))

describe("a shared database that comes and goes", needs("postgresql"), () => {
  let shared: SharedNodes
  beforeAll(async () => {
    shared = await SharedNodes.start([fakeModel], { graceSeconds: 60, relayed: true, ownServer: true })
  })
  afterAll(() => shared?.stop())

  it("fails no request and loses no receipt", { timeout: 400_000 }, async () => {
    const invoiced = await shared.newOrg()
    const prepaid = await shared.newOrg(1_000_000_000)
    const counts = new Map<string, number>()
    const failures: Array<string> = []
    let slowestMs = 0
    let isOver = false
    const began = performance.now()
    let now = "start"
    const clients = [invoiced, prepaid].flatMap(({ key }) =>
      [shared.one, shared.two, shared.one, shared.two].map(async (node) => {
        while (!isOver) {
          const sent = performance.now()
          const answer = await complete(node, key, { tokens: 10, tokenMs: 10 })
          if (answer.status === 200) counts.set(key, (counts.get(key) ?? 0) + 1)
          else failures.push(`${answer.status} at ${Math.round(sent - began)} ms, ${now}`)
          await answer.arrayBuffer()
          slowestMs = Math.max(slowestMs, performance.now() - sent)
        }
      }),
    )
    const isBack = () =>
      eventually(async () => (await complete(shared.one, shared.one.keys.dev)).status === 200, "it is back")
    await seconds(3)
    for (const away of [3, 10, 25]) {
      now = `killed for ${away} s`
      await shared.server.kill()
      await seconds(away)
      await shared.server.start()
      await isBack()
      await seconds(3)
      now = `cut off for ${away} s`
      shared.relay.freeze()
      await seconds(away)
      shared.relay.thaw()
      await isBack()
      await seconds(3)
    }
    isOver = true
    await Promise.all(clients)
    console.info(
      `${[...counts.values()]} answered, slowest ${Math.round(slowestMs)} ms, ${failures.length} failed`,
    )
    expect(failures).toEqual([])
    for (const { key, orgId } of [invoiced, prepaid]) {
      await eventually(
        async () => (await shared.usage(orgId))[0]?.requests === counts.get(key),
        "each request has one receipt",
      )
    }
    const [usage] = await shared.usage(prepaid.orgId)
    expect(await shared.credits(prepaid.org)).toBe(1_000_000_000 - (usage?.microDollars ?? 0))
  })
})
