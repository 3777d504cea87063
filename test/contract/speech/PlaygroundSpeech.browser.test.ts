// The playground's "Speak", in a real browser where there is one: it plays a stream, shows a refusal, stops on request,
// and follows the page's own content security policy.
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { openPlayground, startBrowser } from "../../support/clients/Browser.ts"
import { has, needs } from "../../support/groups/Needs.ts"
import { fakeVoice, presetModel, speak, spokenScript } from "../../support/nodes/SpeechNode.ts"
import { eventually, startNode, type TestNode, untilIdle } from "../../support/nodes/TestNode.ts"

const withBrowser = needs("browser")

let node: TestNode
let browser: Browser | undefined
let page: Page
let complaints: ReadonlyArray<string> = []
beforeAll(async () => {
  if (!has("browser")) return
  node = await startNode({ models: [presetModel, { ...fakeVoice, id: "tts-fake" }] })
  await speak(node, { model: "tts-82m", voice: "af_bella", input: "Hi." })
  browser = await startBrowser("--autoplay-policy=no-user-gesture-required", "--mute-audio")
  ;({ complaints, page } = await openPlayground(browser, node))
  await page.click("#speech summary")
  await page.waitForSelector("#voice option", { state: "attached" })
})
afterAll(async () => {
  await browser?.close()
  await node?.stop()
})

const shows = (selector: string, pattern: RegExp | string) =>
  expect.poll(() => page.locator(selector).first().textContent(), { timeout: 60_000 }).toMatch(pattern)

it("offers the models that speak and their voices", withBrowser, async () => {
  expect(await page.locator("#tts option").allTextContents()).toEqual(["tts-82m", "tts-fake"])
  expect(await page.locator("#voice option").allTextContents()).toEqual(presetModel.speech.voices)
})

it("plays a stream and says how it went", withBrowser, async () => {
  await page.fill("#say", "Please open the window.")
  await page.click("#play")
  await shows("#heard", /^first audio after \d+ ms; 1\.\d s of speech in \d+ ms; \d+ gaps$/)
  // Until the last audio has been played.
  await shows("#play", /^Play$/)
})

it("shows why it was refused", withBrowser, async () => {
  await page.fill("#say", "a".repeat(4_097))
  await page.click("#play")
  await shows("#heard", /^input: tts-82m speaks at most 4096 characters$/)
  expect(await page.textContent("#play")).toBe("Play")
})

it("stops on request, and so does the node", withBrowser, async () => {
  await page.selectOption("#tts", "tts-fake")
  await shows("#voice option", /^fake$/)
  await page.fill("#say", spokenScript({ pieces: 5_000, samples: 2_400, pieceMs: 20 }))
  await page.click("#play")
  await shows("#play", /^Stop$/)
  await eventually(() => node.gauges("tts-fake").open === 1, "the node speaks")
  await page.click("#play")
  expect(await page.textContent("#play")).toBe("Play")
  await untilIdle(node)
})

it("breaks no rule of the page", withBrowser, () => {
  // The refusal above is an error to the browser, which logs it.
  expect(complaints.filter((text) => !/status of 413/.test(text))).toEqual([])
})
