// What takes the floor in a conversation: speech does; music, keys and noise do not.
import { afterAll, beforeAll, expect, it } from "vitest"
import { Resampler } from "#audio/Resampler.ts"
import { s16ToBytes } from "#domain/audio/Audio.ts"
import { RandomNumbers } from "../../../bench/models/Conditions.ts"
import { rateHz, sounds } from "../../../bench/turns/Sounds.ts"
import { voice } from "../../support/audio/Voice.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), fakeModel, fakeVoice] })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node.stop())

const pcm24 = (samples: Float32Array): Buffer =>
  Buffer.from(
    s16ToBytes(new Resampler(rateHz, 24_000).push(Int16Array.from(samples, (sample) => sample * 8_000))),
  )

const text = Array.from({ length: 40 }, (_, at) => `word${at} here.`).join(" ")

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
