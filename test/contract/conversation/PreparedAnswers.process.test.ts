// Answers that are prepared while a silence may still be a pause: sent at once when the turn ends, and where it does not, no event
// tells of them and nothing is charged. Audio comes at the pace at which it is spoken.
import { afterAll, beforeAll, it } from "vitest"
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
const opened = async (session: Readonly<Record<string, unknown>> = {}, key?: string) => {
  const client = await ConversationClient.open(node, undefined, key)
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

it.concurrent(
  "are sent when the silence ends the turn, charged once, and say where the time went",
  async ({ expect }) => {
    const client = await opened({}, await orgWith(node, "prepared", 1_000_000))
    let turns = 0
    do {
      turns++
      await client.speak(Buffer.concat([silence(200), speech(800), silence(silenceMs + 200)]), true)
      await client.client.until(() => latencies(client).length === turns)
      // On a busy machine an answer may begin only when the turn has ended; then the user says it again.
    } while (latencies(client).at(-1)?.prepared === false && turns < 10)
    const { response } = await client.nth("response.done", turns)
    const latency = latencies(client).at(-1)
    expect(latency).toMatchObject({ response_id: response.id, prepared: true, silence_ms: silenceMs })
    expect(latency!.first_sent_ms).toBeLessThanOrEqual(latency!.total_ms)
    expect(response.status).toBe("completed")
    const types = client.types
    expect(types.lastIndexOf("response.created")).toBeGreaterThan(
      types.lastIndexOf("input_audio_buffer.committed"),
    )
    expect(brokenOrders(client.client.frames.filter(({ type }) => type !== "response.latency"))).toEqual([])
    await expect.poll(() => textRequestsOf(node, "prepared")).toBe(turns)
    client.close()
  },
)

it.concurrent(
  "are dropped where speech goes on: the answer is to the whole turn, and only it is charged",
  async ({ expect }) => {
    const audio = {
      input: {
        transcription: {},
        turn_detection: { type: "server_vad", silence_duration_ms: silenceMs },
      },
      output: { pacing: "none" },
    }
    const client = await opened({ audio }, await orgWith(node, "dropped", 1_000_000))
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
    await expect.poll(() => textRequestsOf(node, "dropped")).toBe(1)
    client.close()
  },
)

it.concurrent("are made anew where the session has changed since", async ({ expect }) => {
  const client = await opened()
  await client.speak(Buffer.concat([silence(200), speech(800), silence(silenceMs - 150)]), true)
  client.update({ max_output_tokens: 7 })
  await client.speak(silence(400), true)
  const { response } = await client.nth("response.done")
  expect(response.max_output_tokens).toBe(7)
  expect(client.of("response.created")).toHaveLength(1)
  client.close()
})

it.concurrent("cost nothing where the client leaves before the turn ends", async ({ expect }) => {
  const key = await orgWith(node, "leaves", 1_000_000)
  const client = await opened({}, key)
  await client.speak(Buffer.concat([silence(200), speech(800), silence(silenceMs - 150)]), true)
  client.close()
  // A later answer is the only one that is charged.
  const other = await opened({ output_modalities: ["text"] }, key)
  other.say("hello")
  other.send({ type: "response.create" })
  await other.nth("response.done")
  await expect.poll(() => textRequestsOf(node, "leaves")).toBe(1)
  other.close()
})

it.concurrent("are not told of to clients that did not ask where the time went", async ({ expect }) => {
  const client = await opened({ include: null })
  await client.speak(Buffer.concat([silence(200), speech(800), silence(silenceMs + 200)]), true)
  await client.nth("response.done")
  client.update({})
  await client.nth("session.updated", 2)
  expect(latencies(client)).toEqual([])
  client.close()
})
