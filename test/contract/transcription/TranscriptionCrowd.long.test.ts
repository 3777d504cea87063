// One user with four long streams, as many as the recogniser has slots and as there are decoders: another user's clips
// and a live session are served between the windows. Gated on counts: how many segments the long streams get while the
// other waits.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { marks } from "#engines/fake/FakeWords.ts"
import { clipBytes, clips, longWav } from "../../support/audio/SpeechClips.ts"
import { listener, noise, openLive, speak, clips as speech, wavOf } from "../../support/clients/LiveClient.ts"
import { model, post, whisper } from "../../support/clients/TranscriptionClient.ts"
import { orgWith, receiptsOf } from "../../support/nodes/Ledger.ts"
import { eventually, startNode, type TestNode, untilIdle, untilLoaded } from "../../support/nodes/TestNode.ts"

type Bytes = Uint8Array<ArrayBuffer>
const clip = clips.find(({ seconds }) => seconds < 3.5)!

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [whisper, listener()] })
  await untilLoaded(node, model, "listener")
})
afterAll(() => node.stop())

// SlotSchedulerFairness.test.ts says that windows are shared.
describe("four streams of fifteen minutes of one user", () => {
  it("let another user's clips and captions through", async () => {
    const abort = new AbortController()
    const segments = [0, 0, 0, 0]
    const total = () => segments.reduce((sum, count) => sum + count, 0)
    const long = longWav(900) as Bytes
    const streams = segments.map(async (_, n) => {
      const response = await post(node, long, { query: { model, stream: "true" }, signal: abort.signal })
      for await (const chunk of response.body!) segments[n]! += String(chunk).length > 0 ? 1 : 0
    })
    await eventually(() => segments.every((count) => count > 2), "all four are transcribed", 60_000)

    const passed: Array<number> = []
    for (let i = 0; i < 5; i++) {
      const before = total()
      const answer = await post(node, clipBytes(clip) as Bytes, {
        key: node.keys.credit,
        query: { model, sync: "true" },
      })
      expect([answer.status, await answer.text()]).toEqual([200, expect.stringMatching(/\w/)])
      passed.push(total() - before)
    }
    const before = total()
    const live = await openLive(node, { model, token: node.keys.credit })
    speak(live, speech.find((pcm) => pcm.length > 4 * 32_000)!.subarray(0, 2 * 32_000), 640)
    await live.until((frames) => frames.some(({ type }) => type === "transcript.text.delta"))
    passed.push(total() - before)
    live.socket.close()

    abort.abort()
    await Promise.allSettled(streams)
    await untilIdle(node)
    console.log(`segments of the four streams while a clip, or a caption, was awaited: ${passed}`)
    // The first clip also waits for a decoder, which a stream gives up after one second of wall time. Without that it
    // waited until one of the four files was fully decoded: about 500 segments.
    expect(Math.max(...passed)).toBeLessThan(80)
    expect(Math.max(...passed.slice(1))).toBeLessThan(40)
  })
})

describe("a stream whose engine crashes in its last window", () => {
  it("costs what was delivered", async () => {
    const key = await orgWith(node, "delivered", 1_000_000)
    const pcm = noise(95)
    // In the fourth window of 30 s.
    pcm.writeInt16LE(Math.round(marks.crash * 32_768), 92 * 32_000)
    const response = await post(node, wavOf(pcm), { key, query: { model: "listener", stream: "true" } })
    expect(response.status).toBe(200)
    const body = await response.text()
    expect(body).toContain("transcript.text.delta")
    expect(body).toContain('"type":"error"')
    const [receipt] = await receiptsOf(node, "delivered")
    // Whole windows, and nothing of the one that failed.
    expect(receipt?.audioMs).toBeGreaterThan(80_000)
    expect(receipt?.audioMs).toBeLessThan(95_000)
  })

  it("costs nothing where nothing was delivered", async () => {
    const key = await orgWith(node, "undelivered", 1_000_000)
    const pcm = noise(95)
    pcm.writeInt16LE(Math.round(marks.crash * 32_768), 92 * 32_000)
    const response = await post(node, wavOf(pcm), { key, query: { model: "listener", sync: "true" } })
    expect(response.status).toBe(500)
    expect(await receiptsOf(node, "undelivered")).toEqual([])
  })
})
