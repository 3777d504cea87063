// The browser of browser tests: the installed Chromium or Chrome, headless.
import { type Browser, chromium, type Page } from "playwright-core"
import { browserPath } from "../groups/Needs.ts"
import { uses } from "../groups/Uses.ts"

/** Starts the browser. Tests that call this need the option `needs("browser")`. */
export const startBrowser = (...args: ReadonlyArray<string>): Promise<Browser> => {
  uses("browser", "a browser")
  if (browserPath === undefined) throw new Error("no browser on this machine")
  return chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", ...args] })
}

/** The playground of a node with its development key filled in, and the page's errors so far. */
export const openPlayground = async (
  browser: Browser,
  { base, keys }: { readonly base: string; readonly keys: { readonly dev: string } },
): Promise<{ readonly page: Page; readonly complaints: ReadonlyArray<string> }> => {
  const complaints: Array<string> = []
  const page = await browser.newPage()
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text())
  })
  page.on("pageerror", (error) => complaints.push(error.message))
  await page.goto(base)
  await page.fill("#key", keys.dev)
  await page.dispatchEvent("#key", "change")
  return { page, complaints }
}
