// `npm run screenshots` draws the README's picture of the playground, docs/pictures/playground.png. `npm run screenshots -- walk
// FOLDER [PART]` writes pictures of every panel and of the API reference in all states and sizes into a folder; PART is a part of
// the names of the wanted ones. Both start a node with the built-in weights on a free port, and use Chromium as a person would.
import { join } from "node:path"
import { chromium } from "playwright-core"
import { writeWav } from "../support/audio/AudioFiles.ts"
import { clipSamples, clips, rateHz } from "../support/audio/SpeechClips.ts"
import { browserPath } from "../support/groups/Needs.ts"
import { drawReadme } from "./Readme.ts"
import { startNode } from "./Started.ts"
import { walk } from "./Walk.ts"

if (browserPath === undefined) throw new Error("no Chromium or Chrome found; Debian package chromium")
const [command, folder, only = ""] = process.argv.slice(2)
if (command !== undefined && (command !== "walk" || folder === undefined))
  throw new Error("usage: npm run screenshots [-- walk FOLDER [PART]]")

const node = await startNode()
try {
  // The fake microphone: two clips, with a silence behind each that ends a turn and lets the node answer.
  const spoken = clips.slice(0, 2).map(clipSamples)
  const pauseSamples = 9 * rateHz
  const samples = new Int16Array(spoken.reduce((sum, { length }) => sum + length + pauseSamples, rateHz))
  let at = rateHz
  for (const clip of spoken) {
    samples.set(clip, at)
    at += clip.length + pauseSamples
  }
  const microphone = join(node.folder, "microphone.wav")
  writeWav(microphone, samples, rateHz)
  const browser = await chromium.launch({
    executablePath: browserPath,
    args: [
      "--no-sandbox",
      "--autoplay-policy=no-user-gesture-required",
      "--mute-audio",
      "--use-fake-device-for-media-stream",
      "--use-fake-ui-for-media-stream",
      `--use-file-for-fake-audio-capture=${microphone}`,
    ],
  })
  if (folder === undefined) await drawReadme(browser, node)
  else await walk(browser, node, folder, only)
  await browser.close()
} finally {
  await node.stop()
}
