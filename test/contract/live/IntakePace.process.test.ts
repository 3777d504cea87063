// Audio that comes faster than it is spoken, on sockets of a node with the limits of its users: it is heard to its end, in order, and
// nothing is refused; long events are taken in slices, between which others are served.
import { afterAll, beforeAll, describe, it } from "vitest"
import { voice } from "../../support/audio/Voice.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { lastWord, listener, noise, openLive } from "../../support/clients/LiveClient.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel, type TestModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

const pcmBytesPerSecond = 48_000
/** Audio may take a fifth of the gateway's thread, which is little on a busy machine: nothing comes before all of it is heard. */
const patienceMs = 300_000
const patient = { timeout: 2 * patienceMs }

const clear = { type: "input_audio_buffer.clear" }
const cleared = (events: ReadonlyArray<Readonly<Record<string, unknown>>>) =>
  events.some(({ type }) => type === "input_audio_buffer.cleared")
const append = (audio: Buffer) => ({ type: "input_audio_buffer.append", audio: audio.toString("base64") })

/** Starts a node of a test's own: what a test has sent counts for the next one's sockets of the same user. */
const started = async (...more: ReadonlyArray<TestModel>): Promise<TestNode> => {
  const node = await startNode({ models: [listener(), ...more], rateLimit: 100_000 })
  await untilLoaded(node, "listener", ...more.map(({ id }) => id))
  return node
}
const transcribe = async (node: TestNode): Promise<SocketClient> => {
  const client = await SocketClient.open(
    `${node.socketBase}/v1/realtime?intent=transcription&token=${node.keys.dev}`,
  )
  client.send({
    type: "session.update",
    session: { type: "transcription", audio: { input: { turn_detection: { type: "server_vad" } } } },
  })
  await client.until((events) => events.length >= 2)
  return client
}

// At the same time: a node takes audio in for a fifth of the time, so they wait for the most part.
describe.concurrent("silence", inLong, () => {
  let node: TestNode
  beforeAll(async () => {
    node = await started(fakeModel, fakeVoice)
  })
  afterAll(() => node.stop())

  it("of more than two minutes, sent at once, is heard to its end", patient, async ({ expect }) => {
    const client = await ConversationClient.open(node)
    client.update({ audio: { input: { format: { type: "audio/pcmu" }, transcription: {} } } })
    await client.nth("session.updated")
    const second = append(Buffer.alloc(8_000, 0xff))
    for (let i = 0; i < 123; i++) client.send(second)
    client.send(clear)
    await client.client.until(cleared, patienceMs)
    expect(client.types).toEqual(["session.created", "session.updated", "input_audio_buffer.cleared"])
    client.close()
    expect(node.counts.messageBufferedBytes).toBe(0)
  })
})

describe.concurrent("one event", () => {
  let node: TestNode
  beforeAll(async () => {
    node = await started()
  })
  afterAll(() => node.stop())

  it(
    "of twenty seconds is taken in slices: another socket is heard meanwhile",
    patient,
    async ({ expect }) => {
      const [long, short] = [await transcribe(node), await transcribe(node)]
      long.send(append(Buffer.alloc(20 * pcmBytesPerSecond)))
      long.send(clear)
      short.send(append(Buffer.alloc(pcmBytesPerSecond / 50)))
      short.send(clear)
      await short.until(cleared, patienceMs)
      expect(cleared(long.frames)).toBe(false)
      await long.until(cleared, patienceMs)
      for (const client of [long, short]) {
        expect(client.frames.filter(({ type }) => type === "error")).toEqual([])
        client.socket.close()
      }
    },
  )

  it("of speech is heard as in pieces of 20 ms", patient, async ({ expect }) => {
    const pcm = Buffer.concat([
      voice(4, 3),
      Buffer.alloc(pcmBytesPerSecond),
      voice(3, 5),
      Buffer.alloc(pcmBytesPerSecond),
    ])
    const positions = async (bytes: number) => {
      const client = await transcribe(node)
      for (let at = 0; at < pcm.length; at += bytes) client.send(append(pcm.subarray(at, at + bytes)))
      client.send(clear)
      await client.until(cleared, patienceMs)
      client.socket.close()
      return client.frames.flatMap(({ type, audio_end_ms: end, audio_start_ms: start }) =>
        start === undefined && end === undefined ? [] : [[type, start ?? end]],
      )
    }
    const pieces = await positions(960)
    expect(pieces.length).toBeGreaterThanOrEqual(4)
    expect(await positions(pcm.length)).toEqual(pieces)
  })
})

/** Sends at this many times real time, in frames of 100 ms. */
const sendFast = async (client: SocketClient, pcm: Buffer, times: number): Promise<void> => {
  const bytes = 3_200
  const startMs = performance.now()
  for (let at = 0; at < pcm.length; at += bytes) {
    client.socket.send(pcm.subarray(at, at + bytes))
    const aheadMs = ((at / bytes) * 100) / times - (performance.now() - startMs)
    if (aheadMs > 5) await new Promise((resolve) => setTimeout(resolve, aheadMs))
  }
}

describe.concurrent("sockets in turn", inLong, () => {
  let node: TestNode
  beforeAll(async () => {
    node = await started()
  })
  afterAll(() => node.stop())

  it("of one user, ten at ten times real time: all complete", async ({ expect }) => {
    const seconds = 119
    for (let i = 0; i < 10; i++) {
      const client = await openLive(node, { vad_events: "1" })
      await sendFast(client, noise(seconds), 10)
      client.send({ type: "stop" })
      expect(await lastWord(client)).toMatchObject({ type: "transcript.text.done", duration: seconds })
      expect(await client.closed).toEqual({ code: 1000, reason: "" })
    }
  })
})

describe.concurrent("speakers on one key", inLong, () => {
  let node: TestNode
  beforeAll(async () => {
    node = await started()
  })
  afterAll(() => node.stop())

  it("20 in real time: all are heard to the end", patient, async ({ expect }) => {
    const clients = await Promise.all(Array.from({ length: 20 }, () => transcribe(node)))
    const piece = append(Buffer.alloc(pcmBytesPerSecond / 10))
    const startMs = performance.now()
    for (let sent = 0; sent < 60 * 10; sent++) {
      for (const client of clients) client.send(piece)
      const aheadMs = (sent + 1) * 100 - (performance.now() - startMs)
      if (aheadMs > 0) await new Promise((resolve) => setTimeout(resolve, aheadMs))
    }
    for (const client of clients) client.send(clear)
    await Promise.all(clients.map((client) => client.until(cleared, patienceMs)))
    for (const { frames, socket } of clients) {
      expect(frames.filter(({ type }) => type === "error")).toEqual([])
      socket.close()
    }
    expect(node.counts.messageBufferedBytes).toBe(0)
  })
})
