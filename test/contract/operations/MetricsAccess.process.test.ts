// Access to /metrics, and how often its figures are read.
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import { eventually, startNode } from "../../support/nodes/TestNode.ts"

describe("/metrics", () => {
  it("is made once for all that ask within its age", async () => {
    const node = await startNode({ settings: { metricsAgeMs: "60000" } })
    const scrape = async () => (await node.fetch("/metrics")).text()
    const first = await scrape()
    expect(first).toContain("edgewise_info{")
    await node.fetch("/health")
    const others = await Promise.all(Array.from({ length: 50 }, scrape))
    expect(new Set([first, ...others]).size).toBe(1)
    await node.stop()
  })

  it("is made anew when its age has passed", async () => {
    const node = await startNode({ settings: { metricsAgeMs: "100" } })
    const scrape = async () => (await node.fetch("/metrics")).text()
    const first = await scrape()
    await node.fetch("/health")
    await eventually(async () => (await scrape()) !== first, "the figures are read again")
    await node.stop()
  })

  it("wants a superadmin key where the operator says so", async () => {
    const node = await startNode({ settings: { metricsAuth: "true" } })
    const operator = await node.run(
      Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "ops", scope: "superadmin" })),
    )
    const status = async (key?: string): Promise<number> => {
      const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
      return (await node.fetch("/metrics", { headers })).status
    }
    expect(await status()).toBe(401)
    expect(await status("svc_wrong")).toBe(401)
    expect(await status(node.keys.credit)).toBe(403)
    expect(await status(operator.apiKey)).toBe(200)
    await node.stop()
  })
})
