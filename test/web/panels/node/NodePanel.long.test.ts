// The playground's panel Node, in a real browser where there is one: with an operator's key it shows models, devices and the
// tree, loads and unloads, and says why a model failed; with another key it says which scope is missing.
import { Effect } from "effect"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import { closePages, openPlayground, sharedBrowser } from "../../../support/clients/Browser.ts"
import { has, needs } from "../../../support/groups/Needs.ts"
import { builtInModel } from "../../../support/nodes/BuiltInModels.ts"
import { presetModel, withoutWeights } from "../../../support/nodes/SpeechNode.ts"
import { startNode, type TestNode, untilLoaded } from "../../../support/nodes/TestNode.ts"

const withBrowser = needs("browser")

let node: TestNode
let browser: Browser | undefined
let page: Page
let complaints: ReadonlyArray<string> = []
beforeAll(async () => {
  if (!has("browser")) return
  const broken = { id: "broken", options: { loadFailure: "broken weights" } }
  node = await startNode({ models: [builtInModel("llm-3.5-27b"), withoutWeights(presetModel), broken] })
  await untilLoaded(node, "llm-3.5-27b", "tts-82m")
  const made = Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "ops", scope: "superadmin" }))
  const { apiKey } = await node.run(made)
  browser = await sharedBrowser()
  const operator = { base: node.base, keys: { dev: apiKey } }
  ;({ complaints, page } = await openPlayground(browser, operator, { panel: "node" }))
  await page.waitForSelector("#node-models li")
})
afterAll(async () => {
  await closePages(browser)
  await node?.stop()
})

const row = (id: string) => page.locator("#node-models li", { hasText: id })
const rowShows = (id: string, pattern: RegExp) =>
  expect.poll(() => row(id).textContent(), { timeout: 60_000 }).toMatch(pattern)

it("shows each model's state, memory, streams and queue", withBrowser, async () => {
  await rowShows(
    "llm-3.5-27b",
    /^llm-3\.5-27b textloadeddemonstration model, \d.* million parameters\d+ MB0 of 16 streams0 in the queueUnload$/,
  )
  await rowShows("tts-82m", /speechloaded/)
})

it("unloads and loads a model", withBrowser, async () => {
  await row("tts-82m").getByRole("button").click()
  // Without a process it has neither memory nor streams.
  await rowShows("tts-82m", /^tts-82m speechunloadeddemonstration modelLoad$/)
  expect(node.status("tts-82m")).toBe("unloaded")
  await row("tts-82m").getByRole("button").click()
  await rowShows("tts-82m", /speechloaded.*Unload$/)
  // The row comes from another answer of the node.
  await expect.poll(() => page.textContent("#node-done")).toMatch(/^tts-82m loaded in \d/)
})

it("says why a model failed", withBrowser, async () => {
  await row("broken").getByRole("button").click()
  await expect
    .poll(() => page.textContent("#node-problem"), { timeout: 60_000 })
    .toMatch(/broken weights.*try again in \d+ s\.$/)
  await rowShows("broken", /failed.*Load.*broken weights/)
})

it("shows devices, what runs, and the key's usage", withBrowser, async () => {
  await expect.poll(() => page.textContent("#node-devices")).toMatch(/GB, \d+ % busy.*engine tts-82m/)
  await expect.poll(() => page.textContent("#node-tree")).toMatch(/model llm-3\.5-27b\s*loaded/)
  await expect
    .poll(() => page.textContent("#node-usage"))
    .toMatch(/^ops \/ default, superadmin\. Balance: 5\.00 USD$/)
  await expect.poll(() => page.textContent("#node-facts")).toMatch(/health(healthy|degraded)/)
})

it("says which scope is missing where the key is no operator's", withBrowser, async () => {
  await page.fill("#key", node.keys.dev)
  await page.keyboard.press("Enter")
  await expect
    .poll(() => page.textContent("#node-scope"))
    .toMatch(/need a key with the superadmin scope: "edgewise keys create/)
  await expect.poll(() => row("tts-82m").getByRole("button").isDisabled()).toBe(true)
  await rowShows("tts-82m", /speechloaded.*\d+ MB/)
  // Once, and not at each part that needs such a key. The parts are those of several answers.
  await expect.poll(async () => (await page.innerText("#node")).match(/superadmin/g)).toHaveLength(2)
  await expect.poll(() => page.isVisible("#node-devices-card")).toBe(false)
  await expect.poll(() => page.isVisible("#node-tree-card")).toBe(false)
  const describedBy = () => row("tts-82m").getByRole("button").getAttribute("aria-describedby")
  await expect.poll(describedBy).toBe("node-scope")
})

it("breaks no rule of the page, and tries nothing that is refused", withBrowser, () => {
  // The failed load above is an error to the browser, which logs it.
  expect(complaints.filter((text) => !/status of 503/.test(text))).toEqual([])
})
