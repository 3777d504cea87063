// The README's picture of the playground: four panels in use, side by side.
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import { root, type StartedNode } from "./Started.ts"
import { chat, listen, seeNode, speak, until, useKey } from "./Uses.ts"

const target = join(root, "docs/pictures/playground.png")
const mostBytes = 300_000
const viewport = { width: 1120, height: 700 }

type Scene = readonly [panel: string, colours: "light" | "dark", use: (page: Page) => Promise<unknown>]

const scenes = (key: string): ReadonlyArray<Scene> => [
  [
    "chat",
    "light",
    async (page) => {
      await chat(page)
      await page.evaluate("scrollTo(0, 0)")
    },
  ],
  ["speak", "dark", speak],
  [
    "listen",
    "dark",
    async (page) => {
      await listen(page, key)
      // Some of the text may still change.
      await until(page, "#listen-text .soft", /\w+ \w+ \w+/)
    },
  ],
  ["node", "light", seeNode],
]

const picturesOf = async (
  browser: Browser,
  { base, operatorKey }: StartedNode,
): Promise<ReadonlyArray<Buffer>> => {
  const pictures: Array<Buffer> = []
  for (const [panel, colorScheme, use] of scenes(operatorKey)) {
    const page = await browser.newPage({ viewport, colorScheme, baseURL: base })
    await page.goto(`/#${panel}`)
    await useKey(page, operatorKey)
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

export const drawReadme = async (browser: Browser, node: StartedNode): Promise<void> => {
  const picture = await together(browser, await picturesOf(browser, node))
  if (picture.length > mostBytes)
    throw new Error(`the picture has ${picture.length} bytes, more than ${mostBytes}`)
  mkdirSync(join(root, "docs/pictures"), { recursive: true })
  writeFileSync(target, picture)
  console.log(`docs/pictures/playground.png, ${picture.length} bytes`)
}
