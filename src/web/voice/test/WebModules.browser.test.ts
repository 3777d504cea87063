// The code of docs/web-modules.md, run as it stands in a real browser where there is one, from a page that is not the
// playground.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { writeWav } from "../../../../test/support/audio/AudioFiles.ts"
import { clipSamples, clips, rateHz } from "../../../../test/support/audio/SpeechClips.ts"
import { wordErrorRate } from "../../../../test/support/audio/WordErrorRate.ts"
import { sharedBrowser, startBrowser } from "../../../../test/support/clients/Browser.ts"
import { has, needs } from "../../../../test/support/groups/Needs.ts"
import { inLong, isLong } from "../../../../test/support/groups/Runs.ts"
import { builtInModel } from "../../../../test/support/nodes/BuiltInModels.ts"
import { presetModel, withoutWeights } from "../../../../test/support/nodes/SpeechNode.ts"
import {
  startNode,
  type TestNode,
  temporaryDir,
  untilLoaded,
} from "../../../../test/support/nodes/TestNode.ts"

const withBrowser = needs("browser")
const longWithBrowser = { ...withBrowser, ...inLong }
const folder = temporaryDir()
const clip = clips.find(({ file }) => file.includes("af_"))!
const guide = readFileSync(fileURLToPath(new URL("../../../../docs/web-modules.md", import.meta.url)), "utf8")
const blocks = [...guide.matchAll(/```js\n([\s\S]*?)```/g)].map(([, code = ""]) => code)

let node: TestNode
let microphone = ""
beforeAll(async () => {
  if (!has("browser")) return
  // What is captioned has words.
  const models = isLong
    ? [presetModel, builtInModel("stt-large-v3-turbo", { runtime: { load: "start" } })]
    : [withoutWeights(presetModel)]
  node = await startNode({ models })
  await untilLoaded(node, ...models.map(({ id }) => id))
  microphone = join(folder.path, "microphone.wav")
  const spoken = clipSamples(clip)
  const samples = new Int16Array(spoken.length + 8 * rateHz)
  samples.set(spoken, rateHz)
  writeWav(microphone, samples, rateHz)
})
afterAll(async () => {
  await node?.stop()
  folder.remove()
})

/** A browser of its own for each block that hears it: Chromium's fake microphone plays its file once. */
const browserWithMicrophone = (): Promise<Browser> =>
  startBrowser(
    "--autoplay-policy=no-user-gesture-required",
    "--mute-audio",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    `--use-file-for-fake-audio-capture=${microphone}%noloop`,
  )

/**
 * Answers are read to their end before the page gets them, in the pieces in which they came. How fast pieces come is judged in
 * `npm run test:long` alone: a machine that stands still makes a gap.
 */
const readAhead = `const direct = fetch
  globalThis.fetch = async (...asked) => {
    const response = await direct(...asked)
    const pieces = []
    const reader = response.body.getReader()
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) pieces.push(piece.value)
    const body = new ReadableStream({
      start(stream) {
        for (const piece of pieces) stream.enqueue(piece)
        stream.close()
      },
    })
    return new Response(body, response)
  }`

/** Runs a block to its end in a page of the node's origin, and returns what it has shown. */
const run = async (
  code: string,
  { hears = false }: { readonly hears?: boolean } = {},
): Promise<Readonly<Record<string, unknown>>> => {
  const browser = await (hears ? browserWithMicrophone() : sharedBrowser())
  const page = await browser.newPage()
  try {
    const start = `const base = location.origin, key = ${JSON.stringify(node.keys.dev)}
      ${isLong ? "" : readAhead}
      globalThis.values = {}
      const shown = (name, value) => { values[name] = value }
      addEventListener("error", ({ message }) => { document.title = message })
      addEventListener("unhandledrejection", ({ reason }) => { document.title = String(reason) })`
    // The helpers stand behind the imports and before the rest.
    const local = code.replaceAll('"./', '"/playground/voice/')
    const imports = local.match(/^import .*$/gm) ?? []
    const rest = local.replaceAll(/^import .*$/gm, "")
    const content = `${imports.join("\n")}\n${start}\n${rest}\ndocument.title = "done"`
    // A document that the node has sent: for one that the test makes up, Chromium blocks the WebSocket to this machine.
    await page.goto(`${node.base}/health`)
    await page.addScriptTag({ type: "module", content })
    await expect.poll(() => page.title(), { timeout: 60_000 }).not.toBe("")
    expect(await page.title()).toBe("done")
    return (await page.evaluate("values")) as Readonly<Record<string, unknown>>
  } finally {
    await (hears ? browser.close() : page.close())
  }
}

it("has the blocks that are run here", () => expect(blocks).toHaveLength(4))

it("plays a stream without a gap", withBrowser, async () => {
  expect(await run(blocks[0]!)).toEqual({ underruns: 0 })
})

it("records the microphone", longWithBrowser, async () => {
  const { bytes, samples } = await run(blocks[1]!, { hears: true })
  // Pieces of 20 ms at the browser's rate give 320 samples, one more or one less.
  expect(bytes).toBeGreaterThan(600)
  expect(samples).toBeGreaterThan(3_200)
})

it("captions the microphone, and writes subtitles", longWithBrowser, async () => {
  const { srt, text } = await run(blocks[2]!, { hears: true })
  expect(wordErrorRate([{ reference: clip.text, heard: String(text) }])).toBeLessThan(0.35)
  expect(srt).toMatch(/^1\n00:00:00,000 --> 00:00:\d\d,\d{3}\n/)
})

it("reduces events to a firm and a soft part", withBrowser, async () => {
  expect(await run(blocks[3]!)).toEqual({ parts: "The cat |sat" })
})
