// `semantic_vad` with the built-in recogniser: a silence behind a complete sentence ends the turn sooner than one behind a part of it.
import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { Resampler } from "#audio/Resampler.ts"
import { s16ToBytes } from "#domain/audio/Audio.ts"
import { heldOut, type SpokenSentence } from "../../../bench/turns/Endings.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { builtInModel } from "../../support/nodes/BuiltInModels.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel, llamaModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
let sentences: ReadonlyArray<SpokenSentence>
beforeAll(async () => {
  sentences = await Effect.runPromise(Effect.scoped(heldOut))
  const ears = builtInModel("stt-large-v3-turbo", { runtime: { load: "start" } })
  node = await startNode({
    models: [ears, fakeModel, fakeVoice, { ...llamaModel, runtime: { load: "start" } }],
  })
  await untilLoaded(node, "stt-large-v3-turbo", "fake", "fake-voice", "llama")
})
afterAll(() => node.stop())

const perMs = 16
const pcm24 = (samples: Int16Array): Buffer =>
  Buffer.from(s16ToBytes(new Resampler(16_000, 24_000).push(samples)))

const prepared = async () => {
  const metrics = await node.metrics()
  return [...metrics].reduce(
    (sum, [name, value]) => (name.includes("conversation_answers_prepared_total") ? sum + value : sum),
    0,
  )
}

/** Says this, and is silent: 120 ms, until the node has seen the words, and 2.4 s. How long the silence was that ended the turn. */
const silenceAfter = async (
  said: Int16Array,
  turns: { readonly type: string },
  model = "fake",
): Promise<number> => {
  const client = await ConversationClient.open(node, model)
  client.update({ audio: { input: { turn_detection: turns }, output: { pacing: "none" } } })
  await client.nth("session.updated")
  const before = await prepared()
  const lead = new Int16Array(300 * perMs)
  await client.speak(pcm24(Int16Array.from([...lead, ...said, ...new Int16Array(120 * perMs)])))
  // A silence of fixed length is looked into later, or not at all, where earlier answers were made soon.
  if (turns.type === "semantic_vad")
    await eventually(async () => (await prepared()) > before, "the words are known")
  await client.speak(Buffer.alloc(2_400 * 48))
  const { audio_end_ms } = await client.nth("input_audio_buffer.speech_stopped")
  client.close()
  return audio_end_ms - (300 + said.length / perMs)
}

it("ends complete sentences soon, parts of them late, and all of them by the usual silence where it is set by the client", async () => {
  const chosen = sentences.filter(({ text }) =>
    /bigger bridge|cheese needs|three simple questions/.test(text),
  )
  expect(chosen.length).toBe(3)
  const semantic = { type: "semantic_vad", eagerness: "auto" }
  const lengths: Array<{ text: string; whole: number; part: number }> = []
  for (const { cuts, samples, text } of chosen) {
    const whole = await silenceAfter(samples, semantic)
    const part = await silenceAfter(samples.subarray(0, cuts.at(-1)), semantic)
    lengths.push({ text, whole, part })
  }
  for (const { part, text, whole } of lengths) {
    expect(whole, text).toBeLessThan(part)
    expect(part, text).toBeLessThan(1_500)
  }
  expect(Math.min(...lengths.map(({ whole }) => whole))).toBeLessThan(300)
  expect(Math.max(...lengths.map(({ part }) => part))).toBeGreaterThan(700)
  const { cuts, samples } = chosen[0]!
  const server = { type: "server_vad", silence_duration_ms: 400 }
  const same = [
    await silenceAfter(samples, server),
    await silenceAfter(samples.subarray(0, cuts.at(-1)), server),
  ]
  // Where the transcript was ready before, up to half of the silence is left out (docs/conversation.md).
  for (const ms of same) {
    expect(ms).toBeGreaterThan(400 / 2 - 60)
    expect(ms).toBeLessThan(400 + 60)
  }
})

it("asks the built-in text model about each text, where the session says so", async () => {
  // On a busy machine its answer comes too late to be judged by.
  const asked = async () =>
    [...(await node.metrics())].reduce(
      (sum, [name, value]) => (/message_ends_total.*(judged|late|slow)/.test(name) ? sum + value : sum),
      0,
    )
  const { cuts, samples } = sentences.find(({ text }) => text.includes("bigger bridge"))!
  const turns = { type: "semantic_vad", language_model: 1 }
  const before = await asked()
  const whole = await silenceAfter(samples, turns, "llama")
  const part = await silenceAfter(samples.subarray(0, cuts.at(-1)), turns, "llama")
  expect(whole).toBeLessThan(part)
  expect(await asked()).toBeGreaterThan(before)
})
