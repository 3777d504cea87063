// Many live sessions at once: some are killed, one floods, one sends single bytes, one sends silence; the others get
// every word. And after a thousand sessions the node's memory is what it was.
import { readdirSync } from "node:fs"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  deltas,
  lastWord,
  listener,
  noise,
  openLive,
  speak,
  syncAnswer,
} from "../../support/clients/LiveClient.ts"
import type { SocketClient } from "../../support/clients/SocketClient.ts"
import { eventually, startNode, type TestNode, untilIdle, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener()] })
  await untilLoaded(node, "listener")
})
afterAll(() => node.stop())

const stop = { type: "stop" }
const seconds = 8
const second = 32_000

describe("twenty sessions", () => {
  /** `killed` has the sessions whose connection breaks, with the bytes of audio after which each does. */
  const crowd = async (killed: ReadonlyMap<number, number>) => {
    const speech = Array.from({ length: 20 }, (_, i) => noise(seconds, i + 1))
    const expected = await Promise.all(
      speech.map((pcm) => syncAnswer(node, pcm, { model: "listener" }).then(({ text }) => text)),
    )
    const clients = await Promise.all(speech.map(() => openLive(node, { window_s: "2" })))
    const flooding = await openLive(node)
    const bytes = await openLive(node)
    const silent = await openLive(node)
    flooding.socket.send(noise(115, 99))
    bytes.socket.send(Buffer.alloc(1))

    // Two seconds at a time, each session at its own pace: it sends the next once it has its caption.
    const survive = async (client: SocketClient, i: number): Promise<void> => {
      const lastByte = killed.get(i) ?? Number.POSITIVE_INFINITY
      for (let at = 0; at < seconds; at += 2) {
        speak(client, speech[i]!.subarray(at * second, Math.min(lastByte, (at + 2) * second)), 640 + 2 * i)
        if (lastByte <= (at + 2) * second) return client.vanish()
        await client.until(() => deltas(client).at(-1)?.audio_ms === (at + 2) * 1_000)
      }
      client.send(stop)
    }
    await Promise.all(clients.map(survive))

    for (const [i, client] of clients.entries()) {
      if (killed.has(i)) continue
      expect(await lastWord(client)).toMatchObject({ type: "transcript.text.done", text: expected[i] })
      // Every window had its caption: none was lost to the crowd.
      expect(deltas(client).map(({ audio_ms }) => audio_ms)).toEqual([2_000, 4_000, 6_000, 8_000])
    }
    expect((await lastWord(bytes)).type).toBe("error")
    flooding.send(stop)
    const { text } = await syncAnswer(node, noise(115, 99), { model: "listener" })
    expect(await lastWord(flooding)).toMatchObject({ type: "transcript.text.done", text })
    expect(silent.frames).toEqual([])
    silent.send(stop)
    expect(await lastWord(silent)).toMatchObject({ text: "", duration: 0 })
    await untilIdle(node)
    await eventually(() => node.counts.webSockets === 0, "no socket is open")
  }

  it("of which half are killed and three misbehave: the others get every word of theirs", async () => {
    const someone = fc.shuffledSubarray(
      Array.from({ length: 20 }, (_, i) => i),
      { minLength: 10, maxLength: 10 },
    )
    const somewhen = fc.array(fc.integer({ min: 0, max: seconds * second }), { minLength: 10, maxLength: 10 })
    // Once, because it takes seconds; a failure prints the random choices.
    await fc.assert(
      fc.asyncProperty(someone, somewhen, (who, when) => crowd(new Map(who.map((i, n) => [i, when[n]!])))),
      { numRuns: 1, endOnFailure: true },
    )
  })
})

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
