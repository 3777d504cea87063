// The playground as a whole, in a real browser where there is one, on the built-in weights: no barriers in light and dark,
// fits a phone, works by keyboard, keeps its state over a reload, and says what to do when something fails.
import { Effect } from "effect"
import type { Browser, BrowserContextOptions, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { playgroundLink } from "#cli/roles/CurlLine.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { seriousFindings } from "../support/clients/Axe.ts"
import { closePages, openPlayground, sharedBrowser } from "../support/clients/Browser.ts"
import { listener } from "../support/clients/LiveClient.ts"
import { has, needs } from "../support/groups/Needs.ts"
import { inLong } from "../support/groups/Runs.ts"
import { builtInModel } from "../support/nodes/BuiltInModels.ts"
import { presetModel, withoutWeights } from "../support/nodes/SpeechNode.ts"
import { fakeModel } from "../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilIdle, untilLoaded } from "../support/nodes/TestNode.ts"
import { startRelay } from "../support/servers/Relay.ts"

const withBrowser = needs("browser")
const longWithBrowser = { ...withBrowser, ...inLong }
const panels = ["chat", "speak", "listen", "talk", "node"]

let node: TestNode
let browser: Browser | undefined
beforeAll(async () => {
  if (!has("browser")) return
  node = await startNode({
    models: [
      builtInModel("llm-3.5-27b"),
      withoutWeights(presetModel),
      listener({}, { id: "stt-large-v3-turbo" }),
      { ...fakeModel, id: "llm-fake" },
    ],
  })
  await untilLoaded(node, "llm-3.5-27b")
  browser = await sharedBrowser()
})
afterAll(async () => {
  await closePages(browser)
  await node?.stop()
})

const open = async (context: BrowserContextOptions, panel = "chat") => {
  const opened = await openPlayground(browser!, node, { panel, context })
  await opened.page.waitForSelector("#chat-model option", { state: "attached" })
  return opened
}
const shows = (page: Page, selector: string, pattern: RegExp) =>
  expect.poll(() => page.locator(selector).last().textContent(), { timeout: 60_000 }).toMatch(pattern)
const ask = async (page: Page, text: string) => {
  await page.fill("#chat-text", text)
  await page.click("#chat-send")
}

describe.each(["light", "dark"] as const)("in %s", (colorScheme) => {
  it("has no serious barrier on any panel, with content in it", longWithBrowser, async () => {
    const { complaints, page, requested } = await open({ colorScheme })
    await ask(page, "What is the capital of Italy?")
    await shows(page, ".receipt .price", /USD$/)
    await page.click("#chat-code summary")
    for (const panel of panels) {
      await page.click(`#tab-${panel}`)
      await page.waitForSelector(`#${panel}`, { state: "visible" })
      if (panel === "node") await page.waitForSelector("#node-models li")
      expect([panel, await seriousFindings(page)]).toEqual([panel, []])
    }
    expect(complaints).toEqual([])
    expect(requested.filter((url) => !url.startsWith(node.base))).toEqual([])
    await page.close()
  })
})

it("fits a phone without scrolling sideways", longWithBrowser, async () => {
  const { page } = await open({ viewport: { width: 360, height: 740 } })
  await ask(page, "What is the capital of Italy?")
  await shows(page, ".receipt .price", /USD$/)
  for (const panel of panels) {
    await page.click(`#tab-${panel}`)
    await page.waitForSelector(`#${panel}`, { state: "visible" })
    if (panel === "node") await page.waitForSelector("#node-models li")
    await page.evaluate(
      `for (const one of document.querySelectorAll("#${panel} :is(.expert, .code)")) one.open = true`,
    )
    const width = await page.evaluate("document.documentElement.scrollWidth")
    expect([panel, width]).toEqual([panel, 360])
  }
  await page.close()
})

it("changes panels by keyboard, and says which one is shown", longWithBrowser, async () => {
  const { page } = await open({})
  const chosen = () => page.locator('.tabs [aria-selected="true"]').getAttribute("id")
  await page.focus("#tab-chat")
  for (const [key, tab] of [
    ["ArrowRight", "tab-speak"],
    ["End", "tab-node"],
    ["ArrowRight", "tab-chat"],
    ["ArrowLeft", "tab-node"],
    ["Home", "tab-chat"],
  ] as const) {
    await page.keyboard.press(key)
    expect(await chosen()).toBe(tab)
    expect(await page.evaluate("document.activeElement.id")).toBe(tab)
  }
  expect(await page.locator('.tabs [tabindex="0"]').count()).toBe(1)
  await page.close()
})

it("keeps key, panel, settings and conversation over a reload", withBrowser, async () => {
  const { page } = await open({})
  await ask(page, "What is the capital of Italy?")
  await shows(page, ".assistant .text", /Rome/)
  await shows(page, ".receipt .price", /USD$/)
  await page.click("#chat-expert summary")
  await page.fill("#chat-temperature", "0.5")
  await page.fill("#chat-text", "a draft")
  await page.selectOption("#chat-model", "llm-fake")
  await page.click("#tab-speak")
  await page.fill("#speak-text", "Good evening.")
  await page.reload()
  await page.waitForSelector("#chat-model option", { state: "attached" })
  expect(await page.isVisible("#speak")).toBe(true)
  expect(await page.inputValue("#speak-text")).toBe("Good evening.")
  await page.click("#tab-chat")
  expect(await page.inputValue("#chat-temperature")).toBe("0.5")
  expect(await page.inputValue("#chat-text")).toBe("a draft")
  expect(await page.inputValue("#chat-model")).toBe("llm-fake")
  expect(await page.locator(".message").allTextContents()).toEqual([
    expect.stringContaining("capital of Italy"),
    expect.stringContaining("Rome"),
  ])
  expect(await page.inputValue("#key")).toBe(node.keys.dev)
  // The key is in the tab's own storage, which a closed tab takes with it.
  expect(await page.evaluate("JSON.stringify(localStorage)")).not.toContain(node.keys.dev)
  await page.close()
})

it("asks for a key where there is none, and says what to do with a wrong one", withBrowser, async () => {
  const page = await browser!.newPage()
  await page.goto(node.base)
  await shows(page, "#notice", /^Paste the API key/)
  await page.fill("#key", "svc_wrong")
  await page.keyboard.press("Enter")
  await shows(
    page,
    "#notice",
    /^The node refused the key \(Invalid API key\): paste the one that its start printed/,
  )
  await page.close()
})

it("shows a call of a tool and goes on with its result", withBrowser, async () => {
  const { page } = await open({})
  await page.selectOption("#chat-model", "llm-3.5-27b")
  await page.click("#chat-expert summary")
  await page.fill("#chat-tools", "{")
  await shows(page, "#chat-tools-problem", /^Tools: this is no JSON/)
  await page.click("#chat-tools-example")
  await shows(page, "#chat-tools-problem", /^$/)
  await ask(page, "What is the weather in Rome?")
  await shows(page, ".call strong", /^calls get_weather$/)
  await shows(page, ".receipt .price", /USD$/)
  // The call still waits for its result after a reload.
  await page.reload()
  await page.waitForSelector("#chat-model option", { state: "attached" })
  await page.fill(".call input", "sunny, 24 degrees")
  await page.click(".call form button")
  await expect.poll(() => page.locator(".message.assistant").count(), { timeout: 60_000 }).toBe(2)
  await shows(page, ".message.tool .text", /^sunny, 24 degrees$/)
  await page.close()
})

it("plays nothing where the browser blocks sound, and says so", longWithBrowser, async () => {
  const { page } = await openPlayground(browser!, node, {
    panel: "speak",
    prepare: (one) =>
      one.addInitScript({
        content: `AudioContext.prototype.resume = () => new Promise(() => {})
          Object.defineProperty(AudioContext.prototype, "state", { get: () => "suspended" })`,
      }),
  })
  await page.waitForSelector("#speak-voice option", { state: "attached" })
  await page.click("#speak-play")
  await shows(page, "#speak-problem", /^The browser blocked the sound: press Play again/)
  await shows(page, "#speak-play", /^Play$/)
  await page.close()
})

it("keeps what came of an answer whose node goes away in the middle", withBrowser, async () => {
  const relay = await startRelay(node.port)
  const base = `http://127.0.0.1:${relay.port}`
  const { page } = await openPlayground(browser!, { base, keys: node.keys })
  await page.waitForSelector("#chat-model option", { state: "attached" })
  await page.selectOption("#chat-model", "llm-fake")
  await page.click("#chat-expert summary")
  await page.fill("#chat-max", "4000")
  await ask(page, 'fake:{"tokens":3000,"tokenMs":50}')
  await shows(page, ".assistant .text", /token/)
  relay.stop()
  await shows(page, "#chat-problem", /^The connection ended in the middle: what came so far is shown/)
  expect(await page.locator(".assistant > .text").last().textContent()).toMatch(/token/)
  expect(await page.locator(".assistant > .broken").last().textContent()).toBe(
    "Broken off: the answer has no end",
  )
  expect(await page.isVisible(".assistant > .broken")).toBe(true)
  await ask(page, "Again?")
  await shows(page, "#chat-problem", /^The node does not answer: check that it runs, then try again\.$/)
  // The message that could not be sent is in its field again.
  expect(await page.inputValue("#chat-text")).toBe("Again?")
  await page.close()
  await untilIdle(node)
})

/** Where the page and the window stand, and whether head, tabs and key field are inside of the window. */
const standing = (page: Page) =>
  page.evaluate(`(() => {
    const inside = (id) => {
      const { bottom, top } = document.querySelector(id).getBoundingClientRect()
      return top >= 0 && bottom <= innerHeight
    }
    return { scrollY, head: inside(".top"), tabs: inside(".tabs"), key: inside("#key") }
  })()`)

const sizes: ReadonlyArray<readonly [number, number]> = [
  [390, 844],
  [1280, 800],
  [1280, 1100],
]

describe.each(sizes)("at %i × %i", inLong, (width, height) => {
  it("opens at its top, and the head stays in sight", withBrowser, async () => {
    const fresh = await browser!.newPage({ viewport: { width, height } })
    for (const panel of panels) {
      // Another document first: a new fragment alone does not load the page again.
      await fresh.goto("about:blank")
      await fresh.goto(`${node.base}/#${panel}`)
      await shows(fresh, "#notice", /^Paste the API key/)
      expect([panel, await standing(fresh)]).toEqual([
        panel,
        { scrollY: 0, head: true, tabs: true, key: true },
      ])
    }
    await fresh.close()
    const { page } = await open({ viewport: { width, height } })
    const turns = Array.from({ length: 30 }, () => [
      { role: "user", text: "What is the capital of Italy?" },
      { role: "assistant", text: "The capital of Italy is Rome." },
    ])
    await page.evaluate(
      `sessionStorage.setItem("edgewise.chat.messages", ${JSON.stringify(JSON.stringify(turns.flat()))})`,
    )
    await page.reload()
    await page.waitForSelector(".message.assistant")
    await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    expect(await page.evaluate("scrollY > 0")).toBe(true)
    expect(await standing(page)).toMatchObject({ head: true, tabs: true, key: true })
    await page.reload()
    await page.waitForSelector("#chat-model option", { state: "attached" })
    expect(await standing(page)).toEqual({ scrollY: 0, head: true, tabs: true, key: true })
    await page.close()
  })
})

it("takes the key from the link that a start prints, and out of the address", withBrowser, async () => {
  const page = await browser!.newPage()
  const requested: Array<string> = []
  page.on("request", (request) => requested.push(`${request.url()} ${JSON.stringify(request.headers())}`))
  await page.goto(playgroundLink(node.base, node.keys.dev))
  await page.waitForSelector("#chat-model option", { state: "attached" })
  expect(await page.inputValue("#key")).toBe(node.keys.dev)
  expect(await page.evaluate("location.href")).toBe(`${node.base}/#chat`)
  expect(await page.isVisible("#notice")).toBe(false)
  // Addresses do not have it, and no header but the one for it.
  const leaks = requested.map((line) => line.replace(`"authorization":"Bearer ${node.keys.dev}"`, ""))
  expect(leaks.filter((line) => line.includes(node.keys.dev))).toEqual([])
  // In a tab that shows the page already, a link is a change of the fragment only.
  await page.click("#tab-speak")
  await page.evaluate(`location.hash = "key=${node.keys.credit}"`)
  await expect.poll(() => page.inputValue("#key")).toBe(node.keys.credit)
  expect(await page.evaluate("location.href")).not.toContain("key=")
  expect(await page.isVisible("#speak")).toBe(true)
  await page.close()
})

it(
  "takes a key with what was pasted around it, and says when it cannot be one",
  longWithBrowser,
  async () => {
    const page = await browser!.newPage()
    await page.goto(node.base)
    await page.fill("#key", ` “${node.keys.dev}” `)
    await page.keyboard.press("Enter")
    await page.waitForSelector("#chat-model option", { state: "attached" })
    expect(await page.inputValue("#key")).toBe(node.keys.dev)
    await page.fill("#key", "svc_ключ")
    await page.keyboard.press("Enter")
    await shows(page, "#notice", /^The node refused the key \(it has characters that no key has\): paste/)
    await page.close()
  },
)

it("says in one sentence that a key was revoked, and keeps what was typed", longWithBrowser, async () => {
  const made = Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "dev", user: "short" }))
  const { apiKey, keyId } = await node.run(made)
  const { page } = await openPlayground(browser!, { base: node.base, keys: { dev: apiKey } })
  await page.waitForSelector("#chat-model option", { state: "attached" })
  await node.run(Effect.flatMap(Accounts, (accounts) => accounts.revokeKey(keyId)))
  await ask(page, "Is anybody there?")
  await shows(page, "#chat-problem", /^The node refused the key \(Invalid API key\): [^.]+\.$/)
  expect(await page.inputValue("#chat-text")).toBe("Is anybody there?")
  expect(await page.locator(".message").count()).toBe(0)
  await page.reload()
  await shows(page, "#notice", /^The node refused the key/)
  expect(await page.inputValue("#chat-text")).toBe("Is anybody there?")
  await page.close()
})

