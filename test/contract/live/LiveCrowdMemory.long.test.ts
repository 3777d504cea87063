// After a thousand live sessions, each ended in another way, the node's memory is what it was.
import { readdirSync } from "node:fs"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { deltas, listener, noise, openLive, speak } from "../../support/clients/LiveClient.ts"
import { eventually, startNode, type TestNode, untilIdle, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener()] })
  await untilLoaded(node, "listener")
})
afterAll(() => node.stop())

const stop = { type: "stop" }

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void

const inUse = async () => {
  await eventually(() => node.counts.webSockets === 0 && node.counts.inFlight === 0, "no session")
  await untilIdle(node)
  collect()
  await new Promise((resolve) => setImmediate(resolve))
  collect()
  const handles = process.getActiveResourcesInfo().filter((name) => name !== "Timeout").length
  return { heap: process.memoryUsage().heapUsed, files: readdirSync("/proc/self/fd").length, handles }
}

describe("a thousand sessions", () => {
  const pcm = noise(0.5)
  const cycle = async (i: number): Promise<void> => {
    const client = await openLive(node, { window_s: "0.5" })
    speak(client, pcm, 3_200)
    if (i % 3 === 0) {
      await client.until(() => deltas(client).length > 0)
      return client.vanish()
    }
    if (i % 3 === 1) client.send(stop)
    else client.socket.send(Buffer.alloc(3))
    await client.closed
  }
  const cycles = async (count: number) => {
    // So few at once that a busy machine can serve them.
    for (let i = 0; i < count; i += 5) {
      await Promise.all(Array.from({ length: 5 }, (_, k) => cycle(i + k)))
    }
  }

  it("leave memory, descriptors and timers as they were", async () => {
    await cycles(200)
    const before = await inUse()
    await cycles(1_000)
    const after = await inUse()
    // 1,000 leaked sessions would be 17 MB with their fibers alone (measured), and 32 MB with a second's buffer each.
    expect(after.heap - before.heap).toBeLessThan(8_000_000)
    expect(after.files).toBeLessThanOrEqual(before.files + 2)
    expect(after.handles).toBeLessThanOrEqual(before.handles + 2)
  })
})
