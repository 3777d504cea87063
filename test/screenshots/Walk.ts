// Every panel of the playground and the API reference, as a stranger sees them: empty, in use and broken, at three sizes, light
// and dark. The pictures are for looking at; they are not part of the project.
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import { startRelay } from "../support/servers/Relay.ts"
import type { StartedNode } from "./Started.ts"
import { chat, listen, seeNode, speak, talk, until, useKey } from "./Uses.ts"

const sizes = [
  { width: 1280, height: 800 },
  { width: 1280, height: 1100 },
  { width: 390, height: 844 },
]
const colours = ["light", "dark"] as const

interface Scene {
  readonly name: string
  /** The address behind that of the node. */
  readonly path: string
  /** `cut` ends the connections to the node, and new ones are refused from then on. */
  readonly use: (page: Page, node: StartedNode, cut: () => void) => Promise<unknown>
}

const ask = async (page: Page, text: string): Promise<void> => {
  await page.fill("#chat-text", text)
  await page.click("#chat-send")
}

const scenes: ReadonlyArray<Scene> = [
  ...["chat", "speak", "listen", "talk", "node"].map(
    (panel): Scene => ({
      name: `${panel}-empty`,
      path: `#${panel}`,
      use: (page) => until(page, "#notice", /^Paste the API key/),
    }),
  ),
  {
    name: "chat-used",
    path: "#chat",
    use: async (page, { developmentKey }) => {
      await useKey(page, developmentKey)
      await chat(page)
      await page.click("#chat-expert summary")
    },
  },
  {
    name: "speak-used",
    path: "#speak",
    use: async (page, { developmentKey }) => {
      await useKey(page, developmentKey)
      await speak(page)
    },
  },
  {
    name: "listen-used",
    path: "#listen",
    use: async (page, { developmentKey }) => {
      await useKey(page, developmentKey)
      await listen(page, developmentKey)
    },
  },
  {
    name: "talk-used",
    path: "#talk",
    use: async (page, { developmentKey }) => {
      await useKey(page, developmentKey)
      await talk(page)
    },
  },
  {
    name: "node-used",
    path: "#node",
    use: async (page, { operatorKey }) => {
      await useKey(page, operatorKey)
      await seeNode(page)
      await page.locator("#node-tree li").first().waitFor()
    },
  },
  {
    name: "node-no-operator",
    path: "#node",
    use: async (page, { developmentKey }) => {
      await useKey(page, developmentKey)
      await seeNode(page)
    },
  },
  {
    name: "chat-broken",
    path: "#chat",
    use: async (page, { developmentKey }, cut) => {
      await useKey(page, developmentKey)
      await chat(page)
      // An answer that does not end by itself within the time of a picture.
      await page.route("**/v1/chat/completions", (route) =>
        route.fulfill({
          contentType: "text/event-stream",
          body: `data: ${JSON.stringify({ choices: [{ delta: { content: "Once there was a fox that" } }] })}\n\n`,
        }),
      )
      await ask(page, "Tell me another story.")
      await until(page, "#chat-problem", /ended in the middle/)
      cut()
      await page.unroute("**/v1/chat/completions")
      await ask(page, "And a third one?")
      await until(page, "#chat-problem", /does not answer/)
    },
  },
  {
    name: "speak-broken",
    path: "#speak",
    use: async (page, { developmentKey }, cut) => {
      await useKey(page, developmentKey)
      await page.fill("#speak-text", "The fox went home. ".repeat(150))
      await page.click("#speak-play")
      await until(page, "#speak-status", /s of speech/)
      cut()
      await until(page, "#speak-status", /^Broken off/)
    },
  },
  {
    name: "listen-broken",
    path: "#listen",
    use: async (page, { developmentKey }, cut) => {
      await useKey(page, developmentKey)
      await listen(page, developmentKey, 4)
      cut()
      await until(page, "#listen-status", /^Broken off/)
    },
  },
  {
    name: "talk-broken",
    path: "#talk",
    use: async (page, { developmentKey }, cut) => {
      await useKey(page, developmentKey)
      await talk(page)
      cut()
      await until(page, "#talk-floor", /^Broken off/)
    },
  },
  {
    name: "node-broken",
    path: "#node",
    use: async (page, { developmentKey }) => {
      await page.fill("#key", developmentKey.replace(/.$/, "?"))
      await page.keyboard.press("Enter")
      await until(page, "#notice", /^The node refused the key/)
    },
  },
  {
    name: "docs-empty",
    path: "docs",
    use: (page) => page.getByText("/v1/chat/completions").first().waitFor(),
  },
  {
    name: "docs-used",
    path: "docs",
    use: async (page, { developmentKey }) => {
      await page.evaluate(
        `sessionStorage.setItem("edgewise.key", ${JSON.stringify(JSON.stringify(developmentKey))})`,
      )
      await page.reload()
      await page.getByRole("button", { name: "Test Request (post /v1/chat/completions)" }).click()
      await page.getByRole("button", { name: /^Send/ }).first().click()
      await page.getByText("200 OK").first().waitFor()
    },
  },
  {
    name: "docs-broken",
    path: "docs",
    use: async (page) => {
      await page.getByRole("button", { name: "Test Request (post /v1/chat/completions)" }).click()
      await page.getByRole("button", { name: /^Send/ }).first().click()
      await page.getByText(/^401/).first().waitFor()
    },
  },
]

/**
 * Writes the pictures into a folder: one of the window as it opens, with `-page` behind it one of the whole page.
 * @param only a part of the names of the scenes that are wanted
 */
export const walk = async (
  browser: Browser,
  node: StartedNode,
  folder: string,
  only: string,
): Promise<void> => {
  mkdirSync(folder, { recursive: true })
  for (const { name, path, use } of scenes.filter((scene) => scene.name.includes(only)))
    for (const viewport of sizes)
      for (const colorScheme of colours) {
        const relay = await startRelay(Number(new URL(node.base).port))
        const base = `http://127.0.0.1:${relay.port}/`
        const page = await browser.newPage({ viewport, colorScheme, baseURL: base })
        const picture = `${name}-${viewport.width}x${viewport.height}-${colorScheme}`
        try {
          await page.goto(base + path)
          await use(page, node, () => relay.stop())
          await page.evaluate("scrollTo(0, 0)")
          await page.screenshot({ path: join(folder, `${picture}.png`) })
          await page.screenshot({ path: join(folder, `${picture}-page.png`), fullPage: true })
          const wide = Number(await page.evaluate("document.documentElement.scrollWidth"))
          if (wide > viewport.width) console.log(`${picture} scrolls sideways: ${wide} pixels`)
        } catch (error) {
          console.log(`${picture}: ${error instanceof Error ? error.message : String(error)}`)
          await page.screenshot({ path: join(folder, `${picture}-failed.png`) })
        } finally {
          await page.close()
          relay.stop()
        }
      }
}
