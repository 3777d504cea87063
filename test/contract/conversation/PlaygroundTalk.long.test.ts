// The playground's panel Talk, in a real browser where there is one, with Chromium's fake microphone, which plays clips of a synthetic
// voice: a spoken question is answered, the answer is interrupted by speech, and what the page shows is what the node keeps.
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { writeWav } from "../../support/audio/AudioFiles.ts"
import { clipSamples, clips, rateHz } from "../../support/audio/SpeechClips.ts"
import { wordErrorRate } from "../../support/audio/WordErrorRate.ts"
import { seriousFindings } from "../../support/clients/Axe.ts"
import { openPlayground, startBrowser } from "../../support/clients/Browser.ts"
import { has, needs } from "../../support/groups/Needs.ts"
import { builtInModel } from "../../support/nodes/BuiltInModels.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import {
  eventually,
  startNode,
  type TestNode,
  temporaryDir,
  untilLoaded,
} from "../../support/nodes/TestNode.ts"
import { startRelay } from "../../support/servers/Relay.ts"

const withBrowser = needs("browser")
const [first, second] = clips.filter(({ file }) => /[ab]m_alpha/.test(file)) as unknown as [
  (typeof clips)[number],
  (typeof clips)[number],
]

let node: TestNode
let browser: Browser | undefined
const folder = temporaryDir()

/** The fake microphone: a clip, three seconds for the turn's end and a part of its answer, another clip, and silence. */
const microphoneFile = (): string => {
  const path = join(folder.path, "microphone.wav")
  const parts = [first, second].map(clipSamples)
  const pauses = [1.5, 3, 20]
  const length = pauses.reduce((sum, pause) => sum + pause * rateHz, 0) + parts[0]!.length + parts[1]!.length
  const samples = new Int16Array(length)
  samples.set(parts[0]!, pauses[0]! * rateHz)
  samples.set(parts[1]!, (pauses[0]! + pauses[1]!) * rateHz + parts[0]!.length)
  writeWav(path, samples, rateHz)
  return path
}

const microphone = () => [
  "--use-fake-device-for-media-stream",
  "--use-fake-ui-for-media-stream",
  `--use-file-for-fake-audio-capture=${microphoneFile()}`,
  "--autoplay-policy=no-user-gesture-required",
  "--mute-audio",
]

beforeAll(async () => {
  if (!has("browser")) return
  // Its answers are the same sixteen words, which take several seconds.
  node = await startNode({
    models: [
      { ...fakeModel, id: "llm-fake" },
      builtInModel("tts-82m"),
      builtInModel("stt-large-v3-turbo"),
      {
        id: "assistant",
        kind: "conversation",
        conversation: {
          transcription: "stt-large-v3-turbo",
          text: "llm-fake",
          speech: "tts-82m",
        },
      },
    ],
  })
  await untilLoaded(node, "llm-fake", "tts-82m", "stt-large-v3-turbo")
  browser = await startBrowser(...microphone())
})
afterAll(async () => {
  await browser?.close()
  await node?.stop()
  folder.remove()
})

type Frame = Readonly<Record<string, unknown>> & { readonly type: string }

/** The panel, and every event of its sockets as it comes. */
const open = async (base: { readonly base: string; readonly keys: TestNode["keys"] } = node) => {
  const sent: Array<Frame> = []
  const received: Array<Frame> = []
  const opened = await openPlayground(browser!, base, {
    panel: "talk",
    prepare: async (page) => {
      page.on("websocket", (socket) => {
        socket.on("framesent", ({ payload }) => sent.push(JSON.parse(String(payload))))
        socket.on("framereceived", ({ payload }) => received.push(JSON.parse(String(payload))))
      })
    },
  })
  await opened.page.waitForSelector("#talk-voice option", { state: "attached" })
  return { ...opened, sent, received }
}

