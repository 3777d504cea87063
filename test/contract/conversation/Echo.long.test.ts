// A client without headphones: its microphone hears what it plays. The answer's echo does not interrupt the answer, the user does. In
// real time: the echo comes when the audio is played.
import { afterAll, beforeAll, expect, it } from "vitest"
import { bytesToS16, s16ToBytes } from "#domain/audio/Audio.ts"
import { voice } from "../../support/audio/Voice.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { builtInModel } from "../../support/nodes/BuiltInModels.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), fakeModel, builtInModel("tts-82m")] })
  await untilLoaded(node, "listener", "fake", "tts-82m")
})
afterAll(() => node.stop())

const text =
  "The library opens at nine in the morning. Bring the books that you have read, and a card with your name. " +
  "The children's room is on the second floor, next to the window."

const rateHz = 24_000
const frameMs = 20
const frame = (rateHz * frameMs) / 1000
/** From the arrival of audio to its echo. */
const delayMs = 140
/** -20 dB */
const gain = 0.1

/** Plays what comes, and sends for so long what a microphone hears: the echo, and from a time on the user. */
const listen = async (
  client: ConversationClient,
  forMs: number,
  user?: { fromMs: number; pcm: Int16Array },
) => {
  const heard = new Float64Array((rateHz * (forMs + 20_000)) / 1000)
  let [taken, playedTo] = [0, 0]
  const startMs = performance.now()
  for (let at = 0; at < (forMs * rateHz) / 1000; at += frame) {
    const waitMs = startMs + (at / frame) * frameMs - performance.now()
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
    const all = client.of("response.output_audio.delta")
    for (; taken < all.length; taken++) {
      const samples = bytesToS16(Buffer.from(all[taken]!.delta, "base64"))
      playedTo = Math.max(playedTo, at)
      samples.forEach((sample, i) => {
        heard[playedTo + (delayMs * rateHz) / 1000 + i] = sample * gain
      })
      playedTo += samples.length
    }
    const userAt = at - ((user?.fromMs ?? 0) * rateHz) / 1000
    const samples = Int16Array.from({ length: frame }, (_, i) =>
      Math.round(heard[at + i]! + (user?.pcm[userAt + i] ?? 0) * 0.7),
    )
    client.send({
      type: "input_audio_buffer.append",
      audio: Buffer.from(s16ToBytes(samples)).toString("base64"),
    })
  }
}

const begin = async () => {
  const client = await ConversationClient.open(node)
  client.say(`fake:${JSON.stringify({ tokens: 1, text })}`)
  client.send({ type: "response.create" })
  return client
}

it("the echo of an answer does not interrupt it", async () => {
  const client = await begin()
  await listen(client, 6_000)
  expect(client.audio.length).toBeGreaterThan(4 * 48_000)
  expect(client.of("input_audio_buffer.speech_started")).toEqual([])
  client.close()
})

it("the user does, over the echo", async () => {
  const client = await begin()
  await listen(client, 4_000, { fromMs: 2_000, pcm: bytesToS16(voice(1.5, 2)) })
  await client.nth("input_audio_buffer.speech_started")
  const { response } = await client.nth("response.done")
  expect(response).toMatchObject({ status: "cancelled", status_details: { reason: "turn_detected" } })
  client.close()
})
