// What takes the floor in a conversation: speech does; music, keys and noise do not; and at most one answer has it.
import { afterAll, beforeAll, expect, it } from "vitest"
import { Resampler } from "#audio/Resampler.ts"
import { s16ToBytes } from "#domain/audio/Audio.ts"
import { rateHz, sounds } from "../../../bench/turns/Sounds.ts"
import { RandomNumbers } from "../../../models/eval/Conditions.ts"
import { voice } from "../../support/audio/Voice.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { brokenOrders } from "../../support/wire/ConversationOrders.ts"

let node: TestNode
beforeAll(async () => {
  // A transcript takes a while, so that something can happen between the end of a turn and its answer.
  node = await startNode({ models: [listener({ callMs: 60 }), fakeModel, fakeVoice] })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node.stop())

const pcm24 = (samples: Float32Array): Buffer =>
  Buffer.from(
    s16ToBytes(new Resampler(rateHz, 24_000).push(Int16Array.from(samples, (sample) => sample * 8_000))),
  )

/** Two minutes of speech: longer than a busy machine takes to hear the sounds. */
const text = Array.from({ length: 200 }, (_, at) => `word${at} here.`).join(" ")

it("sounds do not interrupt an answer, speech does", async () => {
  const client = await ConversationClient.open(node)
  client.say(`fake:${JSON.stringify({ tokens: 1, text })}`)
  client.send({ type: "response.create" })
  await client.nth("response.output_audio.delta", 3)
  for (const kind of ["organ", "keys", "door", "strings", "rain"]) {
    await client.speak(pcm24(sounds[kind]!(rateHz, new RandomNumbers(7))))
  }
  // The retrieval is answered after all that audio.
  client.send({ type: "conversation.item.retrieve", item_id: "none" })
  await client.nth("error")
  expect(client.of("input_audio_buffer.speech_started")).toEqual([])
  expect(client.of("response.done")).toEqual([])
  await client.speak(Buffer.concat([Buffer.alloc(24_000), voice(1)]))
  await client.nth("input_audio_buffer.speech_started")
  expect((await client.nth("response.done")).response).toMatchObject({
    status: "cancelled",
    status_details: { reason: "turn_detected" },
  })
  client.close()
})

it("the threshold is how probable speech has to be", async () => {
  // A whisper of speech under noise: probable, and not certain.
  const random = new RandomNumbers(3)
  const spoken = voice(2, 2, 16_000)
  const faint = Float32Array.from(
    { length: spoken.length / 2 },
    (_, i) => spoken.readInt16LE(2 * i) / 160_000 + random.normal() * 0.015,
  )
  const started = async (threshold: number): Promise<number> => {
    const client = await ConversationClient.open(node)
    client.update({ audio: { input: { turn_detection: { type: "server_vad", threshold } } } })
    const { session } = await client.nth("session.updated")
    expect(session).toMatchObject({ audio: { input: { turn_detection: { threshold } } } })
    await client.speak(pcm24(faint))
    client.send({ type: "conversation.item.retrieve", item_id: "none" })
    await client.nth("error")
    client.close()
    return client.of("input_audio_buffer.speech_started").length
  }
  expect(await started(0.01)).toBe(1)
  expect(await started(1)).toBe(0)
})

/** Whether each answer has ended before the next one began. */
const oneAtATime = (client: ConversationClient): boolean =>
  client.types
    .filter((type) => type === "response.created" || type === "response.done")
    .every((type, at) => type === (at % 2 === 0 ? "response.created" : "response.done"))

it("an answer that the client asks for as its turn ends comes after the turn's own, or is refused", async () => {
  for (const lateMs of [0, 10, 40]) {
    const client = await ConversationClient.open(node)
    client.update({ audio: { input: { turn_detection: { type: "server_vad", silence_duration_ms: 200 } } } })
    await client.speak(Buffer.concat([Buffer.alloc(24_000), voice(1), Buffer.alloc(24_000)]))
    await client.nth("input_audio_buffer.committed")
    await new Promise((resolve) => setTimeout(resolve, lateMs))
    client.send({ type: "response.create", event_id: "mine" })
    await client.client.until(() => client.of("response.done").length + client.of("error").length === 2)
    for (const { error } of client.of("error"))
      expect(error).toMatchObject({
        code: "conversation_already_has_active_response",
        event_id: "mine",
      })
    expect(oneAtATime(client)).toBe(true)
    expect(brokenOrders(client.client.frames)).toEqual([])
    client.close()
  }
})

it("turns that do not interrupt an answer are not answered twice", async () => {
  const client = await ConversationClient.open(node)
  const turn_detection = { type: "server_vad", silence_duration_ms: 100, interrupt_response: false }
  client.update({ output_modalities: ["text"], audio: { input: { turn_detection } } })
  const turn = Buffer.concat([voice(0.5), Buffer.alloc(19_200)])
  await client.speak(Buffer.concat([Buffer.alloc(24_000), turn, turn, turn]))
  await client.nth("input_audio_buffer.committed", 2)
  await client.nth("response.done")
  client.send({ type: "conversation.item.retrieve", item_id: "none" })
  await client.nth("error")
  expect(client.of("error").map(({ error }) => error.code)).toEqual(["item_retrieve_invalid_item_id"])
  expect(oneAtATime(client)).toBe(true)
  client.close()
})

it("turns that the server finds from now on begin with speech_started, in whole milliseconds, also in audio that has begun", async () => {
  const client = await ConversationClient.open(node)
  const turns = (turn_detection: object | null) => client.update({ audio: { input: { turn_detection } } })
  turns(null)
  // Not a whole number of milliseconds.
  await client.speak(Buffer.concat([voice(0.7), Buffer.alloc(14)]))
  turns({ type: "server_vad", create_response: false, silence_duration_ms: 200 })
  await client.speak(Buffer.concat([voice(1), Buffer.alloc(24_000)]))
  const stopped = await client.nth("input_audio_buffer.speech_stopped")
  const [started] = client.of("input_audio_buffer.speech_started")
  expect(started).toMatchObject({ item_id: stopped.item_id })
  client.send({ type: "input_audio_buffer.clear" })
  await client.speak(Buffer.concat([Buffer.alloc(14_414), voice(1), Buffer.alloc(24_000)]))
  const again = await client.nth("input_audio_buffer.speech_stopped", 2)
  const positions = [
    ...client.of("input_audio_buffer.speech_started").map(({ audio_start_ms: ms }) => ms),
    stopped.audio_end_ms,
    again.audio_end_ms,
  ]
  expect(positions).toHaveLength(4)
  expect(positions.every(Number.isInteger)).toBe(true)
  client.close()
})