it("goes on by itself after the node was away, and keeps what was typed", longWithBrowser, async () => {
  const { page } = await open({})
  await page.fill("#chat-text", "a long thought")
  let away = true
  await page.route("**/*", (route) => (away ? route.abort() : route.continue()))
  // The page looks when it is shown again.
  await page.evaluate('document.dispatchEvent(new Event("visibilitychange"))')
  await shows(page, "#health", /^not reachable$/)
  await shows(page, "#notice", /^The node does not answer: what is typed here stays, [^.]+\.$/)
  await page.keyboard.press("Enter")
  await shows(page, "#chat-problem", /^The node does not answer: check that it runs, then try again\.$/)
  away = false
  await shows(page, "#health", /^(healthy|degraded)$/)
  await expect.poll(() => page.isVisible("#notice")).toBe(false)
  expect(await page.inputValue("#chat-text")).toBe("a long thought")
  // A node of another version has other parts of the page.
  await page.route("**/health", (route) =>
    route.fulfill({ json: { status: "healthy", runtime: "edgewise/99.0.0 node/22" } }),
  )
  await page.evaluate('document.dispatchEvent(new Event("visibilitychange"))')
  await shows(page, "#notice", /^The node is edgewise 99\.0\.0 now: reload this page, which is of \S+\.$/)
  await page.close()
})

