// A client of uWebSockets.js that sends faster than its messages are read is closed with 1009, as this library cannot pause a WebSocket. One
// that opens the next socket for the same is refused for some time; others are not. Node's own server stops reading instead.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { droppedTraffic } from "#api/live/DroppedBytes.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { onNode, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), fakeModel, fakeVoice] })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node.stop())

const large = JSON.stringify({
  type: "conversation.item.create",
  item: {
    type: "message",
    role: "user",
    content: Array.from({ length: 10 }, () => ({ type: "input_text", text: "x".repeat(190_000) })),
  },
})

/** Sends items of 1.9 MB until the socket is closed. */
const flood = async ({ closed, socket }: SocketClient) => {
  while (socket.readyState === socket.OPEN)
    await new Promise<void>((resolve) => socket.send(large, () => resolve()))
  return closed
}

const openers = (): ReadonlyArray<readonly [string, string]> => [
  ["a conversation", `/v1/realtime?model=gpt-realtime&token=${node.keys.dev}`],
  ["a realtime transcription", `/v1/realtime?intent=transcription&token=${node.keys.dev}`],
  ["a live session", `/v1/audio/transcriptions/ws?token=${node.keys.dev}`],
  ["completions", `/v1/completions/ws?token=${node.keys.dev}`],
]

/**
 * How `path` is refused, and how the sockets ended that were filled until it was. The time to wait passes while a busy machine opens sockets,
 * so a handshake that is taken means that more has to be sent.
 */
const floodUntilRefused = async (path: string) => {
  const ended: Array<unknown> = []
  for (let tries = 0; tries < 10; tries++) {
    const answer = await SocketClient.connect(`${node.socketBase}${path}`)
    if (!(answer instanceof SocketClient)) return { refused: answer, ended }
    answer.vanish()
    const conversation = await SocketClient.connect(
      `${node.socketBase}/v1/realtime?model=gpt-realtime&token=${node.keys.dev}`,
    )
    if (conversation instanceof SocketClient) ended.push(await flood(conversation))
  }
  return { refused: undefined, ended }
}

describe.skipIf(onNode)("a client that fills one socket after the other faster than it is read", () => {
  it("is closed with 1009, and then refused with the limit and the time to wait; another user is not", async () => {
    const all: Array<unknown> = []
    for (const [name, path] of openers()) {
      const { refused, ended } = await floodUntilRefused(path)
      all.push(...ended)
      expect([name, refused]).toEqual([
        name,
        expect.objectContaining({
          status: 429,
          body: expect.stringContaining(`${droppedTraffic.burstBytes} bytes of that at once are allowed`),
          headers: expect.objectContaining({ "retry-after": expect.stringMatching(/^[1-9]\d?$/) }),
        }),
      ])
    }
    expect(all.length).toBeGreaterThanOrEqual(2)
    expect(all).toEqual(all.map(() => ({ code: 1009, reason: "messages come faster than they are read" })))
    const other = await ConversationClient.open(node, "gpt-realtime", node.keys.credit)
    other.update({ output_modalities: ["text"] })
    await other.nth("session.updated")
    other.client.vanish()
    const chat = await fetch(`${node.base}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${node.keys.dev}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "fake", messages: [{ role: "user", content: "hello" }] }),
    })
    expect(chat.status).toBe(200)
  })
})
