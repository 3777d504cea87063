// Stopping a node, as a process: running requests are finished, new ones refused, the drain time is kept, and nothing is
// left behind, neither a process nor an unpaid token.
import { afterEach, describe, expect, it } from "vitest"
import { parseEventStream } from "../support/clients/EventStream.ts"
import { SocketClient } from "../support/clients/SocketClient.ts"
import { TextStream } from "../support/clients/TextStream.ts"
import { inLong } from "../support/groups/Runs.ts"
import { script } from "../support/nodes/FakeNode.ts"
import { edgewise, type NodeProcess, processLoaded, startProcess } from "../support/nodes/NodeProcess.ts"
import { eventually, parseMetrics } from "../support/nodes/TestNode.ts"
import { childrenRunning, isRunning, signalIfRunning } from "../support/process/ChildProcesses.ts"

const running: Array<NodeProcess> = []
const start = async (env: Readonly<Record<string, string>> = {}): Promise<NodeProcess> => {
  const node = await startProcess({ env })
  running.push(node)
  await processLoaded(node, "fake")
  return node
}
afterEach(async () => {
  for (const node of running.splice(0)) await node.dispose()
})

const metrics = async (node: NodeProcess) => parseMetrics(await (await fetch(`${node.base}/metrics`)).text())
const post = (node: NodeProcess, steps: object, more: object = {}) =>
  fetch(`${node.base}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${node.devKey}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "fake",
      max_tokens: 4096,
      messages: [{ role: "user", content: script({ ...steps }) }],
      ...more,
    }),
  })
const open = async (node: NodeProcess, steps: object): Promise<TextStream> => {
  const stream = new TextStream(await post(node, steps, { stream: true }))
  await stream.take(1)
  return stream
}

/** Process ids of a process's children; from /proc, where there is one. */
const childrenOf = (pid: number): ReadonlyArray<number> =>
  process.platform !== "linux" ? [] : childrenRunning("", pid)

/** Resolves once the node has logged that it is stopping. */
const draining = (node: NodeProcess) => eventually(() => node.stderr().includes('"draining"'), "it drains")

/** A reply that goes on when its engine gets a signal. */
const held = { tokens: 200, tokenMs: 2, signalAt: 100 }

describe("SIGTERM", () => {
  it("lets sixteen streams and a whole answer finish, refuses what is new, charges all, and exits 0", async () => {
    const node = await start({ EDGEWISE_DRAIN_SECONDS: "60" })
    const children = childrenOf(node.pid)
    const streams = await Promise.all(Array.from({ length: 14 }, () => open(node, held)))
    const whole = post(node, { ...held, text: "w" })
    const socket = await SocketClient.open(
      `${node.base.replace("http", "ws")}/v1/completions/ws?token=${node.devKey}`,
    )
    socket.send({
      model: "fake",
      prompt: script(held),
      max_tokens: 4096,
      request_id: 1,
    })
    await eventually(async () => (await metrics(node)).get("edgewise_requests_in_flight") === 16, "all run")

    node.signal("SIGTERM")
    await draining(node)
    const refused = await post(node, { tokens: 1 })
    expect(refused.status).toBe(503)
    expect(await refused.json()).toEqual({ detail: "Server is shutting down" })
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    const health = await fetch(`${node.base}/health`)
    expect([health.status, ((await health.json()) as { status: string }).status]).toEqual([503, "unhealthy"])
    // Again and again: a slow engine may not have read the last requests at the first signal.
    const signalling = setInterval(() => {
      for (const engine of childrenRunning("engineMain", node.pid)) signalIfRunning(engine, "SIGUSR2")
    }, 50)
    const ends = Promise.all([...streams.map((stream) => stream.toEnd()), whole, socket.end(1)])
    await ends.finally(() => clearInterval(signalling))
    for (const stream of streams) {
      expect(stream.ended).toBe("complete")
      expect(stream.events).toHaveLength(202)
      expect(stream.events.at(-1)).toBe("[DONE]")
    }
    expect(await (await whole).json()).toMatchObject({ choices: [{ message: { content: "w".repeat(200) } }] })
    expect(await socket.end(1)).toMatchObject({ type: "done", usage: { completion_tokens: 200 } })
    expect((await socket.closed).code).toBe(1001)
    expect(await node.exited).toEqual([0, null])
    expect(children.length).toBeGreaterThan(process.platform === "linux" ? 0 : -1)
    expect(children.filter(isRunning)).toEqual([])
    expect(node.stderr()).not.toContain(node.devKey)
    expect(node.stderr()).not.toMatch(/"level":"(ERROR|FATAL)"| {4}at /)

    const usage = await edgewise(["usage", "--org", "dev", "--json"], { EDGEWISE_DATA_DIR: node.dataDir })
    expect(JSON.parse(usage.stdout)).toMatchObject({ usage: [{ requests: 16, output_tokens: 16 * 200 }] })
  })

  it("cuts what is not done when the drain time is over, and still exits 0", async () => {
    const node = await start({ EDGEWISE_DRAIN_SECONDS: "1" })
    const endless = await open(node, { tokens: 4000, tokenMs: 20 })
    const children = childrenOf(node.pid)
    const startMs = performance.now()
    node.signal("SIGTERM")
    expect(await endless.toEnd()).toBe("cut")
    expect(endless.events).not.toContain("[DONE]")
    expect(performance.now() - startMs).toBeGreaterThan(900)
    expect(await node.exited).toEqual([0, null])
    expect(children.filter(isRunning)).toEqual([])
  })

  it("with nothing to do exits 0 at once, idle connections or not", async () => {
    const node = await start({ EDGEWISE_DRAIN_SECONDS: "3600" })
    const socket = await SocketClient.open(
      `${node.base.replace("http", "ws")}/v1/completions/ws?token=${node.devKey}`,
    )
    expect((await fetch(`${node.base}/health`)).status).toBe(200)
    node.signal("SIGINT")
    expect(await node.exited).toEqual([0, null])
    expect((await socket.closed).code).toBe(1001)
  })
})

it("a second signal ends it at once, engines included", async () => {
  const node = await start({ EDGEWISE_DRAIN_SECONDS: "3600" })
  const endless = await open(node, { tokens: 4000, tokenMs: 20 })
  const children = childrenOf(node.pid)
  node.signal("SIGTERM")
  await draining(node)
  await endless.take(endless.events.length + 3)
  node.signal("SIGTERM")
  expect(await node.exited).toEqual([1, null])
  expect(await endless.toEnd()).toBe("cut")
  await eventually(() => !children.some(isRunning), "its engines have ended")
})

it("an event stream that was draining is whole to the byte", inLong, async () => {
  const node = await start()
  const response = await post(node, { tokens: 100, tokenMs: 5, text: ["a\n", "ü"] }, { stream: true })
  node.signal("SIGTERM")
  const events = parseEventStream(await response.text())
  expect(events).toHaveLength(102)
  expect(events.at(-1)).toBe("[DONE]")
  expect(await node.exited).toEqual([0, null])
})
