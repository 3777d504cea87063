// The guide's player in a browser: streamed speech through Web Audio.
import { once } from "node:events"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { closePages, sharedBrowser } from "../support/clients/Browser.ts"
import { blocksOf } from "../support/docs/GuideBlocks.ts"
import { needs } from "../support/groups/Needs.ts"
import { fakeVoice } from "../support/nodes/SpeechNode.ts"
import { startNode, type TestNode, untilLoaded } from "../support/nodes/TestNode.ts"

const files = new Map(blocksOf("docs/voice-client.md").map(({ file, text }) => [`/${file}`, text]))

let node: TestNode
let server: Server
beforeAll(async () => {
  node = await startNode({ models: [fakeVoice] })
  await untilLoaded(node, "fake-voice")
  // A page of another origin, as an application's is.
  server = createServer(({ url = "/" }, response) => {
    const type = url.endsWith(".mjs") ? "text/javascript" : "text/html"
    response
      .writeHead(200, { "content-type": type })
      .end(files.get(url) ?? "<!doctype html><title>page</title>")
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
})
afterAll(async () => {
  server.close()
  await node.stop()
})

/** What the page does; the browser gets it as text. */
const playInPage = async ({ base, key }: { readonly base: string; readonly key: string }) => {
  const { play } = globalThis as unknown as {
    readonly play: (response: Response, context: unknown, destination: unknown) => Promise<object>
  }
  const { AudioContext } = globalThis as unknown as {
    readonly AudioContext: new () => {
      readonly state: string
      readonly currentTime: number
      readonly destination: unknown
      readonly createAnalyser: () => {
        readonly connect: (to: unknown) => void
        readonly getFloatTimeDomainData: (into: Float32Array) => void
      }
    }
  }
  const context = new AudioContext()
  const analyser = context.createAnalyser()
  analyser.connect(context.destination)
  const input = `fake:${JSON.stringify({ pieces: 30, samples: 4_800, pieceMs: 20 })}`
  const response = await fetch(`${base}/v1/audio/speech`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "fake-voice", voice: "fake", input, stream: true, response_format: "pcm" }),
  })
  let endsAt = Number.POSITIVE_INFINITY
  const playing = play(response, context, analyser).then((all) => {
    endsAt = (all as { readonly endsAt: number }).endsAt
    return all
  })
  // Loudness while it plays, which it may do to its end before all of it has come.
  let loudest = 0
  const samples = new Float32Array(2_048)
  while (loudest === 0 && context.currentTime < endsAt) {
    analyser.getFloatTimeDomainData(samples)
    loudest = Math.max(...samples.map(Math.abs))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return { ...(await playing), loudest, state: context.state }
}

describe("the player of the guide", needs("browser"), () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await sharedBrowser()
  })
  afterAll(() => closePages(browser))

  it("plays a stream of another origin, and it can be heard", async () => {
    const page = await browser.newPage()
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    await page.addScriptTag({
      type: "module",
      content: 'import { play } from "/player.mjs"; globalThis.play = play',
    })
    await page.waitForFunction("globalThis.play !== undefined")
    const played = await page.evaluate(playInPage, { base: node.base, key: node.keys.dev })
    expect(played).toMatchObject({ seconds: expect.closeTo(30 * 0.2, 3), state: "running" })
    expect(played.loudest).toBeGreaterThan(0)
  })
})
