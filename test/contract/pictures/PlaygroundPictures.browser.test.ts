// The playground's pictures, in a real browser where there is one: chosen, pasted and dropped ones reach the model with their
// question, one that was removed does not, and a model of text takes none.
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { closePages, openPlayground, sharedBrowser } from "../../support/clients/Browser.ts"
import { has, needs } from "../../support/groups/Needs.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"
import { plain, png } from "../../support/pictures/PictureFiles.ts"

const withBrowser = needs("browser")

let node: TestNode
let browser: Browser | undefined
let page: Page
let complaints: ReadonlyArray<string> = []
beforeAll(async () => {
  if (!has("browser")) return
  const seeing = { ...fakeModel, id: "llm-seeing", options: { pictures: { maxPixels: 10_000 } } }
  node = await startNode({ models: [{ ...fakeModel, id: "llm-text" }, seeing] })
  browser = await sharedBrowser()
  ;({ complaints, page } = await openPlayground(browser, node))
  await page.waitForSelector("#chat-model option[value=llm-seeing]", { state: "attached" })
})
afterAll(async () => {
  await closePages(browser)
  await node?.stop()
})

const red = png(8, 4, plain(255, 0, 0))
const green = png(6, 6, plain(0, 255, 0))
const blue = png(4, 8, plain(0, 0, 255))

/** What the page runs: a text, because the page's own types are not those of this program. */
const giving = `([kind, base64]) => {
  const data = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))
  const transfer = new DataTransfer()
  transfer.items.add(new File([data], "a.png", { type: "image/png" }))
  const how = { bubbles: true, cancelable: true }
  const event =
    kind === "paste"
      ? new ClipboardEvent("paste", { clipboardData: transfer, ...how })
      : new DragEvent("drop", { dataTransfer: transfer, ...how })
  document.querySelector("#chat-text").dispatchEvent(event)
  return event.defaultPrevented
}`

/** A paste or a drop with a file, as the browser tells the page of it. Whether the page has taken it. */
const give = (kind: "drop" | "paste", bytes: Uint8Array): Promise<unknown> =>
  page.evaluate(`(${giving})(${JSON.stringify([kind, Buffer.from(bytes).toString("base64")])})`)

const thumbs = () => expect.poll(() => page.locator("#chat-pictures img").count())
const ask = async (text: string) => {
  await page.fill("#chat-text", text)
  await page.click("#chat-send")
}
const answer = () =>
  expect.poll(() => page.locator(".assistant .text:not(.thinking .text)").last().textContent())

it("a model of text takes no pictures", withBrowser, async () => {
  await page.selectOption("#chat-model", "llm-text")
  expect(await page.isVisible("#chat-attach")).toBe(false)
  expect(await give("paste", red)).toBe(true)
  await expect.poll(() => page.textContent("#chat-problem")).toMatch(/^llm-text takes no pictures/)
  await thumbs().toBe(0)
})

it(
  "chosen, pasted and dropped pictures reach the model in their order, a removed one does not",
  withBrowser,
  async () => {
    await page.selectOption("#chat-model", "llm-seeing")
    expect(await page.isVisible("#chat-attach")).toBe(true)
    const file = (buffer: Buffer) => ({ name: "a.png", mimeType: "image/png", buffer })
    await page.setInputFiles("#chat-file", [file(red), file(green)])
    await thumbs().toBe(2)
    expect(await give("paste", blue)).toBe(true)
    await thumbs().toBe(3)
    expect(await give("drop", red)).toBe(true)
    await thumbs().toBe(4)
    await page.click("#chat-pictures button:nth-child(2)")
    await thumbs().toBe(3)
    await ask("What?")
    await answer().toMatch(/\[8x4 auto ff0000.*\[4x8 auto 0000ff.*\[8x4 auto ff0000.*What\?/)
    await thumbs().toBe(0)
    expect(await page.locator(".user img").count()).toBe(3)
  },
)

it("the next question goes with the same pictures", withBrowser, async () => {
  await ask("And now?")
  await answer().toMatch(/And now\?/)
  expect(await page.locator(".user").last().locator("img").count()).toBe(0)
})

it("breaks no rule of the page", withBrowser, () => expect(complaints).toEqual([]))
