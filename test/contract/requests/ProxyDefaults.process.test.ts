// nginx with its defaults, which asks in HTTP/1.0, in front of a node with Node's own server: the short configuration
// of docs/proxies.md.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { TextStream } from "../../support/clients/TextStream.ts"
import { needs } from "../../support/groups/Needs.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilIdle, untilLoaded } from "../../support/nodes/TestNode.ts"
import { printedDefaults, type ReverseProxy, startProxy } from "../../support/servers/ReverseProxies.ts"

describe("behind nginx with its defaults", needs("nginx"), () => {
  let node: TestNode
  let proxy: ReverseProxy
  beforeAll(async () => {
    node = await startNode({
      tls: false,
      models: [fakeModel],
      settings: { transport: "node", trustedProxies: "127.0.0.1" },
    })
    await untilLoaded(node, "fake")
    proxy = await startProxy("nginx", node.port, printedDefaults)
  })
  afterAll(async () => {
    await proxy?.stop()
    await node?.stop()
  })

  const chat = (steps: Readonly<Record<string, unknown>>): Promise<Response> =>
    fetch(`${proxy.base}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${node.keys.dev}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "fake",
        stream: true,
        max_tokens: 4_000,
        messages: [{ role: "user", content: script(steps) }],
      }),
    })

  it("a stream arrives while the engine works on later events, and ends at the node when its client leaves", async () => {
    const stream = new TextStream(await chat({ tokens: 100, tokenMs: 200 }))
    expect((await stream.take(2)).length).toBeLessThan(80)
    expect(node.gauges("fake").open).toBe(1)
    await stream.leave()
    await untilIdle(node)
  })

  it("a stream is whole", async () => {
    const stream = new TextStream(await chat({ tokens: 300 }))
    expect(await stream.toEnd()).toBe("complete")
    expect(stream.events.at(-1)).toBe("[DONE]")
  })

  it("answers with a length, refusals and other paths are the node's", async () => {
    expect((await fetch(`${proxy.base}/health`)).status).toBe(200)
    const refused = await fetch(`${proxy.base}/v1/models`)
    expect([refused.status, refused.headers.get("content-type")]).toEqual([401, "application/json"])
    expect((await fetch(`${proxy.base}/nowhere`)).status).toBe(404)
  })

  it("a WebSocket needs the longer configuration", async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${proxy.port}/v1/realtime?token=${node.keys.dev}`)
    const event = await new Promise((resolve) => {
      socket.onopen = () => resolve("open")
      socket.onerror = () => resolve("error")
    })
    expect(event).toBe("error")
  })
})
