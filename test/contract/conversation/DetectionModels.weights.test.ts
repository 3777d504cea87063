// Conversations on a node whose catalog has models that detect speech and the ends of turns: exports with weights made by hand, for which every
// loud sound is speech and a turn that ends low is complete. The built-in detector takes neither sound for speech.
import { rmSync } from "node:fs"
import { afterAll, beforeAll, expect, it } from "vitest"
import { Resampler } from "#audio/Resampler.ts"
import { s16ToBytes } from "#domain/audio/Audio.ts"
import { voice } from "../../support/audio/Voice.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { type ToyDetection, writtenSilero, writtenSmartTurn } from "../../support/engines/ToyDetection.ts"
import { uses } from "../../support/groups/Uses.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel, type TestModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

const entryOf = (id: string, { spec }: ToyDetection): TestModel => ({
  id,
  kind: "detection",
  adapter: spec.adapter,
  files: { model: { source: spec.files.model! } },
  price: {},
})

let toys: ReadonlyArray<ToyDetection> = []
let node: TestNode
let plain: TestNode
beforeAll(async () => {
  uses("weights", "a native engine")
  const [silero, smartTurn] = [writtenSilero(), writtenSmartTurn()]
  toys = [silero, smartTurn]
  const models = [listener(), fakeModel, fakeVoice]
  node = await startNode({
    models: [...models, entryOf("silero-vad", silero), entryOf("smart-turn", smartTurn)],
  })
  plain = await startNode({ models })
  await untilLoaded(node, "fake")
})
afterAll(async () => {
  await node?.stop()
  await plain?.stop()
  for (const { folder } of toys) rmSync(folder, { recursive: true })
})

const pcm24 = (samples: Int16Array): Buffer =>
  Buffer.from(s16ToBytes(new Resampler(16_000, 24_000).push(samples)))

const tone = (hz: number, seconds: number) =>
  Int16Array.from({ length: seconds * 16_000 }, (_, i) =>
    Math.round(8_000 * Math.sin((2 * Math.PI * hz * i) / 16_000)),
  )
const silence = (seconds: number) => Buffer.alloc(seconds * 48_000)

const serverVad = { type: "server_vad", silence_duration_ms: 300 }
const open = async (on: TestNode, turn_detection: object = serverVad) => {
  const client = await ConversationClient.open(on, "fake")
  client.update({ output_modalities: ["text"], audio: { input: { turn_detection } } })
  await client.nth("session.updated")
  return client
}

/** Everything that was sent before is carried out. */
const settled = async (client: ConversationClient) => {
  const before = client.of("error").length
  client.send({ type: "conversation.item.retrieve", item_id: "none" })
  await client.nth("error", before + 1)
}

it("the model of speech finds turns, where the built-in detector finds none", async () => {
  const sound = Buffer.concat([silence(0.6), pcm24(tone(440, 1)), silence(0.8)])
  const [client, other] = [await open(node), await open(plain)]
  await client.speak(sound)
  const { audio_start_ms } = await client.nth("input_audio_buffer.speech_started")
  const { audio_end_ms } = await client.nth("input_audio_buffer.speech_stopped")
  // 300 ms before the sound belong to the turn; a step is 32 ms, and its first has no context.
  expect(Math.abs(audio_start_ms - 300)).toBeLessThan(80)
  expect(Math.abs(audio_end_ms - 1_900)).toBeLessThan(330)
  await client.nth("response.done")
  await other.speak(sound)
  await settled(other)
  expect(other.of("input_audio_buffer.speech_started")).toEqual([])
  expect(client.of("error")).toEqual([])
  client.close()
  other.close()
})

it("many conversations at a time each get their own turns", async () => {
  const clients = await Promise.all(Array.from({ length: 8 }, () => open(node)))
  await Promise.all(
    clients.map((client, i) =>
      client.speak(
        Buffer.concat(
          Array.from({ length: i % 4 }, () =>
            Buffer.concat([silence(0.5), pcm24(tone(440, 0.4)), silence(0.6)]),
          ).concat(silence(0.3)),
        ),
      ),
    ),
  )
  for (const [i, client] of clients.entries()) {
    await settled(client)
    expect(client.of("input_audio_buffer.speech_started").length).toBe(i % 4)
    expect(client.of("input_audio_buffer.speech_stopped").length).toBe(i % 4)
    client.close()
  }
})

it("transcription sessions use it, too", async () => {
  const url = `${node.socketBase}/v1/realtime?intent=transcription&model=listener&token=${node.keys.dev}`
  const client = (await SocketClient.connect(url)) as SocketClient
  client.send({
    type: "session.update",
    session: { type: "transcription", audio: { input: { turn_detection: serverVad } } },
  })
  const sound = Buffer.concat([silence(0.6), pcm24(tone(440, 1)), silence(0.8)])
  client.send({ type: "input_audio_buffer.append", audio: sound.toString("base64") })
  await client.until((events) => events.some(({ type }) => type === "input_audio_buffer.speech_stopped"))
  client.socket.close()
})

/** How long the silence was that ended a turn, milliseconds. */
const silenceAfter = async (hz: number) => {
  const client = await open(node, { type: "semantic_vad", eagerness: "low" })
  await client.speak(Buffer.concat([silence(0.5), pcm24(tone(hz, 1))]))
  await client.speak(silence(2.6), true)
  const { audio_end_ms } = await client.nth("input_audio_buffer.speech_stopped")
  client.close()
  return audio_end_ms - 1_500
}

it("the model of turn ends decides how long a silence of semantic_vad is", async () => {
  const [complete, incomplete] = await Promise.all([silenceAfter(300), silenceAfter(4_000)])
  // 500 ms, and 900 where the answer came too late; 2,000 ms. Half of it is left out where the transcript was ready before.
  expect(complete).toBeLessThan(900)
  expect(incomplete).toBeGreaterThan(950)
})

it("without the model's process the built-in detector finds the turns, until it is back", async () => {
  const client = await open(node)
  await client.speak(Buffer.concat([silence(0.6), pcm24(tone(440, 1)), silence(0.8)]))
  await client.nth("input_audio_buffer.speech_stopped")
  // A stopped process answers nothing: not even that it has ended.
  const { pid } = node.gauges("silero-vad")
  process.kill(pid!, "SIGSTOP")
  try {
    await client.speak(Buffer.concat([silence(0.6), voice(1), silence(0.8)]))
    await client.nth("input_audio_buffer.speech_started", 2)
    await client.nth("input_audio_buffer.speech_stopped", 2)
    await client.speak(Buffer.concat([pcm24(tone(440, 1)), silence(0.8)]))
    await settled(client)
    expect(client.of("input_audio_buffer.speech_started").length).toBe(2)
  } finally {
    process.kill(pid!, "SIGKILL")
  }
  await eventually(async () => {
    await client.speak(Buffer.concat([pcm24(tone(440, 0.5)), silence(0.6)]))
    await settled(client)
    return client.of("input_audio_buffer.speech_started").length > 2
  }, "the model finds turns again")
  expect(client.of("error").every(({ error }) => error.code !== "internal_error")).toBe(true)
  client.close()
})
