// The process of calls is killed: its calls end with their reason, the gateway and other conversations go on, and new calls are taken at once.
import { afterAll, beforeAll, expect, it } from "vitest"
import { CallClient, canCall, noLibrary } from "../support/clients/CallClient.ts"
import { ConversationClient } from "../support/clients/ConversationClient.ts"
import { listener } from "../support/clients/LiveClient.ts"
import { needs, onlyWhere } from "../support/groups/Needs.ts"
import { uses } from "../support/groups/Uses.ts"
import { fakeVoice } from "../support/nodes/SpeechNode.ts"
import { fakeModel } from "../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../support/nodes/TestNode.ts"
import { childrenRunning } from "../support/process/ChildProcesses.ts"
import { freePort } from "../support/servers/FreePort.ts"

const whereCalls = canCall ? needs("linux") : onlyWhere(false, noLibrary)

let node: TestNode
beforeAll(async () => {
  uses("process", "a listening server")
  if (!canCall) return
  node = await startNode({
    models: [listener(), fakeModel, fakeVoice],
    // Its connections end with the close frame; those of uWebSockets.js some seconds later.
    settings: { webrtcPort: String(await freePort()), transport: "node" },
  })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node?.stop())

const hangUp = (location: string) =>
  node.fetch(`${location}/hangup`, { method: "POST", headers: { authorization: `Bearer ${node.keys.dev}` } })

const callProcess = () => childrenRunning("calls/peer/peerMain")

it("calls end, conversations over WebSockets go on, and new calls are taken", whereCalls, async () => {
  const callers = [await CallClient.open(node), await CallClient.open(node)]
  const other = await ConversationClient.open(node)
  const socket = new WebSocket(`${node.socketBase}/v1/realtime?call_id=${callers[0]!.id}`, [
    "realtime",
    `openai-insecure-api-key.${node.keys.dev}`,
  ])
  let close: { readonly code: number; readonly reason: string } | undefined
  socket.addEventListener("close", ({ code, reason }) => {
    close = { code, reason }
  })
  await eventually(() => socket.readyState === WebSocket.OPEN, "the sideband is open")
  const [killed] = callProcess()
  process.kill(killed!, "SIGKILL")
  const killedMs = performance.now()
  await eventually(() => close !== undefined, "the sideband ends")
  expect(close).toEqual({ code: 1011, reason: "the process of calls has ended" })
  for (const { location } of callers)
    await eventually(async () => (await hangUp(location)).status === 404, "the call has ended")
  other.update({ instructions: "Go on." })
  await other.nth("session.updated")
  await eventually(() => callProcess().some((pid) => pid !== killed), "another process of calls runs")
  // Shown, and not judged: it depends on the machine.
  console.log(`another process of calls after ${(performance.now() - killedMs).toFixed(0)} ms`)
  const again = await CallClient.make()
  let reply = await again.call(node)
  while (reply.status === 503) {
    expect(reply.headers.get("retry-after")).not.toBeNull()
    await new Promise((resolve) => setTimeout(resolve, 20))
    reply = await again.call(node)
  }
  expect(reply.status).toBe(201)
  again.send({ t: "answer", sdp: await reply.text() })
  await again.nth("session.created")
  other.close()
  for (const caller of [...callers, again]) caller.kill()
})
