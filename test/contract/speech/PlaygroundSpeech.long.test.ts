// The playground's panel Speak, in a real browser where there is one: what it plays is the stream, sample by sample and
// without a gap; it shows a refusal in a sentence, stops on request, clones a recording, and follows its own content
// security policy.
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { closePages, openPlayground, sharedBrowser } from "../../support/clients/Browser.ts"
import { forgetSound, heardSamples, tapSound } from "../../support/clients/SoundTap.ts"
import { has, needs } from "../../support/groups/Needs.ts"
import {
  cloneModel,
  fakeVoice,
  presetModel,
  scriptSamples,
  speak,
  spokenScript,
  withoutWeights,
} from "../../support/nodes/SpeechNode.ts"
import { eventually, startNode, type TestNode, untilIdle } from "../../support/nodes/TestNode.ts"
import { startRelay } from "../../support/servers/Relay.ts"

const withBrowser = needs("browser")

let node: TestNode
let browser: Browser | undefined
let page: Page
let complaints: ReadonlyArray<string> = []
let requested: ReadonlyArray<string> = []
beforeAll(async () => {
  if (!has("browser")) return
  const named = [presetModel, cloneModel].map(withoutWeights)
  node = await startNode({ models: [...named, { ...fakeVoice, id: "tts-fake" }] })
  browser = await sharedBrowser()
  ;({ complaints, page, requested } = await openPlayground(browser, node, {
    panel: "speak",
    prepare: tapSound,
  }))
  await page.waitForSelector("#speak-voice option", { state: "attached" })
})
afterAll(async () => {
  await closePages(browser)
  await node?.stop()
})

const shows = (selector: string, pattern: RegExp | string) =>
  expect.poll(() => page.locator(selector).first().textContent(), { timeout: 60_000 }).toMatch(pattern)

const play = async (text: string) => {
  await page.fill("#speak-text", text)
  await page.click("#speak-play")
}

it("offers the models that speak and their voices", withBrowser, async () => {
  const models = ["tts-82m", "tts-3b-ml", "tts-fake"]
  expect(await page.locator("#speak-model option").allTextContents()).toEqual(models)
  expect(await page.locator("#speak-voice option").allTextContents()).toEqual(presetModel.speech.voices)
})

it(
  "plays every sample of the stream once, without a gap, and shows when it came and what it cost",
  withBrowser,
  async () => {
    // All of it comes at once: an engine that computes would be late on a busy machine, which is a gap that is no fault of the page.
    const steps = { pieces: 25, samples: 2_577 }
    await page.selectOption("#speak-model", "tts-fake")
    await shows("#speak-voice option", /^fake$/)
    const input = spokenScript(steps)
    const sent = new Int16Array(new Uint8Array(scriptSamples(steps)).buffer)
    const audible = sent.subarray(sent.findIndex((sample) => sample !== 0))
    for (let tries = 0; tries < 10; tries++) {
      await forgetSound(page)
      await play(input)
      await expect.poll(async () => (await heardSamples(page)).length).toBeGreaterThan(0)
      await shows("#speak-play", /^Play$/)
      // On a busy machine a piece may come too late, and the page says so: then it plays once more.
      await shows("#speak-status", / gaps$/)
      if (/ no gaps$/.test((await page.textContent("#speak-status")) ?? "")) break
    }
    const heard = await heardSamples(page)
    const differing = audible.findIndex((sample, at) => Math.abs(heard[at]! * 32_768 - sample) > 0.5)
    expect({ differing, samples: audible.length > 24_000 }).toEqual({ differing: -1, samples: true })
    expect(heard.subarray(audible.length).every((sample) => sample === 0)).toBe(true)
    await shows("#speak-status", /^\d\.\d s of speech, no gaps$/)
    expect(await page.getAttribute("#speak-chart svg", "aria-label")).toMatch(
      /^When audio came and when it was due\. \d+ pieces, \d\.\d s of speech, none too late\./,
    )
    await shows("#speak-receipt .price", /^0\.000\d{3} USD$/)
    expect(await page.getAttribute("#speak-download", "download")).toBe("speech.wav")
    await page.selectOption("#speak-model", "tts-82m")
    await shows("#speak-voice option", /^af_bella$/)
  },
)