it("keeps two tabs apart: each has its key, and what was typed in it", longWithBrowser, async () => {
  const context = await browser!.newContext()
  const page = await context.newPage()
  await page.goto(playgroundLink(node.base, node.keys.dev))
  await page.waitForSelector("#chat-model option", { state: "attached" })
  await page.fill("#chat-text", "the first tab")
  const second = await context.newPage()
  await second.goto(node.base)
  await shows(second, "#notice", /^Paste the API key .* each tab keeps its own\.$/)
  await second.fill("#chat-text", "the second tab")
  await page.reload()
  await page.waitForSelector("#chat-model option", { state: "attached" })
  expect(await page.inputValue("#chat-text")).toBe("the first tab")
  await second.reload()
  expect(await second.inputValue("#chat-text")).toBe("the second tab")
  await context.close()
})

it("says what kind of model answers, and how large it is", longWithBrowser, async () => {
  const { page } = await open({})
  const about = /^demonstration model, \d+(\.\d)? million parameters$/
  await page.selectOption("#chat-model", "llm-3.5-27b")
  await shows(page, "#chat-model-about", about)
  await ask(page, "What is the capital of Italy?")
  await shows(page, ".receipt .price", /USD$/)
  expect(await page.textContent(".message.assistant .about")).toMatch(about)
  await page.selectOption("#chat-model", "llm-fake")
  await shows(page, "#chat-model-about", /^$/)
  await page.click("#tab-node")
  await shows(page, "#node-models li:first-child .model-facts span:first-child", about)
  await page.close()
})