const shows = (page: Page, selector: string, pattern: RegExp) =>
  expect.poll(() => page.locator(selector).first().textContent(), { timeout: 60_000 }).toMatch(pattern)

it(
  "answers speech, shows words as they are played, and stops when it is spoken over",
  withBrowser,
  async () => {
    const { complaints, page, received, requested, sent } = await open()
    await page.click("#talk-start")
    await shows(page, "#talk-floor", /^Listening$/)
    await shows(page, "#talk-floor", /^The node speaks/)
    // The words that have not been played are not shown yet, though the page has them.
    await shows(page, ".assistant .text", /^token/)
    const early = (await page.textContent(".assistant .text"))!.split(" ").length
    expect(early).toBeLessThan(
      received.filter(({ type }) => type === "response.output_audio_transcript.delta").length,
    )
    await shows(page, ".assistant .quiet-note", /^interrupted here$/)
    const heard = await page.locator(".assistant .text").first().textContent()

    // The browser tells of its frames later than the page shows them.
    await eventually(
      () => received.some(({ type }) => type === "conversation.item.truncated"),
      "the answer is cut",
    )
    const truncate = sent.find(({ type }) => type === "conversation.item.truncate")!
    const sentMs =
      received
        .filter((event) => event.type === "response.output_audio.delta" && event.item_id === truncate.item_id)
        .reduce((sum, { delta }) => sum + Buffer.from(String(delta), "base64").length, 0) / 48
    expect(truncate.audio_end_ms).toBeGreaterThan(0)
    expect(truncate.audio_end_ms).toBeLessThan(sentMs)
    expect(received.find(({ type }) => type === "conversation.item.truncated")).toMatchObject({
      item_id: truncate.item_id,
      audio_end_ms: truncate.audio_end_ms,
    })
    // What the page shows of the answer is what the node keeps, but for a word that was cut in its middle.
    const words = received
      .filter(
        (event) =>
          event.type === "response.output_audio_transcript.delta" && event.item_id === truncate.item_id,
      )
      .filter(({ start_time }) => Number(start_time) * 1000 < Number(truncate.audio_end_ms))
    expect(heard!.split(" ").length).toBe(words.length)

    // The interruption is a turn of its own, and its answer is played to its end.
    await expect
      .poll(() => page.locator(".assistant").nth(1).locator(".text").textContent(), { timeout: 60_000 })
      .toMatch(/^(?:token ?){16}$/)
    const asked = await page.locator(".user .text").allTextContents()
    const errors = wordErrorRate([
      { reference: first.text, heard: asked[0]! },
      { reference: second.text, heard: asked[1]! },
    ])
    expect(errors).toBeLessThan(0.4)
    expect(await page.locator(".ledger").count()).toBeGreaterThanOrEqual(2)
    // The silence that ended the turn, and three steps behind it.
    expect(await page.locator(".ledger").first().locator("rect").count()).toBe(4)
    expect(await page.locator(".ledger").first().locator("text").first().textContent()).toBe("silence")
    // All answers have the same scale: the same milliseconds are as wide in each of them.
    const scales = (await page.evaluate(`[...document.querySelectorAll(".ledger")].map((ledger) => {
      const bar = ledger.querySelector("rect.silence")
      const [, ms] = bar.nextElementSibling.textContent.match(/^(\\d+) ms$/)
      return bar.getAttribute("width") / ms
    })`)) as ReadonlyArray<number>
    expect(Math.max(...scales) / Math.min(...scales)).toBeLessThan(1.02)
    expect(await page.locator(".ledger figcaption").first().textContent()).toMatch(
      /On the node: silence \d+ ms/,
    )
    await shows(page, "#talk-said", /You: .*Node: token/)
    expect(await seriousFindings(page)).toEqual([])
    await page.setViewportSize({ width: 360, height: 740 })
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360)
    await page.click("#talk-start")
    await shows(page, "#talk-start", /^Start$/)
    await shows(page, "#talk-floor", /^Not connected$/)
    expect(await page.isHidden("#talk-problem")).toBe(true)
    expect(complaints).toEqual([])
    const own = (url: string) => url.replace(/^ws:/, "http:").startsWith(node.base)
    expect(requested.filter((url) => !own(url))).toEqual([])
    await page.close()
  },
)

