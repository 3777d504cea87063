// What the model reads before a conversation asks for an answer is bounded by user, not by socket.
import { afterAll, beforeAll, expect, it } from "vitest"
import { readAhead } from "#domain/access/ReadAhead.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), fakeModel, fakeVoice] })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node.stop())

/** Requests that the text engine has ended, charged or not. */
const ended = async (): Promise<number> =>
  [...(await node.metrics())].reduce(
    (sum, [name, value]) =>
      name.startsWith("edgewise_model_requests_total") && name.includes('"fake"') ? sum + value : sum,
    0,
  )

/** Ten of them leave so little that what comes back meanwhile is enough for another one after five minutes only. */
const words = 3_150

const begin = async (nth: number): Promise<ConversationClient> => {
  const client = await ConversationClient.open(node, "gpt-realtime")
  client.update({ output_modalities: ["text"], instructions: `${nth} ${"word ".repeat(words)}` })
  await client.nth("session.updated")
  return client
}

it("two dozen sockets of a user have the allowance of one, and an answer brings its prompt back", async () => {
  const most = Math.floor(readAhead.burst / words)
  const clients: Array<ConversationClient> = []
  for (let n = 0; n < 24; n++) clients.push(await begin(n))
  await eventually(async () => (await ended()) >= most - 3, "the first ones are read")
  const [client] = clients
  client!.say('fake:{"tokens":1,"text":"Yes."}')
  client!.send({ type: "response.create" })
  await client!.nth("response.done")
  const before = await ended()
  // And the answer.
  expect(before).toBeLessThanOrEqual(most + 1)
  clients[1]!.update({ instructions: "word ".repeat(words) })
  await eventually(async () => (await ended()) > before, "one more is read")
  for (const one of clients) one.close()
})