it("says what to do where it was refused", withBrowser, async () => {
  await play("a".repeat(4_097))
  await shows(
    "#speak-problem",
    /^The node refused the request: input: tts-82m speaks at most 4096 characters\.$/,
  )
  await shows("#speak-play", /^Play$/)
})

it("stops on request, and so does the node", withBrowser, async () => {
  await page.selectOption("#speak-model", "tts-fake")
  await shows("#speak-voice option", /^fake$/)
  await play(spokenScript({ pieces: 5_000, samples: 2_400, pieceMs: 20 }))
  await shows("#speak-play", /^Stop$/)
  await eventually(() => node.gauges("tts-fake").open === 1, "the node speaks")
  await page.click("#speak-play")
  await shows("#speak-play", /^Play$/)
  await untilIdle(node)
})

it("plays what came of a stream whose node goes away in the middle, and says so", withBrowser, async () => {
  const relay = await startRelay(node.port)
  const base = `http://127.0.0.1:${relay.port}`
  const { page: other } = await openPlayground(browser!, { base, keys: node.keys }, { panel: "speak" })
  await other.waitForSelector("#speak-voice option", { state: "attached" })
  await other.selectOption("#speak-model", "tts-fake")
  await expect.poll(() => other.locator("#speak-voice option").allTextContents()).toEqual(["fake"])
  await other.fill("#speak-text", spokenScript({ pieces: 5_000, samples: 2_400, pieceMs: 20 }))
  await other.click("#speak-play")
  await expect.poll(() => other.textContent("#speak-status")).toMatch(/s of speech/)
  relay.stop()
  await expect
    .poll(() => other.textContent("#speak-problem"))
    .toMatch(/^The connection ended in the middle: what came so far is shown/)
  expect(await other.textContent("#speak-status")).toMatch(/^Broken off after \d+\.\d s of speech$/)
  expect(await other.isVisible("#speak-download")).toBe(true)
  // The text of the drawing has its own size on a phone, and none of it is cut off.
  await other.setViewportSize({ width: 390, height: 844 })
  await expect
    .poll(() =>
      other.evaluate(`(() => {
      const drawing = document.querySelector("#speak-chart svg")
      const { left, right, width } = drawing.getBoundingClientRect()
      const texts = [...drawing.querySelectorAll("text")].map((text) => text.getBoundingClientRect())
      return {
        scale: (width / drawing.viewBox.baseVal.width).toFixed(2),
        cut: texts.filter((text) => text.left < left - 1 || text.right > right + 1).length,
        overlaps: texts.some((text, at) => texts.slice(0, at).some((other) =>
          text.left < other.right && other.left < text.right && text.top < other.bottom && other.top < text.bottom)),
      }
    })()`),
    )
    .toEqual({ scale: "1.00", cut: 0, overlaps: false })
  await other.close()
  await untilIdle(node)
})

it("speaks with the voice of a file", withBrowser, async () => {
  const { body } = await speak(node, {
    model: "tts-82m",
    voice: "bm_george",
    input: spokenScript({ pieces: 20 }),
    response_format: "wav",
  })
  await page.selectOption("#speak-model", "tts-3b-ml")
  await shows("#speak-voice", /your recording/)
  await page.selectOption("#speak-voice", "(your recording)")
  await play("Good morning.")
  await shows("#speak-problem", /^There is no recording yet/)
  await page.setInputFiles("#speak-clip", {
    name: "george.wav",
    mimeType: "audio/wav",
    buffer: Buffer.from(body),
  })
  await play("Good morning.")
  await shows("#speak-problem", /^The model needs the words of the recording/)
  await page.fill("#speak-transcript", "The quick brown fox jumps over the lazy dog.")
  await forgetSound(page)
  await play("Good morning.")
  await expect.poll(async () => (await heardSamples(page)).length).toBeGreaterThan(0)
  await shows("#speak-play", /^Play$/)
  expect((await heardSamples(page)).length).toBeGreaterThan(12_000)
})

it("breaks no rule of the page, and loads nothing from elsewhere", withBrowser, () => {
  // The refusal above is an error to the browser, which logs it.
  expect(complaints.filter((text) => !/status of 413/.test(text))).toEqual([])
  expect(
    requested.filter((url) => !url.startsWith(node.base) && !url.startsWith(`blob:${node.base}`)),
  ).toEqual([])
})
