// A session that goes on is charged for its audio so far from time to time, so that a node that is killed loses little: its receipts
// together are what one for all of it would be. The time is five minutes; here it is short.
import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import {
  deltas,
  lastWord,
  listener,
  liveAddress,
  noise,
  speak,
  untilCaptionsAreCheap,
} from "../../support/clients/LiveClient.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { metered } from "../../support/clients/TranscriptionClient.ts"
import { eventually, startNode, type TestNode, untilIdle } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener()], settleEveryMs: 200 })
  await untilCaptionsAreCheap(node, "listener")
})
afterAll(() => node.stop())

it("a long session has several receipts, and costs what it costs", async () => {
  const { apiKey: token } = await node.run(
    Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "long" })),
  )
  const client = await SocketClient.open(liveAddress(node, { token }))
  for (const part of [1, 2]) {
    speak(client, noise(3, part))
    await client.until(() => deltas(client).at(-1)?.audio_ms === part * 3_000)
    // The session goes on, and no part is charged twice.
    await eventually(
      async () => (await metered(node, "long")).audioMs === part * 3_000,
      "the part is charged",
    )
  }
  speak(client, noise(1.5))
  client.send({ type: "stop" })
  expect((await lastWord(client)).type).toBe("transcript.text.done")
  await client.closed
  await untilIdle(node)
  const { audioMs, requests } = await metered(node, "long")
  expect(audioMs).toBe(7_500)
  expect(requests).toBeGreaterThanOrEqual(3)
})
