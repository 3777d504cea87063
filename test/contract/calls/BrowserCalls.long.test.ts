// OpenAI's kit of voice agents, as it is published, in a real browser and on a page of another origin: a call with a client secret, a tool, an
// interruption, muting and a reload.
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { bytesToS16 } from "#domain/audio/Audio.ts"
import { voice } from "../../support/audio/Voice.ts"
import { closePages, sharedBrowser } from "../../support/clients/Browser.ts"
import { canCall } from "../../support/clients/CallClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { has, needs, onlyWhere } from "../../support/groups/Needs.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { freePort } from "../../support/servers/FreePort.ts"
import { brokenOrders } from "../../support/wire/ConversationOrders.ts"

const withBrowser = canCall ? needs("browser") : onlyWhere(false, "the WebRTC library is not installed")
const isPossible = canCall && has("browser")

const kit = readFileSync(
  new URL(
    "../../../node_modules/@openai/agents-realtime/dist/bundle/openai-realtime-agents.umd.js",
    import.meta.url,
  ),
  "utf8",
)

let node: TestNode
let browser: Browser | undefined
beforeAll(async () => {
  if (!isPossible) return
  node = await startNode({
    models: [listener(), fakeModel, fakeVoice],
    settings: { webrtcPort: String(await freePort()) },
  })
  await untilLoaded(node, "listener", "fake", "fake-voice")
  await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve))
  origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`
  browser = await sharedBrowser()
})
afterAll(async () => {
  await closePages(browser)
  pages.close()
  await node?.stop()
})

type Frame = Readonly<Record<string, unknown>>
const script = (steps: object) => `fake:${JSON.stringify(steps)}`
const speech = [...bytesToS16(voice(1.3))]
const long = Array.from({ length: 100 }, (_, at) => `word${at} here.`).join(" ")
const agent = script({
  steps: [
    { calls: [{ name: "get_time", arguments: { city: "Rome" } }] },
    { tokens: 1, text: "It is noon there." },
  ],
})

/** A page of another origin than the node's: its port is another one. */
const pages = createServer((_, reply) => {
  reply.setHeader("content-type", "text/html")
  reply.end("<title>call</title>")
})
let origin = ""

/** What runs in the page. `say` plays a clip as the user's voice. */
const program = `
window.connect = async (secret, base) => {
  const { OpenAIRealtimeWebRTC, RealtimeAgent, RealtimeSession, tool } = window.OpenAIAgentsRealtime
  const context = new AudioContext()
  await context.resume()
  const microphone = context.createMediaStreamDestination()
  window.say = (samples) => {
    const buffer = context.createBuffer(1, samples.length, 24000)
    buffer.copyToChannel(Float32Array.from(samples, (sample) => sample / 32768), 0)
    const source = context.createBufferSource()
    source.buffer = buffer
    source.connect(microphone)
    source.start()
  }
  const times = { beganMs: performance.now() }
  window.times = times
  const fetched = window.fetch
  window.fetch = async (...given) => {
    const sentMs = performance.now()
    const reply = await fetched(...given)
    times.answeredMs = performance.now() - sentMs
    times.replyMs = performance.now()
    return reply
  }
  const transport = new OpenAIRealtimeWebRTC({
    baseUrl: base + "/v1/realtime/calls",
    mediaStream: microphone.stream,
    audioElement: document.createElement("audio"),
    changePeerConnection: (connection) => {
      window.connection = connection
      connection.addEventListener("connectionstatechange", () => {
        if (connection.connectionState === "connected") times.connectedMs = performance.now() - times.replyMs
      })
      return connection
    },
  })
  window.cities = []
  const get_time = tool({
    name: "get_time",
    description: "The time in a city",
    strict: false,
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: true },
    execute: async ({ city }) => {
      window.cities.push(city)
      return "noon"
    },
  })
  // A browser that gets no processor for a while sends nothing, which is heard as silence: it must not end the turn.
  const config = { audio: { input: { turnDetection: { type: "server_vad", silenceDurationMs: 3000 } } } }
  window.session = new RealtimeSession(new RealtimeAgent({ name: "Helper", tools: [get_time] }), { transport, config })
  window.frames = []
  window.errors = []
  window.session.transport.on("*", (event) => window.frames.push(event))
  window.session.on("error", (error) => window.errors.push(JSON.stringify(error)))
  await window.session.connect({ apiKey: secret })
}
window.statistics = async (type) => {
  for (const report of (await window.connection.getStats()).values())
    if (report.type === type && report.kind === "audio") return report
}
window.heard = () => window.statistics("inbound-rtp")
`

const secretOf = async (): Promise<string> => {
  const made = await node.post("/v1/realtime/client_secrets", {
    session: { type: "realtime", model: "gpt-realtime" },
  })
  return ((await made.json()) as { readonly value: string }).value
}

const open = async () => {
  const page = await browser!.newPage()
  page.setDefaultTimeout(120_000)
  const complaints: Array<string> = []
  page.on("pageerror", (error) => complaints.push(error.message))
  await load(page)
  return { page, complaints }
}

const load = async (page: Page): Promise<void> => {
  await page.goto(`${origin}/`)
  await page.addScriptTag({ content: kit })
  await page.addScriptTag({ content: program })
  await page.evaluate(`window.connect(${JSON.stringify(await secretOf())}, ${JSON.stringify(node.base)})`)
}

const framesOf = (page: Page) => page.evaluate(`window.frames`) as Promise<ReadonlyArray<Frame>>
const statuses = async (page: Page) =>
  (await framesOf(page)).flatMap(({ response, type }) =>
    type === "response.done" ? [(response as Frame).status] : [],
  )
const count = async (page: Page, wanted: string) =>
  (await framesOf(page)).filter(({ type }) => type === wanted).length
const send = (page: Page, text: string) =>
  page.evaluate(`window.session.sendMessage(${JSON.stringify(text)})`)

it("@openai/agents-realtime: a tool, an interruption by speech, muting, a reload", withBrowser, async () => {
  const { complaints, page } = await open()
  await send(page, agent)
  await eventually(async () => (await statuses(page)).length >= 2, "the tool is called and the answer given")
  expect(await page.evaluate(`window.cities`)).toEqual(["Rome"])
  await eventually(
    async () => (await count(page, "output_audio_buffer.stopped")) >= 1,
    "the answer is played",
  )
  const heard = (await page.evaluate(`window.heard()`)) as Frame
  expect(Number(heard.totalAudioEnergy)).toBeGreaterThan(0)

  await send(page, script({ tokens: 1, text: long }))
  await eventually(async () => (await count(page, "output_audio_buffer.started")) >= 2, "it speaks")
  await page.waitForTimeout(1_000)
  await page.evaluate(`window.say(${JSON.stringify(speech)})`)
  await eventually(async () => (await statuses(page)).length >= 4, "the speech is answered")
  expect(await statuses(page)).toEqual(["completed", "completed", "cancelled", "completed"])
  expect(await count(page, "output_audio_buffer.cleared")).toBe(1)
  // The node tells the browser what of its packets has arrived, from which it decides how much redundancy it sends.
  const told = async () =>
    (await page.evaluate(`window.statistics("remote-inbound-rtp")`)) as Frame | undefined
  await eventually(
    async () => Number((await told())?.roundTripTimeMeasurements) > 0,
    "the browser knows what has arrived, and the round trip",
  )
  expect(Number((await told())?.fractionLost)).toBeLessThan(0.5)

  // Interrupted by the program: the kit cancels the response and clears what waits to be played.
  await send(page, script({ tokens: 1, text: long }))
  await eventually(
    async () => (await statuses(page)).length < 5 && (await count(page, "output_audio_buffer.started")) >= 4,
    "it speaks again",
  )
  await page.evaluate(`window.session.interrupt()`)
  await eventually(async () => (await count(page, "output_audio_buffer.cleared")) >= 2, "it is cleared")

  // A muted microphone says nothing.
  await page.evaluate(`window.session.mute(true)`)
  const turns = await count(page, "input_audio_buffer.speech_started")
  await page.evaluate(`window.say(${JSON.stringify(speech)})`)
  await page.waitForTimeout(2_000)
  expect(await count(page, "input_audio_buffer.speech_started")).toBe(turns)

  const frames = await framesOf(page)
  expect(frames.filter(({ type }) => type === "error")).toEqual([])
  expect(await page.evaluate(`window.errors`)).toEqual([])
  expect(brokenOrders(frames)).toEqual([])
  const times = (await page.evaluate(`window.times`)) as Readonly<Record<string, number>>
  const { concealedSamples, jitterBufferDelay, jitterBufferEmittedCount, totalSamplesReceived } =
    (await page.evaluate(`window.heard()`)) as Record<string, number>
  // Times depend on the machine: they are shown, and not judged.
  console.log(
    JSON.stringify({
      ...times,
      concealedSamples,
      totalSamplesReceived,
      jitterBufferMs: (1000 * jitterBufferDelay!) / jitterBufferEmittedCount!,
    }),
  )

  await load(page)
  await send(page, script({ tokens: 1, text: "It is noon there." }))
  await eventually(async () => (await statuses(page)).length >= 1, "the answer after the reload is given")
  expect(complaints).toEqual([])
  await page.close()
})
