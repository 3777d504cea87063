// Random clients of a conversation: whatever they send, and when, the rules of order hold, every answer ends once with a usage, and the
// history is what was said.
import fc from "fast-check"
import { afterAll, beforeAll, it } from "vitest"
import { voice } from "../../support/audio/Voice.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { brokenOrders } from "../../support/wire/ConversationOrders.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({
    models: [listener(), fakeModel, fakeVoice],
    settings: { rateLimit: "0" },
  })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node.stop())

const texts = [
  { tokens: 3, tokenMs: 2, text: " Some words." },
  { tokens: 1, text: "A sentence here. Another one, longer. And the last." },
  { tokens: 4, tokenMs: 5, failAt: 3 },
  { tokens: 1, text: "Look.", calls: [{ name: "look", arguments: {} }] },
] as const

const action = fc.oneof(
  { weight: 4, arbitrary: fc.record({ is: fc.constant("say" as const), which: fc.nat(texts.length - 1) }) },
  {
    weight: 4,
    arbitrary: fc.record({ is: fc.constant("create" as const), beside: fc.boolean(), written: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ is: fc.constant("cancel" as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      is: fc.constant("speak" as const),
      seed: fc.nat(5),
      tenths: fc.integer({ min: 1, max: 12 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ is: fc.constant("commit" as const) }) },
  { weight: 1, arbitrary: fc.record({ is: fc.constant("clear" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ is: fc.constant("truncate" as const), nth: fc.nat(6), ms: fc.nat(3_000) }),
  },
  { weight: 1, arbitrary: fc.record({ is: fc.constant("delete" as const), nth: fc.nat(6) }) },
  {
    weight: 2,
    arbitrary: fc.record({ is: fc.constant("update" as const), turns: fc.boolean(), paced: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ is: fc.constant("wait" as const), ms: fc.nat(120) }) },
)
type Action = typeof action extends fc.Arbitrary<infer A> ? A : never

const itemIds = (client: ConversationClient): ReadonlyArray<string> =>
  client.of("conversation.item.added").map(({ item }) => String(item.id))

const perform = async (client: ConversationClient, step: Action): Promise<void> => {
  const ids = itemIds(client)
  switch (step.is) {
    case "say":
      return client.say(`fake:${JSON.stringify(texts[step.which])}`)
    case "create":
      return client.send({
        type: "response.create",
        response: {
          ...(step.beside ? { conversation: "none" } : {}),
          ...(step.written ? { output_modalities: ["text"] } : {}),
        },
      })
    case "cancel":
      return client.send({ type: "response.cancel" })
    case "speak":
      return client.speak(
        Buffer.concat([Buffer.alloc(4_800), voice(step.tenths / 15, step.seed), Buffer.alloc(24_000)]),
      )
    case "commit":
      return client.send({ type: "input_audio_buffer.commit" })
    case "clear":
      return client.send({ type: "input_audio_buffer.clear" })
    case "truncate":
      return client.send({
        type: "conversation.item.truncate",
        item_id: ids[step.nth] ?? "none",
        content_index: 0,
        audio_end_ms: step.ms,
      })
    case "delete":
      return client.send({ type: "conversation.item.delete", item_id: ids[step.nth] ?? "none" })
    case "update":
      return client.update({
        tools: [{ type: "function", name: "look" }],
        audio: {
          input: {
            transcription: { model: "whisper-1" },
            turn_detection: step.turns ? { type: "server_vad", silence_duration_ms: 200 } : null,
          },
          output: { pacing: step.paced ? "realtime" : "none" },
        },
      })
    case "wait":
      return new Promise((resolve) => setTimeout(resolve, step.ms))
  }
}

/** Waits until no answer is being given: an event that is answered last, twice, with all answers ended between. */
const untilQuiet = async (client: ConversationClient): Promise<void> => {
  client.update({ audio: { input: { turn_detection: null }, output: { pacing: "none" } } })
  for (let round = 0; round < 2; round++) {
    client.send({ type: "response.create", response: { output_modalities: ["text"] } })
    client.send({ type: "response.cancel" })
    const created = () => client.of("response.created").length
    await client.client.until(() => client.of("response.done").length === created())
    client.send({ type: "conversation.item.retrieve", event_id: `quiet${round}`, item_id: "none" })
    await client.client.until((frames) =>
      frames.some(({ error }) => (error as { event_id?: string } | undefined)?.event_id === `quiet${round}`),
    )
    await client.client.until(() => client.of("response.done").length === created())
  }
}

// Four at the same time, ten histories each: most of the time they wait.
it.concurrent.for([1, 2, 3, 4])(
  "keep the rules of order, whatever they send (%i)",
  { timeout: 300_000 },
  async (_, { expect }) => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 1, maxLength: 14 }), async (steps) => {
        const client = await ConversationClient.open(node)
        try {
          for (const step of steps) await perform(client, step)
          await untilQuiet(client)
          const { frames } = client.client
          expect(brokenOrders(frames)).toEqual([])
          // Each answer of the conversation has an item for each of its outputs.
          const known = new Set(itemIds(client))
          for (const { response } of client.of("response.done"))
            for (const item of response.output ?? [])
              if (response.conversation_id !== null) expect(known.has(String(item.id))).toBe(true)
        } finally {
          client.close()
        }
      }),
      { numRuns: 10 },
    )
  },
)
