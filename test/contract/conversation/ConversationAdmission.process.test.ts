// How many conversations a node takes: by the measured cost of their engines, decided before the handshake is answered.
import { afterAll, beforeAll, expect, it } from "vitest"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { type Refused, SocketClient } from "../../support/clients/SocketClient.ts"
import { orgWith } from "../../support/nodes/Ledger.ts"
import { operatorKey } from "../../support/nodes/Reloading.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  // A second of speech takes 0.2 s to compute, and conversations are spoken to half of the time: one takes 0.1 of the node.
  const slow = { ...fakeVoice, options: { realTimeFactor: 0.2 } }
  node = await startNode({ models: [listener(), fakeModel, slow] })
  await untilLoaded(node, "listener", "fake", "fake-voice")
  // The measured factor is known once the voice has been used, for several seconds: then a wait of a busy machine matters little.
  const client = await ConversationClient.open(node)
  client.update({ audio: { output: { pacing: "none" } } })
  client.say(
    `fake:${JSON.stringify({ tokens: 1, text: "One two three four. Five six seven eight. Nine ten." })}`,
  )
  client.send({ type: "response.create" })
  await client.nth("response.done")
  client.close()
  await client.client.closed
})
afterAll(() => node.stop())

const connect = (key = node.keys.dev) =>
  SocketClient.connect(`${node.socketBase}/v1/realtime?model=gpt-realtime&token=${key}`)

/** Opens conversations until one is refused. */
const fill = async (key = node.keys.dev) => {
  const open: Array<SocketClient> = []
  let refused: Refused | undefined
  while (refused === undefined && open.length < 20) {
    const answer = await connect(key)
    if (answer instanceof SocketClient) open.push(answer)
    else refused = answer
  }
  return { open, refused }
}

const conversations = async (): Promise<ReadonlyArray<string>> => {
  const headers = { authorization: `Bearer ${await operatorKey(node)}` }
  const tree = await (await node.fetch("/v1/node/tree", { headers })).text()
  return tree.match(/conversation on [a-z-]+/g) ?? []
}

it("one too many is refused before the upgrade, and admitted once another has ended", async () => {
  const { open, refused } = await fill()
  expect(open.length).toBeGreaterThanOrEqual(1)
  expect(refused).toMatchObject({
    status: 503,
    body: '{"detail":"Model is at capacity"}',
    headers: { "retry-after": "5" },
  })
  expect(await conversations()).toHaveLength(open.length)
  for (const client of open) client.socket.close()
  await eventually(async () => (await conversations()).length === 0, "they have left the tree")
  const next = await connect()
  expect(next).toBeInstanceOf(SocketClient)
  if (next instanceof SocketClient) next.socket.close()
})

it("conversations in which one organization says nothing leave another one its share", async () => {
  const other = await orgWith(node, "other", 1_000_000)
  const first = await fill()
  expect(first.refused?.status).toBe(503)
  const second = await fill(other)
  expect(second.open.length).toBeGreaterThanOrEqual(Math.floor(first.open.length / 2))
  // None of the first was ended for it.
  expect(await conversations()).toHaveLength(first.open.length + second.open.length)
  for (const { socket } of [...first.open, ...second.open]) socket.close()
  await eventually(async () => (await conversations()).length === 0, "they have left the tree")
})
