// A defect of the node in one conversation of several: that one is told and closed, its engines are free, it is counted, and the
// others go on as if nothing had happened.
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest"
import { Warming } from "#api/conversation/Warming.ts"
import { History } from "#domain/conversation/History.ts"
import { ConversationClient } from "../support/clients/ConversationClient.ts"
import { listener } from "../support/clients/LiveClient.ts"
import { operatorKey } from "../support/nodes/Reloading.ts"
import { fakeVoice } from "../support/nodes/SpeechNode.ts"
import { fakeModel } from "../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilIdle, untilLoaded } from "../support/nodes/TestNode.ts"
import { brokenOrders } from "../support/wire/ConversationOrders.ts"

let node: TestNode
/** Conversations without a defect, which answer throughout. */
let others: ReadonlyArray<ConversationClient>
beforeAll(async () => {
  node = await startNode({ models: [listener({}, { runtime: { load: "start" } }), fakeModel, fakeVoice] })
  await untilLoaded(node, "listener", "fake", "fake-voice")
  others = await Promise.all(Array.from({ length: 3 }, speaking))
})
afterAll(() => node.stop())
afterEach(() => vi.restoreAllMocks())

/** 8 sentences, each of which becomes 0.6 s of speech: the answers are being given while the defects strike. */
const text = Array.from({ length: 8 }, (_, at) => `Sentence number ${at} is here.`).join(" ")
const crashes = async () => (await node.metrics()).get("edgewise_conversation_crashes_total")

const conversations = async (): Promise<number> => {
  const headers = { authorization: `Bearer ${await operatorKey(node)}` }
  const tree = await (await node.fetch("/v1/node/tree", { headers })).text()
  return tree.match(/conversation on [a-z-]+/g)?.length ?? 0
}

/** A conversation in the middle of an answer. */
const speaking = async (): Promise<ConversationClient> => {
  const client = await ConversationClient.open(node)
  client.say(`fake:${JSON.stringify({ tokens: 1, text })}`)
  client.send({ type: "response.create" })
  await client.nth("response.output_audio.delta", 2)
  return client
}

const defects: ReadonlyArray<
  readonly [
    where: string,
    break_: (struck: ConversationClient) => void,
    strike: (client: ConversationClient) => void,
  ]
> = [
  [
    "in the fiber that reads its events",
    () => {
      const { item } = History.prototype
      vi.spyOn(History.prototype, "item").mockImplementation(function (this: History, id) {
        if (id === "defect") throw new Error("injected")
        return item.call(this, id)
      })
    },
    (client) => client.send({ type: "conversation.item.retrieve", item_id: "defect" }),
  ],
  [
    "in a fiber beside it",
    (struck) => {
      const { expect: own } = Warming.prototype
      const [added] = struck.of("conversation.item.added")
      // Items that cannot be read: the fiber that reads them ahead dies of it.
      const unreadable = new Proxy([], {
        get: () => {
          throw new Error("injected")
        },
      })
      // In that conversation alone: the others read ahead, too, whenever their answers end.
      vi.spyOn(Warming.prototype, "expect").mockImplementation(function (this: Warming, items) {
        own.call(this, items.some(({ id }) => id === added!.item.id) ? unreadable : items)
      })
    },
    (client) => client.update({ instructions: "Be brief." }),
  ],
]

it.each(defects)("%s", async (_where, break_, strike) => {
  const before = await crashes()
  const struck = await speaking()
  expect(await conversations()).toBe(4)
  break_(struck)
  strike(struck)
  expect(await struck.client.closed).toEqual({ code: 1011, reason: "failed" })
  expect(struck.of("error").map(({ error }) => error)).toEqual([
    {
      type: "server_error",
      code: "internal_error",
      message: "Internal server error",
      param: null,
      event_id: null,
    },
  ])
  await eventually(async () => (await conversations()) === 3, "it has left the tree")
  expect(await crashes()).toBe((before ?? 0) + 1)
})

it("the others go on as if nothing had happened", async () => {
  for (const other of others) {
    expect((await other.nth("response.done")).response).toMatchObject({
      status: "completed",
      output: [{ content: [{ transcript: text }] }],
    })
    expect(other.of("error")).toEqual([])
    expect(brokenOrders(other.client.frames)).toEqual([])
    other.close()
    expect((await other.client.closed).code).toBe(1005)
  }
  await untilIdle(node)
  expect(await conversations()).toBe(0)
  expect((await node.fetch("/health")).status).toBe(200)
})
