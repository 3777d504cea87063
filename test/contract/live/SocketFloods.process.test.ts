// WebSockets that send useless messages: empty ones by the thousand, unknown events, cancels of
// unknown ids. Each socket is closed with a reason; what valid clients send in a burst is not.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { lastWord, listener, noise, openLive, speak } from "../../support/clients/LiveClient.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), fakeModel] })
  await untilLoaded(node, "listener")
})
afterAll(() => node.stop())

const open = (path: string) => SocketClient.open(`ws://127.0.0.1:${node.port}${path}token=${node.keys.dev}`)
const paths = [
  "/v1/audio/transcriptions/ws?",
  "/v1/realtime?intent=transcription&",
  "/v1/completions/ws?",
] as const

describe("a socket is closed that sends", () => {
  it.each(paths)("20,000 empty messages: %s", async (path) => {
    const client = await open(path)
    const before = node.counts.socketsFlooded
    for (let i = 0; i < 20_000; i++) client.socket.send(Buffer.alloc(0))
    expect((await client.closed).code).toBe(1008)
    expect(node.counts.socketsFlooded - before).toBeLessThanOrEqual(1)
  })

  it.each([
    ["events that are none", paths[1], "x".repeat(300), "too many events"],
    ["events without audio", paths[1], '{"type":"input_audio_buffer.clear"}', "too many events"],
    ["requests that are none", paths[2], "x".repeat(300), "too many messages"],
    ["cancels of nothing", paths[2], '{"type":"cancel","request_id":1}', "too many messages"],
  ])("1,900 %s: %s", async (_name, path, message, reason) => {
    const client = await open(path)
    for (let i = 0; i < 1_900; i++) client.socket.send(message)
    expect(await client.closed).toEqual({ code: 1008, reason })
  })
})

describe("a socket goes on that sends", () => {
  it("two minutes of 10 ms frames at once", async () => {
    const client = await openLive(node)
    speak(client, noise(119), 320)
    client.send({ type: "stop" })
    expect((await lastWord(client)).type).toBe("transcript.text.done")
  })

  it("a second of 2-byte frames at 100 a second, kept back and delivered at once", async () => {
    const client = await openLive(node)
    speak(client, noise(1).subarray(0, 2_000), 2)
    client.send({ type: "stop" })
    expect((await lastWord(client)).type).toBe("transcript.text.done")
  })
})
