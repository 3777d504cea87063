// The playground's panel Listen, in a real browser where there is one, with Chromium's fake microphone, which plays a clip
// of a synthetic voice: captions reach its words; files are transcribed live, in one answer, as a stream and as a job; a
// missing microphone, a refused one and an insecure page are one sentence each.
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { writeWav } from "../../support/audio/AudioFiles.ts"
import { clipBytes, clipSamples, clips, longWav, rateHz } from "../../support/audio/SpeechClips.ts"
import { wordErrorRate } from "../../support/audio/WordErrorRate.ts"
import { openPlayground, startBrowser } from "../../support/clients/Browser.ts"
import { has, needs } from "../../support/groups/Needs.ts"
import { builtInModel } from "../../support/nodes/BuiltInModels.ts"
import { startNode, type TestNode, temporaryDir, untilLoaded } from "../../support/nodes/TestNode.ts"
import { startRelay } from "../../support/servers/Relay.ts"

const withBrowser = needs("browser")
const clip = clips.find(({ file }) => file.includes("af_"))!

let node: TestNode
let browser: Browser | undefined
let page: Page
let complaints: ReadonlyArray<string> = []
let requested: ReadonlyArray<string> = []
const folder = temporaryDir()

/** The fake microphone: silence until the page listens, the clip once, and silence. */
const microphoneFile = (): string => {
  const path = join(folder.path, "microphone.wav")
  const spoken = clipSamples(clip)
  const samples = new Int16Array(spoken.length + 4 * rateHz)
  samples.set(spoken, 2 * rateHz)
  writeWav(path, samples, rateHz)
  return path
}

const fake = ["--use-fake-device-for-media-stream"]

beforeAll(async () => {
  if (!has("browser")) return
  node = await startNode({ models: [builtInModel("stt-large-v3-turbo")] })
  await untilLoaded(node, "stt-large-v3-turbo")
  browser = await startBrowser(
    ...fake,
    "--use-fake-ui-for-media-stream",
    `--use-file-for-fake-audio-capture=${microphoneFile()}%noloop`,
  )
  ;({ complaints, page, requested } = await openPlayground(browser, node, { panel: "listen" }))
  await page.waitForSelector("#listen-model option", { state: "attached" })
})
afterAll(async () => {
  await browser?.close()
  await node?.stop()
  folder.remove()
})

const shows = (selector: string, pattern: RegExp | string, on = page) =>
  expect.poll(() => on.locator(selector).first().textContent(), { timeout: 60_000 }).toMatch(pattern)

const text = async () => (await page.textContent("#listen-text")) ?? ""
const errorRate = async () => wordErrorRate([{ reference: clip.text, heard: await text() }])

/** The text of a download: the page's own policy lets nothing but the browser read it. */
const downloaded = async (id: string): Promise<string> => {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(id)])
  const chunks: Array<Buffer> = []
  for await (const chunk of await download.createReadStream()) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

it("captions what the microphone hears, and says which voices these ears know", withBrowser, async () => {
  expect(await page.textContent("#listen-ears")).toMatch(
    /synthetic voices only.*edgewise models add whisper-base/,
  )
  expect(await page.isVisible("#listen-ears")).toBe(true)
  await page.click("#listen-start")
  // Soft text comes while the clip is spoken, before any of it is final.
  await expect.poll(() => page.textContent("#listen-text .soft"), { timeout: 60_000 }).not.toBe("")
  await shows("#listen-lag", /^captions \d+ ms behind$/)
  await shows("#listen-status", /^Listening, \d+ s$/)
  await expect.poll(errorRate, { timeout: 60_000 }).toBeLessThan(0.35)
  await page.click("#listen-start")
  await shows("#listen-start", /^Start$/)
  await shows("#listen-status", /^\d+\.\d s of audio$/)
  expect(await page.textContent("#listen-text .soft")).toBe("")
  expect(await errorRate()).toBeLessThan(0.35)
  await shows("#listen-receipt .price", /^0\.000\d+ USD$/)
  const srt = await downloaded("#listen-srt")
  expect(srt).toMatch(/^1\n00:00:\d\d,\d{3} --> 00:00:\d\d,\d{3}\n/)
  expect(await downloaded("#listen-vtt")).toMatch(/^WEBVTT\n\n00:00:/)
})

describe.each([
  ["live", /^\d+\.\d s of audio$/],
  ["sync", /^\d+\.\d s of audio in /],
  ["stream", /^\d+\.\d s of audio in /],
  ["job", /^\d+\.\d s of audio in /],
])("a file, %s", (mode, status) => {
  it("reaches the words of the file", withBrowser, async () => {
    await page.check('[name=listen-source][value="file"]')
    expect(await page.isVisible("#listen-ears")).toBe(false)
    await page.setInputFiles("#listen-file", {
      name: "clip.wav",
      mimeType: "audio/wav",
      buffer: clipBytes(clip),
    })
    await page.selectOption("#listen-mode", mode)
    await page.click("#listen-start")
    await shows("#listen-status", status)
    expect(await errorRate()).toBeLessThan(0.35)
    await shows("#listen-receipt .price", /^0\.000\d+ USD$/)
    expect(await page.isVisible("#listen-srt")).toBe(mode !== "stream")
  })
})