it("takes a turn while a key is held, and answers it when the key is let go", withBrowser, async () => {
  const { page, sent } = await open()
  await page.check('[name=talk-turns][value="manual"]')
  await page.click("#talk-start")
  await shows(page, "#talk-floor", /^Listening$/)
  expect(sent.some(({ type }) => type === "input_audio_buffer.append")).toBe(false)
  await page.focus("#talk-hold")
  await page.keyboard.down("Space")
  await shows(page, "#talk-floor", /^You speak$/)
  // As long as the first clip takes from the microphone's beginning.
  const enough = Math.round((1.5 + first.seconds + 0.5) * 50)
  await expect
    .poll(() => sent.filter(({ type }) => type === "input_audio_buffer.append").length, { timeout: 60_000 })
    .toBeGreaterThan(enough)
  await page.keyboard.up("Space")
  await shows(page, ".assistant .text", /^token/)
  // The browser tells of its frames later than the page shows them.
  await expect
    .poll(() => sent.map(({ type }) => type).filter((type) => !type.endsWith("append")))
    .toEqual(["session.update", "input_audio_buffer.clear", "input_audio_buffer.commit", "response.create"])
  // Another press ends the answer.
  await page.click("#talk-interrupt")
  await shows(page, ".assistant .quiet-note", /^interrupted here$/)
  await page.click("#talk-start")
  await shows(page, "#talk-start", /^Start$/)
  await page.close()
})

it(
  "offers the catalog's conversations first, with their own voice and turns by what is said",
  withBrowser,
  async () => {
    const { page, received, sent } = await open()
    await page.waitForSelector("#talk-model option", { state: "attached" })
    expect(await page.locator("#talk-model option").allTextContents()).toEqual(["assistant", "llm-fake"])
    await page.check('[name=talk-turns][value="semantic"]')
    await page.click("#talk-start")
    await shows(page, "#talk-floor", /^Listening$/)
    // The browser tells of its frames later than the page shows them.
    await eventually(() => sent.length > 0 && received.length > 0, "the first frames")
    expect(sent[0]).toMatchObject({
      type: "session.update",
      session: { audio: { input: { turn_detection: { type: "semantic_vad" } } } },
    })
    expect(JSON.stringify(sent[0])).not.toContain('"voice"')
    expect(received[0]).toMatchObject({ type: "session.created", session: { model: "assistant" } })
    await shows(page, ".assistant .text", /^token/)
    await page.click("#talk-start")
    await page.close()
  },
)

it(
  "says in one sentence what to do without a microphone, and when the node goes away",
  withBrowser,
  async () => {
    const { page: without } = await openPlayground(browser!, node, {
      panel: "talk",
      prepare: (one) =>
        one.addInitScript({
          content: `navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("no", "NotFoundError"))`,
        }),
    })
    await without.waitForSelector("#talk-voice option", { state: "attached" })
    await without.click("#talk-start")
    await shows(without, "#talk-problem", /^No microphone was found/)
    expect(await without.textContent("#talk-start")).toBe("Start")
    await without.close()

    const relay = await startRelay(node.port)
    const { page } = await open({ ...node, base: `http://127.0.0.1:${relay.port}` })
    await page.click("#talk-start")
    await shows(page, ".user .text", /\w+ \w+/)
    relay.stop()
    await shows(page, "#talk-problem", /^The connection ended in the middle: what was said is kept/)
    await shows(page, "#talk-floor", /^Broken off$/)
    expect(await page.locator(".user .text").first().textContent()).toMatch(/\w+ \w+/)
    await page.close()
  },
)
