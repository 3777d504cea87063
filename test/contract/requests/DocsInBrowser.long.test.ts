// The API reference in a real browser.
import type { Page } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { startBrowser } from "../../support/clients/Browser.ts"
import { needs } from "../../support/groups/Needs.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [fakeModel, fakeVoice] })
})
afterAll(() => node.stop())

/**
 * Sends the example of an operation that the page shows; the answer's status. Then closes the dialog that sent it, but only once all of
 * the answer has come: closing it ends the request, and when that happens amid the answer's body, Scalar's button stays disabled for good.
 */
const sendExample = async (view: Page, method: string, path: string): Promise<number> => {
  const client = view.getByRole("dialog", { name: "API Client" })
  const send = client.locator('button:not([aria-disabled="true"])', { hasText: /^\s*Send/ }).first()
  const click = async () => {
    await view.getByRole("button", { name: `Test Request (${method} ${path})` }).click()
    await send.click()
  }
  const [answered] = await Promise.all([view.waitForResponse(`${node.base}${path}`), click()])
  await answered.finished()
  await send.waitFor()
  await view.keyboard.press("Escape")
  await client.waitFor({ state: "hidden" })
  return answered.status()
}

/** The address of the page's script. */
const scriptPath = async (): Promise<string> => {
  const html = await (await node.fetch("/docs")).text()
  return `/${/<script src="([^"]+)"/.exec(html)?.[1]}`
}

it(
  "shows every operation in a browser, which loads nothing from elsewhere and has nothing to complain about",
  needs("browser"),
  async () => {
    const browser = await startBrowser()
    try {
      const view = await browser.newPage({ viewport: { width: 1_300, height: 900 } })
      const complaints: Array<string> = []
      const asked: Array<string> = []
      view.on("console", (message) => {
        if (message.type() === "error" || message.type() === "warning") complaints.push(message.text())
      })
      view.on("pageerror", (error) => complaints.push(error.message))
      view.on("request", (request) => asked.push(request.url()))
      await view.goto(`${node.base}/docs`)
      const { paths } = (await (await node.fetch("/openapi.json")).json()) as {
        paths: Record<string, Record<string, { tags: ReadonlyArray<string> }>>
      }
      const operations = Object.entries(paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, { tags }]) => ({ path, method, tag: tags[0]! })),
      )
      expect(operations.length).toBeGreaterThan(10)
      const sidebar = view.locator("aside").first()
      await sidebar.getByText("Text", { exact: true }).waitFor()
      for (const tag of new Set(operations.map(({ tag }) => tag))) {
        const closed = sidebar.getByRole("button", { name: `Open Group ${tag}`, exact: true }).first()
        if (await closed.isVisible()) await closed.click()
      }
      for (const { path } of operations) await sidebar.getByText(path, { exact: true }).first().waitFor()

      // And it works: the node answers a request that the page was told to make.
      await sidebar.getByText("/health", { exact: true }).click()
      expect(await sendExample(view, "get", "/health")).toBe(200)

      expect(asked.filter((url) => !url.startsWith(`${node.base}/`))).toEqual([])
      expect(asked).toContain(`${node.base}${await scriptPath()}`)
      expect(complaints).toEqual([])
    } finally {
      await browser.close()
    }
  },
)

it("sends an example that works on this node, with the key as a bearer", needs("browser"), async () => {
  const browser = await startBrowser()
  try {
    const view = await browser.newPage({ viewport: { width: 1_300, height: 900 } })
    const sidebar = view.locator("aside").first()
    const send = async (tag: string, path: string) => {
      const closed = sidebar.getByRole("button", { name: `Open Group ${tag}`, exact: true }).first()
      await sidebar.getByText(tag, { exact: true }).first().waitFor()
      if (await closed.isVisible()) await closed.click()
      await sidebar.getByText(path, { exact: true }).first().click()
      return sendExample(view, "post", path)
    }
    // Without a key: the reference asks for a token, and not for a name and a password.
    await view.goto(`${node.base}/docs`)
    expect(await send("Text", "/v1/chat/completions")).toBe(401)
    expect(await view.getByText(/bearer token/i).count()).toBeGreaterThan(0)
    expect(await view.getByText(/^(username|password)$/i).count()).toBe(0)

    // The key of the playground's tab is known here, too.
    await view.goto(`${node.base}/#key=${node.keys.dev}`)
    await view.waitForSelector("#chat-model option", { state: "attached" })
    await view.getByRole("link", { name: "API reference" }).click()
    expect(await send("Text", "/v1/chat/completions")).toBe(200)
    expect(await send("Speech", "/v1/audio/speech")).toBe(200)
    await view.getByRole("link", { name: "Playground" }).click()
    await view.waitForSelector("#chat-model option", { state: "attached" })
    expect(new URL(view.url()).pathname).toBe("/")

    // It fits a phone, also when all of it is drawn.
    await view.setViewportSize({ width: 390, height: 844 })
    await view.goto(`${node.base}/docs`)
    await view.getByText("/v1/chat/completions").first().waitFor()
    await view.screenshot({ fullPage: true })
    await view.getByText("/v1/audio/speech").first().waitFor()
    expect(await view.evaluate("document.documentElement.scrollWidth")).toBe(390)
  } finally {
    await browser.close()
  }
})
