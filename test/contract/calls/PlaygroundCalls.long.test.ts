// The playground's panel Talk on a node that takes calls: over WebRTC where UDP passes, otherwise over the WebSocket, and it says which.
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { bytesToS16 } from "#domain/audio/Audio.ts"
import { voice } from "../../support/audio/Voice.ts"
import { closePages, openPlayground, sharedBrowser } from "../../support/clients/Browser.ts"
import { canCall } from "../../support/clients/CallClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { has, needs, onlyWhere } from "../../support/groups/Needs.ts"
import { presetModel, withoutWeights } from "../../support/nodes/SpeechNode.ts"
import { fakeModel, type TestModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { freePort } from "../../support/servers/FreePort.ts"

const withBrowser = canCall ? needs("browser") : onlyWhere(false, "the WebRTC library is not installed")

let node: TestNode
/** Announces an address at which nothing answers. */
let unreachable: TestNode
let browser: Browser | undefined
beforeAll(async () => {
  if (!canCall || !has("browser")) return
  // Its answers are the same sixteen words, which take several seconds; spoken slowly where the second one need not be heard: the click
  // that interrupts the first comes late on a busy machine.
  const assistant: TestModel = {
    id: "assistant",
    kind: "conversation",
    conversation: {
      transcription: "listener",
      text: "fake",
      speech: "tts-82m",
    },
  }
  const models = [listener(), fakeModel, assistant]
  node = await startNode({
    models: [...models, presetModel],
    settings: { webrtcPort: String(await freePort()) },
  })
  unreachable = await startNode({
    models: [...models, withoutWeights(presetModel)],
    settings: { webrtcPort: String(await freePort()), webrtcAddress: "127.0.0.2" },
  })
  for (const each of [node, unreachable]) await untilLoaded(each, "listener", "fake", "tts-82m")
  browser = await sharedBrowser()
})
afterAll(async () => {
  await closePages(browser)
  await node?.stop()
  await unreachable?.stop()
})

/** A microphone that says what `say` gives it. */
const microphone = `
const context = new AudioContext()
const destination = context.createMediaStreamDestination()
navigator.mediaDevices.getUserMedia = async () => {
  await context.resume()
  return destination.stream
}
window.say = (samples) => {
  const buffer = context.createBuffer(1, samples.length, 24000)
  buffer.copyToChannel(Float32Array.from(samples, (sample) => sample / 32768), 0)
  const source = context.createBufferSource()
  source.buffer = buffer
  source.connect(destination)
  source.start()
}
`

/** The page gives a call four seconds to be connected, which a busy machine may need: here it has a minute. */
const patience = `
const usual = window.setTimeout
window.setTimeout = (callback, ms, ...given) => usual(callback, ms === 4000 ? 60_000 : ms, ...given)
`
const open = async (base: TestNode, prepared = microphone) => {
  const opened = await openPlayground(browser!, base, {
    panel: "talk",
    prepare: (page) => page.addInitScript({ content: prepared }),
  })
  await opened.page.waitForSelector("#talk-voice option", { state: "attached" })
  await opened.page.click("#talk-start")
  return opened
}

const shows = (page: Page, selector: string, pattern: RegExp) =>
  expect.poll(() => page.locator(selector).first().textContent(), { timeout: 60_000 }).toMatch(pattern)

const speech = JSON.stringify([...bytesToS16(voice(1.3))])
const sockets = (requested: ReadonlyArray<string>) => requested.filter((url) => url.startsWith("ws:"))

it("calls the node: speech is answered, and an interruption keeps what was heard", withBrowser, async () => {
  const { complaints, page, requested } = await open(node, microphone + patience)
  await shows(page, "#talk-about", /over WebRTC$/)
  await shows(page, "#talk-floor", /^Listening$/)
  await page.evaluate(`say(${speech})`)
  await shows(page, "#talk-floor", /^The node speaks/)
  await shows(page, ".assistant .text", /^token/)
  await page.click("#talk-interrupt")
  await shows(page, ".assistant .quiet-note", /^interrupted here$/)
  await page.evaluate(`say(${speech})`)
  await expect
    .poll(() => page.locator(".assistant").nth(1).locator(".text").textContent(), { timeout: 60_000 })
    .toMatch(/^(?:token ?){16}$/)
  await page.click("#talk-start")
  await shows(page, "#talk-start", /^Start$/)
  expect(sockets(requested)).toEqual([])
  expect(complaints).toEqual([])
  await page.close()
})

it("goes on over the WebSocket where UDP does not pass", withBrowser, async () => {
  const { page, requested } = await open(unreachable)
  await shows(page, "#talk-about", /over the WebSocket: the call could not be connected$/)
  await shows(page, "#talk-floor", /^Listening$/)
  await page.evaluate(`say(${speech})`)
  await shows(page, ".assistant .text", /^token/)
  expect(sockets(requested).length).toBe(1)
  await page.close()
})
