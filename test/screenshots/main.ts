// `npm run screenshots`: the README's picture of the playground, docs/pictures/playground.png. Starts a node with the
// built-in weights on a free port, uses each panel in Chromium as a person would, and puts the four pages side by side.
import { execFileSync, spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core"
import { browserPath } from "../support/groups/Needs.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const target = join(root, "docs/pictures/playground.png")
const mostBytes = 300_000
const viewport = { width: 1120, height: 700 }

if (browserPath === undefined) throw new Error("no Chromium or Chrome found; Debian package chromium")
const folder = mkdtempSync(join(tmpdir(), "edgewise-screenshots-"))
const flags = ["serve", "--roles", "edge", "--port", "0", "--data-dir", join(folder, "data")]
const node = spawn(process.execPath, [join(root, "bin/edgewise.js"), ...flags])

/** The address and the development key, as the start prints them. */
const started = new Promise<{ readonly base: string; readonly key: string }>((resolve, reject) => {
  let printed = ""
  node.stdout.on("data", (data: Buffer) => {
    printed += data.toString()
    const [, base] = /edge listening on (\S+)/.exec(printed) ?? []
    const [key] = /svc_\w+/.exec(printed) ?? []
    if (base !== undefined && key !== undefined) resolve({ base, key })
  })
  node.once("exit", (status) => reject(new Error(`the node ended with ${status}: ${printed}`)))
})

const until = async (page: Page, selector: string, pattern: RegExp) => {
  for (let tries = 0; tries < 300; tries++) {
    if (pattern.test((await page.locator(selector).last().textContent()) ?? "")) return
    await page.waitForTimeout(100)
  }
  throw new Error(`${selector} never showed ${pattern}`)
}

type Use = (page: Page) => Promise<unknown>

/** Waits for the models that a node loads at its start: the first answer must not show the time of a load. */
const untilLoaded = async (base: string, key: string): Promise<void> => {
  for (let tries = 0; tries < 300; tries++) {
    const headers = { authorization: `Bearer ${key}` }
    const status = (await (await fetch(`${base}/v1/models/status`, { headers })).json()) as {
      loaded: ReadonlyArray<string>
    }
    if (status.loaded.length >= 3) return
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  throw new Error("the models were not loaded in 150 s")
}

/** A key that may see everything on the panel Node. */
const operatorKey = (): string => {
  const args = [
    join(root, "bin/edgewise.js"),
    "keys",
    "create",
    "--org",
    "acme",
    "--scope",
    "superadmin",
    "--json",
  ]
  const env = { ...process.env, EDGEWISE_DATA_DIR: join(folder, "data") }
  const { api_key } = JSON.parse(execFileSync(process.execPath, args, { env }).toString()) as {
    api_key: string
  }
  return api_key
}

const spoken = "The quick brown fox jumps over the lazy dog. Please open the window, it is warm in here."

const scenes = (key: string): ReadonlyArray<readonly [string, "light" | "dark", Use]> => [
  [
    "chat",
    "light",
    async (page) => {
      for (const [at, question] of [
        "What is the capital of Italy?",
        "Tell me a story about a fox.",
      ].entries()) {
        await page.fill("#chat-text", question)
        await page.click("#chat-send")
        await page.locator(".receipt").nth(at).waitFor()
      }
      await until(page, ".receipt .price", /USD/)
      await page.evaluate("scrollTo(0, 0)")
    },
  ],
  [
    "speak",
    "dark",
    async (page) => {
      await page.fill("#speak-text", spoken)
      await page.click("#speak-play")
      await until(page, "#speak-play", /Play/)
      await until(page, "#speak-receipt .price", /USD/)
    },
  ],
  [
    "listen",
    "dark",
    async (page) => {
      const input = `${spoken} Tell me a story about a fox and a bear. The bear lives in the old forest near the river.`
      const json = { model: "tts-82m", voice: "af_bella", input, response_format: "wav" }
      const headers = { authorization: `Bearer ${key}` }
      const speech = await page.request.post("/v1/audio/speech", { data: json, headers })
      const buffer = await speech.body()
      await page.check("[name=listen-source][value=file]")
      await page.setInputFiles("#listen-file", { name: "fox.wav", mimeType: "audio/wav", buffer })
      await page.click("#listen-start")
      // Some of the text is final, and some of it is not.
      await until(page, "#listen-text .firm", /\w/)
      await until(page, "#listen-text .soft", /\w+ \w+ \w+/)
    },
  ],
  ["node", "light", (page) => page.locator("#node-models li").nth(7).waitFor()],
]

const picturesOf = async (browser: Browser, base: string, key: string): Promise<ReadonlyArray<Buffer>> => {
  const pictures: Array<Buffer> = []
  for (const [panel, colorScheme, use] of scenes(key)) {
    const options: BrowserContextOptions = { viewport, colorScheme, baseURL: base }
    const page = await browser.newPage(options)
    await page.goto(`/#${panel}`)
    await page.fill("#key", key)
    await page.keyboard.press("Enter")
    await page.waitForSelector("#chat-model option", { state: "attached" })
    await page.waitForSelector("#speak-voice option", { state: "attached" })
    await page.locator("#key").blur()
    await use(page)
    pictures.push(await page.screenshot())
    await page.close()
  }
  return pictures
}

const together = async (browser: Browser, pictures: ReadonlyArray<Buffer>): Promise<Buffer> => {
  const width = 700
  const page = await browser.newPage({ viewport: { width: 2 * width + 72, height: 100 } })
  const images = pictures.map((png) => `<img src="data:image/png;base64,${png.toString("base64")}">`)
  await page.setContent(`<style>
    body { margin: 0; padding: 24px; background: #dfe6e5; display: grid; grid-template-columns: 1fr 1fr; gap: 24px }
    img { width: 100%; display: block; border-radius: 12px }
  </style>${images.join("")}`)
  return page.screenshot({ fullPage: true })
}

try {
  const { base, key: developmentKey } = await started
  await untilLoaded(base, developmentKey)
  const key = operatorKey()
  const args = ["--no-sandbox", "--autoplay-policy=no-user-gesture-required", "--mute-audio"]
  const browser = await chromium.launch({ executablePath: browserPath, args })
  const picture = await together(browser, await picturesOf(browser, base, key))
  await browser.close()
  if (picture.length > mostBytes)
    throw new Error(`the picture has ${picture.length} bytes, more than ${mostBytes}`)
  mkdirSync(join(root, "docs/pictures"), { recursive: true })
  writeFileSync(target, picture)
  console.log(`docs/pictures/playground.png, ${picture.length} bytes`)
} finally {
  node.removeAllListeners("exit")
  const ended = new Promise((resolve) => node.once("exit", resolve))
  node.kill("SIGTERM")
  await ended
  rmSync(folder, { recursive: true, force: true })
}
