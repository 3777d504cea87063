// Live transcription with the built-in recogniser, over the wire: the evaluation clips one by one, and all of them in
// one long session, end in the text that `sync=true` returns for the same samples.
import { afterAll, beforeAll, expect, it } from "vitest"
import {
  captionAfter,
  clips,
  deltas,
  lastWord,
  openLive,
  speak,
  syncAnswer,
} from "../../support/clients/LiveClient.ts"
import { model, whisper } from "../../support/clients/TranscriptionClient.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { eventually, startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [whisper] })
  const loaded = `edgewise_model_loaded{model="${model}"}`
  await eventually(async () => (await node.metrics()).get(loaded) === 1, "the model is loaded")
})
afterAll(() => node.stop())

const stop = { type: "stop" }
const second = 32_000

/** One second at a time, each once the caption of the one before has arrived. */
const live = async (pcm: Buffer) => {
  const client = await openLive(node, { model })
  for (let at = 0; at < pcm.length; at += second) {
    speak(client, pcm.subarray(at, at + second), 640)
    if (at + second > pcm.length) break
    await client.until(() => deltas(client).at(-1)?.audio_ms === (at + second) / 32)
  }
  client.send(stop)
  return { word: await lastWord(client), captions: deltas(client) }
}

it("the evaluation clips", async () => {
  for (const pcm of clips.slice(0, 4)) {
    const { captions, word } = await live(pcm)
    const { language, text } = await syncAnswer(node, pcm, { model })
    expect(word).toEqual({
      type: "transcript.text.done",
      text,
      language,
      duration: pcm.length / second,
    })
    expect(captions.length).toBe(Math.floor(pcm.length / second))
  }
})

it("a long session, in one go and by the second", inLong, async () => {
  const pcm = Buffer.concat(clips.slice(4))
  const { text } = await syncAnswer(node, pcm, { model })
  const paced = await live(pcm)
  expect(paced.word.text).toBe(text)
  // Text that was marked stable stands in the final result.
  for (const { delta, op, stable_chars } of paced.captions) {
    if (op === "replace") {
      const stable = [...(delta as string)].slice(0, stable_chars as number).join("")
      expect(text.startsWith(stable)).toBe(true)
    }
  }
  expect(paced.captions.at(-1)!.stable_chars).toBeGreaterThan(text.length / 2)
  const shown = paced.captions.reduce((caption, event) => captionAfter(caption, event as never), "")
  expect(shown.length).toBeGreaterThan(text.length / 2)
  const client = await openLive(node, { model, window_s: "10" })
  speak(client, pcm, 1_000_000, 2, 77_770)
  client.send(stop)
  expect((await lastWord(client)).text).toBe(text)
})
