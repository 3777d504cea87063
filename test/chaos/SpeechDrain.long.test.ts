// Stopping a node while it speaks: a stream is finished, also a reply still being sent to a slow reader, and new
// requests are refused.
import { afterAll, beforeAll, expect, it } from "vitest"
import { RawConnection, requestBytes } from "../support/clients/RawHttp.ts"
import { type NodeProcess, startProcess } from "../support/nodes/NodeProcess.ts"
import { fakeVoice, scriptSamples, speechPath, spokenScript } from "../support/nodes/SpeechNode.ts"
import { fakeModel } from "../support/nodes/TestCatalog.ts"
import { eventually } from "../support/nodes/TestNode.ts"

let node: NodeProcess
beforeAll(async () => {
  node = await startProcess({ models: [fakeModel, fakeVoice], env: { EDGEWISE_DRAIN_SECONDS: "30" } })
})
afterAll(() => node.dispose())

const ask = async (body: object): Promise<RawConnection> => {
  const connection = await RawConnection.open(node.port)
  const headers = { authorization: `Bearer ${node.devKey}`, "content-type": "application/json" }
  const request = { model: "fake-voice", voice: "fake", ...body }
  await connection.send(requestBytes("POST", speechPath, headers, JSON.stringify(request)))
  return connection
}

it("finishes a stream and a reply that waits for its reader, and exits 0", async () => {
  // More than the system buffers for a reader that reads nothing.
  const large = { pieces: 250, samples: 24_000 }
  const slow = await ask({ input: spokenScript(large) })
  await slow.bytes(1_000)
  slow.socket.pause()
  const steps = { pieces: 60, samples: 2_400, pieceMs: 20 }
  const stream = await ask({ input: spokenScript(steps), stream: true })
  await stream.bytes(1_000)
  const late = await RawConnection.open(node.port)
  node.signal("SIGTERM")
  await eventually(() => /draining/.test(node.stderr()), "the node says that it is draining")
  await late.send(
    requestBytes(
      "POST",
      speechPath,
      { authorization: `Bearer ${node.devKey}`, "content-type": "application/json" },
      JSON.stringify({ model: "fake-voice", voice: "fake", input: "Hello." }),
    ),
  )
  expect((await late.response()).status).toBe(503)
  const whole = await stream.response()
  expect([whole.status, whole.complete]).toEqual([200, true])
  expect(whole.body.equals(scriptSamples(steps))).toBe(true)
  slow.socket.resume()
  const reply = await slow.response()
  expect([reply.status, reply.complete]).toEqual([200, true])
  expect(reply.body.length).toBe(250 * 48_000)
  expect(await node.exited).toEqual([0, null])
})
