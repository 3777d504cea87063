// Events of up to 15 MiB on `/v1/realtime`: audio is taken whole, a larger event is an error event that names the limit, and the
// session goes on.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { maxEventBytes } from "#domain/wire/RealtimeProtocol.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

const mib = 1024 * 1024

/** Audio may take a fifth of the gateway's thread, which is little on a busy machine: four minutes of it are taken in within a second, or a minute. */
const patienceMs = 300_000

let node: TestNode
beforeAll(async () => {
  // Audio is not held back: 15 MiB are four minutes, of which a socket may send two at once.
  node = await startNode({ models: [listener(), fakeModel, fakeVoice] })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node.stop())

/** So many bytes of base64, and the seconds of 24 kHz PCM that they are. */
const audioOf = (bytes: number) => {
  const pcm = Buffer.alloc(Math.floor(bytes / 8) * 6)
  return { audio: pcm.toString("base64"), seconds: pcm.length / 48_000 }
}

const completed = "conversation.item.input_audio_transcription.completed"

const transcribing = async (): Promise<SocketClient> => {
  const client = await SocketClient.open(
    `${node.socketBase}/v1/realtime?token=${node.keys.dev}&intent=transcription`,
  )
  client.send({
    type: "session.update",
    session: { type: "transcription", audio: { input: { turn_detection: null } } },
  })
  await client.until((frames) => frames.some(({ type }) => type === "session.updated"))
  return client
}

/** Appends audio by hand, and gives the seconds that its item is charged for. */
const heard = async (client: SocketClient, audio: string): Promise<number> => {
  const of = () => client.frames.filter(({ type }) => type === completed)
  const before = of().length
  client.send({ type: "input_audio_buffer.append", audio })
  client.send({ type: "input_audio_buffer.commit" })
  await client.until(() => of().length > before, patienceMs)
  return (of().at(-1)?.usage as { readonly seconds: number }).seconds
}

describe.each(
  (
    [
      ["4.1 MiB", 4.1],
      ["8 MiB", 8],
      ["15 MiB", 15],
    ] as const
  ).slice(0, 3),
)("%s of audio in one event", (_, size) => {
  it(
    "are taken whole, and what comes after them after them",
    async () => {
      const client = await transcribing()
      const { audio, seconds } = audioOf(size * mib)
      expect(await heard(client, audio)).toBeCloseTo(seconds, 1)
      const second = audioOf(64_000)
      expect(await heard(client, second.audio)).toBeCloseTo(second.seconds, 1)
      client.vanish()
    },
    2 * patienceMs,
  )
})

describe.each(
  (
    [
      ["15.1 MiB", 15.1],
      ["20 MiB", 20],
    ] as const
  ).slice(0, 2),
)("%s in one event", (_, size) => {
  const tooLarge = {
    type: "invalid_request_error",
    code: "InvalidRequest",
    message: `event: is larger than ${maxEventBytes} bytes`,
    param: "event",
  }

  it("are an error event with the event's id, and the session goes on", async () => {
    const client = await transcribing()
    const { audio } = audioOf(size * mib)
    const errors = () => client.frames.filter(({ type }) => type === "error").map(({ error }) => error)
    client.send({ event_id: "first", type: "input_audio_buffer.append", audio })
    client.send({ type: "input_audio_buffer.append", audio, event_id: "last" })
    client.send({ type: "input_audio_buffer.append", audio })
    await client.until(() => errors().length === 3)
    expect(errors()).toEqual(["first", "last", null].map((event_id) => ({ ...tooLarge, event_id })))
    const small = audioOf(64_000)
    expect(await heard(client, small.audio)).toBeCloseTo(small.seconds, 1)
    client.vanish()
  })

  it("are the same in a conversation", async () => {
    const client = await ConversationClient.open(node)
    client.send({
      type: "conversation.item.create",
      event_id: "e",
      item: { text: "é".repeat((size * mib) / 2) },
    })
    expect((await client.nth("error")).error).toEqual({ ...tooLarge, event_id: "e" })
    client.update({ output_modalities: ["text"] })
    await client.nth("session.updated")
    client.client.vanish()
  })
})

it("an event that is no audio is refused beyond 8 MB", async () => {
  const client = await ConversationClient.open(node)
  const text = "x".repeat(9_000_000)
  client.send({ type: "conversation.item.create", event_id: "e", item: { type: "message", text } })
  expect((await client.nth("error")).error).toMatchObject({
    message: "event: is larger than 8000000 bytes",
    event_id: "e",
  })
  client.client.vanish()
})

it("a large item comes back as it was sent, with every character", async () => {
  const client = await ConversationClient.open(node)
  const content = Array.from({ length: 20 }, (_, at) => ({
    type: "input_text" as const,
    text: `${at} ${'wörter "日本" 😀\n'.repeat(8_000)}`,
  }))
  client.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } })
  expect((await client.nth("conversation.item.added")).item).toMatchObject({ content })
  expect((await client.nth("conversation.item.done")).item).toMatchObject({ content })
  client.client.vanish()
})
