// Answers that are prepared while a silence may still be a pause: sent at once when the turn ends, and where it does not, no event
// tells of them and nothing is charged. Audio comes at the pace at which it is spoken.
import { afterAll, beforeAll, expect, it } from "vitest"
import { voice } from "../../support/audio/Voice.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { orgWith, textRequestsOf } from "../../support/nodes/Ledger.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { brokenOrders } from "../../support/wire/ConversationOrders.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), fakeModel, fakeVoice] })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node.stop())

const speech = (ms: number): Buffer => voice(ms / 1000)
const silence = (ms: number) => Buffer.alloc(ms * 48)

const silenceMs = 600
/** `key`: of an organization of its own where charges are counted, which come a moment after an answer has ended. */
const opened = async (session: Readonly<Record<string, unknown>> = {}, key = node.keys.dev) => {
  const client = await ConversationClient.open(node, "gpt-realtime", key)
  client.update({
    include: ["response.latency"],
    audio: {
      input: { turn_detection: { type: "server_vad", silence_duration_ms: silenceMs } },
      output: { pacing: "none" },
    },
    ...session,
  })
  await client.nth("session.updated")
  return client
}

interface Latency {
  readonly type: string
  readonly response_id: string
  readonly prepared: boolean
  readonly silence_ms: number | null
  readonly first_sent_ms: number | null
  readonly total_ms: number
}
const latencies = (client: ConversationClient): ReadonlyArray<Latency> =>
  client.client.frames.filter(({ type }) => type === "response.latency") as unknown as ReadonlyArray<Latency>

/** A turn and its answer. On a busy machine the answer may not be prepared in time: then the turn is said again by another organization. */
const answeredAsPrepared = async () => {
  for (let n = 0; ; n++) {
    const org = `prepared-${n}`
    const client = await opened({}, await orgWith(node, org, 1_000_000))
    await client.speak(Buffer.concat([silence(200), speech(800), silence(silenceMs + 200)]), true)
    const { response } = await client.nth("response.done")
    await client.client.until(() => latencies(client).length === 1)
    const [latency] = latencies(client)
    if (latency!.prepared) return { client, latency, org, response }
    client.close()
  }
}

it("are sent when the silence ends the turn, charged once, and say where the time went", async () => {
  const { client, latency, org, response } = await answeredAsPrepared()
  expect(latency).toMatchObject({ response_id: response.id, prepared: true, silence_ms: silenceMs })
  expect(latency!.first_sent_ms).toBeLessThanOrEqual(latency!.total_ms)
  expect(response.status).toBe("completed")
  const types = client.types
  expect(types.indexOf("response.created")).toBeGreaterThan(types.indexOf("input_audio_buffer.committed"))
  expect(brokenOrders(client.client.frames.filter(({ type }) => type !== "response.latency"))).toEqual([])
  await expect.poll(() => textRequestsOf(node, org)).toBe(1)
  client.close()
})

it("are dropped where speech goes on: the answer is to the whole turn, and only it is charged", async () => {
  const input = {
    transcription: {},
    turn_detection: { type: "server_vad", silence_duration_ms: silenceMs },
  }
  const key = await orgWith(node, "went-on", 1_000_000)
  const client = await opened({ audio: { input, output: { pacing: "none" } } }, key)
  const pause = silence(silenceMs - 150)
  const words = Buffer.concat([silence(200), speech(600), pause, speech(500), pause, speech(700)])
  await client.speak(words, true)
  // An answer was prepared in each pause, and nothing tells of it.
  expect(client.types.filter((type) => type.startsWith("response."))).toEqual([])
  await client.speak(silence(silenceMs + 200), true)
  await client.nth("response.done")
  expect(client.of("response.created")).toHaveLength(1)
  expect(client.of("input_audio_buffer.speech_started")).toHaveLength(1)
  expect(client.of("conversation.item.input_audio_transcription.completed")).toHaveLength(1)
  await expect.poll(() => textRequestsOf(node, "went-on")).toBe(1)
  client.close()
})

it("are made anew where the session has changed since", async () => {
  const client = await opened()
  await client.speak(Buffer.concat([silence(200), speech(800), silence(silenceMs - 150)]), true)
  client.update({ max_output_tokens: 7 })
  await client.speak(silence(400), true)
  const { response } = await client.nth("response.done")
  expect(response.max_output_tokens).toBe(7)
  expect(client.of("response.created")).toHaveLength(1)
  client.close()
})

it("cost nothing where the client leaves before the turn ends", async () => {
  const key = await orgWith(node, "left", 1_000_000)
  const client = await opened({}, key)
  await client.speak(Buffer.concat([silence(200), speech(800), silence(silenceMs - 150)]), true)
  client.close()
  // A later answer is the only one that is charged.
  const other = await opened({ output_modalities: ["text"] }, key)
  other.say("hello")
  other.send({ type: "response.create" })
  await other.nth("response.done")
  await expect.poll(() => textRequestsOf(node, "left")).toBe(1)
  other.close()
})

it("are not told of to clients that did not ask where the time went", async () => {
  const client = await opened({ include: null })
  await client.speak(Buffer.concat([silence(200), speech(800), silence(silenceMs + 200)]), true)
  await client.nth("response.done")
  client.update({})
  await client.nth("session.updated", 2)
  expect(latencies(client)).toEqual([])
  client.close()
})