it("goes on with a job after a reload", withBrowser, async () => {
  const form = new FormData()
  form.append("file", new Blob([clipBytes(clip)]), "clip.wav")
  const path = "/v1/audio/transcriptions?model=stt-large-v3-turbo&response_format=verbose_json"
  const headers = { authorization: `Bearer ${node.keys.dev}` }
  const { job_id } = (await (await node.fetch(path, { method: "POST", body: form, headers })).json()) as {
    job_id: string
  }
  await page.evaluate(
    `sessionStorage.setItem("edgewise.listen.job", JSON.stringify(${JSON.stringify(job_id)}))`,
  )
  await page.reload()
  await shows("#listen-status", /^\d+\.\d s of audio in /)
  expect(await errorRate()).toBeLessThan(0.35)
  // The choices of the settings are the same as before.
  expect(await page.inputValue("#listen-mode")).toBe("job")
})

it("says what to do without a file, and without a key", withBrowser, async () => {
  // A page that is loaded again has no file.
  await page.reload()
  await page.waitForSelector("#listen-model option", { state: "attached" })
  await page.check('[name=listen-source][value="file"]')
  await page.click("#listen-start")
  await shows("#listen-problem", /^There is no file yet: choose one\.$/)
  await page.fill("#key", "svc_wrong")
  await page.dispatchEvent("#key", "change")
  await shows("#notice", /^The node refused the key \(Invalid API key\): paste the one/)
  await page.fill("#key", node.keys.dev)
  await page.dispatchEvent("#key", "change")
  await expect.poll(() => page.isVisible("#notice")).toBe(false)
})

it("says what to do without a microphone, and where it is refused", withBrowser, async () => {
  const pageWith = async (failure: string) => {
    const { page: other } = await openPlayground(browser!, node, {
      panel: "listen",
      prepare: (one) =>
        one.addInitScript({
          content: `navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("no", "${failure}"))`,
        }),
    })
    await other.waitForSelector("#listen-model option", { state: "attached" })
    await other.click("#listen-start")
    return other
  }
  const without = await pageWith("NotFoundError")
  await shows(
    "#listen-problem",
    /^No microphone was found: connect one and start again, or choose a file\.$/,
    without,
  )
  await without.close()
  const refused = await pageWith("NotAllowedError")
  await shows("#listen-problem", /^The browser was not allowed to use the microphone: allow it/, refused)
  expect(await refused.textContent("#listen-start")).toBe("Start")
  await refused.close()
})

it("keeps the captions of a session whose node goes away in the middle", withBrowser, async () => {
  const relay = await startRelay(node.port)
  const base = `http://127.0.0.1:${relay.port}`
  const { page: other } = await openPlayground(browser!, { base, keys: node.keys }, { panel: "listen" })
  await other.waitForSelector("#listen-model option", { state: "attached" })
  await other.check('[name=listen-source][value="file"]')
  await other.setInputFiles("#listen-file", { name: "long.wav", mimeType: "audio/wav", buffer: longWav(30) })
  await other.click("#listen-start")
  await shows("#listen-text", /\w+ \w+/, other)
  relay.stop()
  await shows("#listen-problem", /^The connection ended in the middle: the text so far is kept/, other)
  expect(await other.textContent("#listen-status")).toMatch(/^Broken off after \d+ s of audio$/)
  expect(await other.textContent("#listen-text")).toMatch(/\w+ \w+/)
  expect(await other.isVisible("#listen-txt")).toBe(true)
  await shows("#listen-start", /^Start$/, other)
  await other.close()
})

it("says on an insecure page why there is no microphone, and still takes files", withBrowser, async () => {
  // Chromium takes every name for insecure that is not localhost.
  const insecure = await startBrowser("--host-resolver-rules=MAP node.example 127.0.0.1")
  try {
    const { page: other } = await openPlayground(
      insecure,
      { base: `http://node.example:${node.port}`, keys: node.keys },
      { panel: "listen" },
    )
    await shows("#listen-insecure", /localhost or HTTPS: open the node as http:\/\/localhost/, other)
    expect(await other.isDisabled("#listen-start")).toBe(true)
    await other.check('[name=listen-source][value="file"]')
    expect(await other.isDisabled("#listen-start")).toBe(false)
  } finally {
    await insecure.close()
  }
})

it("breaks no rule of the page, and loads nothing from elsewhere", withBrowser, () => {
  // The wrong key above is an error to the browser, which logs it.
  expect(complaints.filter((complaint) => !/status of 401/.test(complaint))).toEqual([])
  const own = (url: string) =>
    url
      .replace(/^ws:/, "http:")
      .replace(/^blob:/, "")
      .startsWith(node.base)
  expect(requested.filter((url) => !own(url))).toEqual([])
})