it("makes a question a draft again of which a reload left no answer", longWithBrowser, async () => {
  const { page } = await open({})
  const messages = JSON.stringify([{ role: "user", text: "Is it late?" }])
  await page.evaluate(`sessionStorage.setItem("edgewise.chat.messages", ${JSON.stringify(messages)})`)
  await page.reload()
  await expect.poll(() => page.inputValue("#chat-text")).toBe("Is it late?")
  expect(await page.locator(".message").count()).toBe(0)
  await page.close()
})

it("stops an answer on request, and so does the node; reasoning is folded", withBrowser, async () => {
  const { page } = await open({})
  await page.selectOption("#chat-model", "llm-fake")
  await page.click("#chat-expert summary")
  await page.selectOption("#chat-effort", "low")
  await page.fill("#chat-max", "4000")
  await ask(page, 'fake:{"tokens":3000,"tokenMs":20,"reasoning":"first I think"}')
  await shows(page, ".assistant > .text", /token/)
  await page.click("#chat-send")
  await shows(page, "#chat-send", /^Send$/)
  expect(await page.locator(".thinking .text").last().isVisible()).toBe(false)
  await page.locator(".thinking summary").last().click()
  expect(await page.locator(".thinking .text").last().textContent()).toBe("first I think")
  await untilIdle(node)
  await page.close()
})

it(
  "says which model is missing its load, and how long to wait for a full rate",
  longWithBrowser,
  async () => {
    const { page } = await open({})
    const answer = (status: number, detail: string, headers = {}) =>
      page.route("**/v1/chat/completions", (route) => route.fulfill({ status, json: { detail }, headers }))
    await answer(404, "Model not loaded")
    await ask(page, "Hello?")
    await shows(
      page,
      "#chat-problem",
      /^Model not loaded: choose another model, or load this one on the Node panel\.$/,
    )
    await page.unroute("**/v1/chat/completions")
    await answer(429, "Rate limit exceeded", { "retry-after": "7" })
    await page.click("#chat-send")
    await shows(page, "#chat-problem", /^Too many requests with this key: try again in 7 s\.$/)
    await page.close()
  },
)
