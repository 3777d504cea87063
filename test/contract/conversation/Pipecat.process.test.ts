// Pipecat's sequences of events against a node: an agent with a function, interruptions found by the node and by the client, an early
// `response.create`, and the three errors that it lives through.
import { afterAll, beforeAll, expect, it } from "vitest"
import { voice } from "../../support/audio/Voice.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { PipecatClient } from "../../support/clients/PipecatClient.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { brokenOrders } from "../../support/wire/ConversationOrders.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), fakeModel, fakeVoice] })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node.stop())

const script = (steps: object) => `fake:${JSON.stringify(steps)}`
/** A minute of speech: longer than a busy machine takes to interrupt it. */
const long = Array.from({ length: 100 }, (_, at) => `word${at} here.`).join(" ")
/** The detector learns from the silence how loud the surroundings are. */
const speech = Buffer.concat([Buffer.alloc(48_000), voice(1.3), Buffer.alloc(48_000)])
const tools = [
  { type: "function", name: "get_time", description: "The time", parameters: { type: "object" } },
]
const terms = { instructions: "Be brief.", tools, call: () => ({ time: "noon" }) }

const holds = (client: PipecatClient) => {
  expect(client.fatal).toBe(undefined)
  expect(brokenOrders(client.socket.frames)).toEqual([])
  const created = client.socket.frames.filter(({ type }) => type === "response.created").length
  expect(client.done).toHaveLength(created)
}

const truncated = ({ socket }: PipecatClient): number =>
  socket.frames.filter(({ type }) => type === "conversation.item.truncated").length

const ended = (client: PipecatClient, count: number) =>
  eventually(() => client.fatal !== undefined || client.done.length >= count, `${count} answers have ended`)

it("an agent calls a function, is interrupted by speech, and answers it", async () => {
  const client = await PipecatClient.open(node, { ...terms, turnDetection: { type: "server_vad" } })
  client.addMessage(
    script({
      steps: [{ calls: [{ name: "get_time", arguments: { city: "Rome" } }] }, { tokens: 1, text: "Noon." }],
    }),
  )
  client.createResponse()
  // The function's result and `response.create` are sent while the answer that called has not ended.
  await ended(client, 2)
  expect(client.said.join("")).toBe("Noon.")
  client.botStopped()
  client.addMessage(script({ tokens: 1, text: long }))
  client.createResponse()
  const before = client.audioBytes
  await eventually(() => client.audioBytes > before + 20_000, "it speaks")
  client.speak(speech)
  await ended(client, 4)
  expect(client.done.map(({ status }) => status)).toEqual([
    "completed",
    "completed",
    "cancelled",
    "completed",
  ])
  expect(client.transcripts).toHaveLength(1)
  // Its `truncate` stands behind the last of the audio, which is read after the turn has ended.
  await eventually(() => truncated(client) > 0, "the interrupted answer is cut")
  expect(truncated(client)).toBe(1)
  holds(client)
  client.close()
})

it("in its manual mode it clears, cancels, truncates, commits and asks for answers itself", async () => {
  const client = await PipecatClient.open(node, { ...terms, turnDetection: false })
  client.speak(voice(2))
  client.userStopped()
  await ended(client, 1)
  client.addMessage(script({ tokens: 1, text: long }))
  client.createResponse()
  const before = client.audioBytes
  await eventually(() => client.audioBytes > before + 20_000, "it speaks")
  client.interrupt()
  await ended(client, 2)
  // Without an answer, which is the error that it expects here.
  client.interrupt()
  client.speak(voice(2, 6))
  client.userStopped()
  await ended(client, 3)
  expect(client.done.map(({ status }) => status)).toEqual(["completed", "cancelled", "completed"])
  expect(client.transcripts).toHaveLength(2)
  holds(client)
  client.close()
})

it("lives through an unknown item and an answer that is active, and through nothing else", async () => {
  const client = await PipecatClient.open(node, { ...terms, turnDetection: false })
  client.retrieve("stranger")
  await eventually(() => client.unknownItems.length === 1, "it is told so")
  expect(client.unknownItems).toEqual(["stranger"])
  client.addMessage(script({ tokens: 40, tokenMs: 20 }))
  client.createResponse()
  client.createResponse()
  await ended(client, 1)
  holds(client)
  client.close()
  const broken = await PipecatClient.open(node, {
    ...terms,
    turnDetection: { type: "server_vad", silence_duration_ms: -1 },
  })
  await eventually(() => broken.fatal !== undefined, "it has ended")
  expect(broken.fatal).toMatch(/^error: .*silence_duration_ms/)
  broken.close()
})
