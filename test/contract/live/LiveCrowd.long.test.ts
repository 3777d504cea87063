// Many live sessions at once: some are killed, one floods, one sends single bytes, one sends silence; the others get
// every word.
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
