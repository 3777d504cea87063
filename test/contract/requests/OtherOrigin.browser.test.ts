// A page of another origin in a real browser: it may send the headers that OpenAI's packages send, and read what they read.
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { closePages, sharedBrowser } from "../../support/clients/Browser.ts"
import { has, needs } from "../../support/groups/Needs.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

/** Another port is another origin. */
const elsewhere = createServer((_, response) => {
  response.setHeader("content-type", "text/html").end("<p>elsewhere</p>")
})
let node: TestNode
let browser: Browser | undefined
beforeAll(async () => {
  if (!has("browser")) return
  node = await startNode({ rateLimit: 1_000 })
  await untilLoaded(node, "fake")
  browser = await sharedBrowser()
  await once(elsewhere.listen(0, "127.0.0.1"), "listening")
})
afterAll(async () => {
  await closePages(browser)
  await node?.stop()
  elsewhere.close()
})

it("chats with any headers of its own", needs("browser"), async () => {
  const page = await browser!.newPage()
  await page.goto(`http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/`)
  const answer = await page.evaluate(
    async ({ base, key }) => {
      const response = await fetch(`${base}/v1/chat/completions`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": "application/json",
          "x-stainless-lang": "js",
          "x-stainless-retry-count": "0",
          "openai-organization": "a",
        },
        body: JSON.stringify({ model: "fake", messages: [{ role: "user", content: "hi" }] }),
      })
      const { object } = (await response.json()) as { object?: string }
      return [response.status, object, response.headers.get("x-ratelimit-limit")]
    },
    { base: node.base, key: node.keys.dev },
  )
  expect(answer).toEqual([200, "chat.completion", "1000"])
  await page.close()
})
