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
/** Waits for the models' answers no longer than in production. */
let usual: TestNode
let plain: TestNode
beforeAll(async () => {
  uses("weights", "a native engine")
  const [silero, smartTurn] = [writtenSilero(), writtenSmartTurn()]
  toys = [silero, smartTurn]
  const models = [listener(), fakeModel, fakeVoice]
  const detecting = [...models, entryOf("silero-vad", silero), entryOf("smart-turn", smartTurn)]
  // A machine that stands still for a moment must not lose a model's answer.
  node = await startNode({ models: detecting, detectionMs: 60_000 })
  usual = await startNode({ models: detecting })
  plain = await startNode({ models })
  // Conversations load the models.
  for (const each of [node, usual]) {
    const client = await open(each)
    await untilLoaded(each, "fake", "silero-vad", "smart-turn")
    client.close()
  }
})
afterAll(async () => {
  await node?.stop()
  await usual?.stop()
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

const turnEnds = async () =>
  (await node.metrics()).get('edgewise_model_requests_total{model="smart-turn",outcome="done"}') ?? 0

/** How long the silence was that ended a turn, milliseconds. */
const silenceAfter = async (hz: number) => {
  const client = await open(node, { type: "semantic_vad", eagerness: "low" })
  const before = await turnEnds()
  // Enough for the model to be asked, too little for any end; the rest once it has answered.
  await client.speak(Buffer.concat([silence(0.5), pcm24(tone(hz, 1)), silence(0.3)]))
  await eventually(async () => (await turnEnds()) > before, "the model has answered")
  await settled(client)
  await client.speak(silence(2.3))
  const { audio_end_ms } = await client.nth("input_audio_buffer.speech_stopped")
  client.close()
  return audio_end_ms - 1_500
}

it("the model of turn ends decides how long a silence of semantic_vad is", async () => {
  const [complete, incomplete] = [await silenceAfter(300), await silenceAfter(4_000)]
  // 500 and 2,000 ms. Half of it is left out where the transcript was ready before.
  expect(complete).toBeLessThan(700)
  expect(incomplete).toBeGreaterThan(950)
})

it("without the model's process the built-in detector finds the turns, until it is back", async () => {
  const client = await open(usual)
  const count = (type: "speech_started" | "speech_stopped") => client.of(`input_audio_buffer.${type}`).length
  // More than once where an answer came too late.
  await eventually(async () => {
    await client.speak(Buffer.concat([silence(0.6), pcm24(tone(440, 1)), silence(0.8)]))
    await settled(client)
    return count("speech_started") > 0
  }, "the model finds a turn")
  const before = count("speech_started")
  expect(count("speech_stopped")).toBe(before)
  // A stopped process answers nothing: not even that it has ended.
  const { pid } = usual.gauges("silero-vad")
  process.kill(pid!, "SIGSTOP")
  try {
    await client.speak(Buffer.concat([silence(0.6), voice(1), silence(0.8)]))
    await client.nth("input_audio_buffer.speech_started", before + 1)
    await client.nth("input_audio_buffer.speech_stopped", before + 1)
    await client.speak(Buffer.concat([pcm24(tone(440, 1)), silence(0.8)]))
    await settled(client)
    expect(count("speech_started")).toBe(before + 1)
  } finally {
    process.kill(pid!, "SIGKILL")
  }
  await eventually(async () => {
    await client.speak(Buffer.concat([pcm24(tone(440, 0.5)), silence(0.6)]))
    await settled(client)
    return count("speech_started") > before + 1
  }, "the model finds turns again")
  expect(client.of("error").every(({ error }) => error.code !== "internal_error")).toBe(true)
  client.close()
})
