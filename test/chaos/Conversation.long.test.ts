// A conversation whose engines are killed while they work for it, and one whose node is stopped while it speaks.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { ConversationClient } from "../support/clients/ConversationClient.ts"
import { listener, noise } from "../support/clients/LiveClient.ts"
import { SocketClient } from "../support/clients/SocketClient.ts"
import { type NodeProcess, startProcess } from "../support/nodes/NodeProcess.ts"
import { fakeVoice } from "../support/nodes/SpeechNode.ts"
import { fakeModel } from "../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilIdle, untilLoaded } from "../support/nodes/TestNode.ts"
import { brokenOrders } from "../support/wire/ConversationOrders.ts"

const models = [listener({}, { runtime: { load: "start" } }), fakeModel, fakeVoice]
const script = (steps: Readonly<Record<string, unknown>>) => `fake:${JSON.stringify(steps)}`
/** 40 sentences, each of which becomes 0.6 s of speech. */
const long = Array.from({ length: 40 }, (_, at) => `Sentence number ${at} is here.`).join(" ")

const answer = async (client: ConversationClient, text: string, count: number) => {
  client.say(script({ tokens: 1, text }))
  client.send({ type: "response.create" })
  return (await client.nth("response.done", count)).response
}

describe("an engine that is killed", () => {
  let node: TestNode
  beforeAll(async () => {
    node = await startNode({ models })
    await untilLoaded(node, "listener", "fake", "fake-voice")
  })
  afterAll(() => node.stop())

  it("in the middle of an answer's speech: the answer fails, and the next one is spoken", async () => {
    const client = await ConversationClient.open(node)
    client.say(script({ tokens: 1, text: long }))
    client.send({ type: "response.create" })
    await client.nth("response.output_audio.delta", 3)
    process.kill(node.gauges("fake-voice").pid!, "SIGKILL")
    const { response } = await client.nth("response.done")
    expect(response).toMatchObject({
      status: "failed",
      status_details: { type: "failed", error: { type: "server_error" } },
      output: [{ status: "incomplete", content: [{ type: "output_audio" }] }],
      usage: { output_token_details: { audio_tokens: expect.any(Number) } },
    })
    expect(await answer(client, "Here I am again.", 2)).toMatchObject({
      status: "completed",
      output: [{ content: [{ transcript: "Here I am again." }] }],
    })
    expect(client.of("error")).toEqual([])
    expect(brokenOrders(client.client.frames)).toEqual([])
    client.close()
  })

  it("while it writes: the answer fails, and the next one is given", async () => {
    const client = await ConversationClient.open(node)
    client.update({ output_modalities: ["text"] })
    client.say(script({ tokens: 4_000, tokenMs: 20 }))
    client.send({ type: "response.create" })
    await client.nth("response.output_text.delta", 3)
    process.kill(node.gauges("fake").pid!, "SIGKILL")
    expect((await client.nth("response.done")).response.status).toBe("failed")
    expect((await answer(client, "Here I am again.", 2)).status).toBe("completed")
    expect(brokenOrders(client.client.frames)).toEqual([])
    client.close()
  })

  it("while it hears: the turn has no transcript, and the next one has", async () => {
    const client = await ConversationClient.open(node)
    client.update({
      audio: { input: { turn_detection: null, transcription: {} }, output: { pacing: "none" } },
    })
    let updates = 1
    /** The ends of the transcripts of all turns, once each turn that was committed has one. */
    const ends = async () => {
      client.update({})
      await client.nth("session.updated", ++updates)
      const turns = client.of("input_audio_buffer.committed").map(({ item_id }) => item_id)
      const endOf = (id: string) =>
        client.client.frames.find(
          ({ item_id, type }) =>
            item_id === id && /input_audio_transcription\.(completed|failed)$/.test(String(type)),
        )
      await client.client.until(() => turns.every((id) => endOf(id) !== undefined))
      return turns.map((id) => String(endOf(id)!.type))
    }
    await client.speak(noise(2, 5))
    process.kill(node.gauges("listener").pid!, "SIGKILL")
    client.send({ type: "input_audio_buffer.commit" })
    // Two, if the engine's death was seen while the speech still came: then its rest is a turn of its own.
    const before = await ends()
    expect(before.length).toBeGreaterThan(0)
    await client.speak(noise(2, 5))
    client.send({ type: "input_audio_buffer.commit" })
    const after = await ends()
    expect(after.length).toBe(before.length + 1)
    expect(after.at(-1)).toMatch(/completed$/)
    expect((await answer(client, "I hear you.", 1)).status).toBe("completed")
    expect(brokenOrders(client.client.frames)).toEqual([])
    client.close()
    await untilIdle(node)
  })
})

describe("a node that is stopped", () => {
  let node: NodeProcess
  beforeAll(async () => {
    node = await startProcess({ models, env: { EDGEWISE_DRAIN_SECONDS: "30" } })
  })
  afterAll(() => node.dispose())

  it("lets a conversation finish the sentences that are being spoken, and closes", async () => {
    const socket = await SocketClient.open(
      `ws://127.0.0.1:${node.port}/v1/realtime?model=gpt-realtime&token=${node.devKey}`,
    )
    const client = await ConversationClient.over(socket)
    client.say(script({ tokens: 1, text: long }))
    client.send({ type: "response.create" })
    await client.nth("response.output_audio.delta", 3)
    node.signal("SIGTERM")
    expect(await socket.closed).toEqual({ code: 1001, reason: "server is shutting down" })
    const { response } = client.of("response.done")[0]!
    expect(response).toMatchObject({
      status: "failed",
      status_details: { error: { code: "Draining" } },
    })
    // Whole sentences of 0.6 s, and fewer than all of them.
    const seconds = client.audio.length / 48_000
    expect(seconds / 0.6).toBeCloseTo(Math.round(seconds / 0.6), 5)
    expect(seconds).toBeLessThan(40 * 0.6)
    expect(brokenOrders(client.client.frames)).toEqual([])
    expect(await node.exited).toEqual([0, null])
  })
})
