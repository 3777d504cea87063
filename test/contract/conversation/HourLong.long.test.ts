// An hour of conversation in a few minutes: audio and answers go as fast as they are made, with scripted engines, and the gateway's memory
// stays where it was.
import { afterAll, beforeAll, expect, it } from "vitest"
import { voice } from "../../support/audio/Voice.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { heapAfterCollection } from "../../support/process/Heap.ts"
import { unwatchPort } from "../../support/wire/WireTap.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), fakeModel, fakeVoice] })
  await untilLoaded(node, "listener", "fake", "fake-voice")
  // The record of what sockets carry would be most of the memory.
  unwatchPort(node.port)
})
afterAll(() => node.stop())

const seconds = 3_600
/** Speech of the user in a turn, and the silence that ends it. */
const turn = Buffer.concat([voice(6), Buffer.alloc(48_000)])
const turnSeconds = turn.length / 48_000

it("keeps memory flat", async () => {
  const client = await ConversationClient.open(node)
  client.update({
    audio: {
      input: { transcription: {}, turn_detection: { type: "server_vad", silence_duration_ms: 500 } },
      output: { pacing: "none" },
    },
  })
  await client.nth("session.updated")
  const heap: Array<number> = []
  let spokenSeconds = 0
  let turns = 0
  let unheard = 0
  while (turns * turnSeconds + spokenSeconds < seconds) {
    client.client.frames.length = 0
    await client.speak(turn)
    // Answered once the audio before it was taken in, which is slower than it is sent here: what waits is bounded.
    client.update({})
    await client.nth("session.updated")
    // Audio that comes faster than it is spoken does not fit the time at which answers are played: some is taken for their echo, the more
    // the faster the machine.
    if (client.of("input_audio_buffer.speech_stopped").length === 0) {
      unheard++
      expect(unheard).toBeLessThanOrEqual(20 + turns)
      continue
    }
    await client.nth("response.done")
    expect(client.of("error")).toEqual([])
    spokenSeconds += client.audio.length / 48_000
    turns++
    if (turns % 50 === 0) heap.push(heapAfterCollection())
  }
  client.close()
  expect(heap.length).toBeGreaterThanOrEqual(6)
  // The first tenth fills caches. After that a turn leaves its words: an item of the user, an answer, and where its words begin.
  const [early] = heap.slice(1)
  const perTurn = (heap.at(-1)! - early!) / (turns - 100)
  // Of the turn's audio not a thirtieth stays.
  expect(perTurn).toBeLessThan(turn.length / 30)
})
