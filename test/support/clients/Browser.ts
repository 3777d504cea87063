// The browser of browser tests: the installed Chromium or Chrome, headless.
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core"
import { browserPath } from "../groups/Needs.ts"
import { uses } from "../groups/Uses.ts"

/** Starts the browser. Tests that call this need the option `needs("browser")`. */
export const startBrowser = (...args: ReadonlyArray<string>): Promise<Browser> => {
  uses("browser", "a browser")
  if (browserPath === undefined) throw new Error("no browser on this machine")
  return chromium.launch({
    executablePath: browserPath,
    args: ["--no-sandbox", ...args],
    // It ends when its pipe to this process closes, so nothing has to listen for signals as long as it runs.
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  })
}

let shared: Promise<Browser> | undefined

/** The browser of all files of this worker that need no microphone: a start takes two seconds. It ends with the worker. */
export const sharedBrowser = (): Promise<Browser> => {
  uses("browser", "a browser")
  shared ??= startBrowser("--autoplay-policy=no-user-gesture-required", "--mute-audio")
  return shared
}

/** Closes all pages of a browser that other files go on using. */
export const closePages = async (browser: Browser | undefined): Promise<void> => {
  for (const context of browser?.contexts() ?? []) await context.close()
}

interface PlaygroundOptions {
  /** The panel that is shown: `chat`, `speak`, `listen` or `node`. */
  readonly panel?: string
  readonly context?: BrowserContextOptions
  /** Runs before the page is opened. */
  readonly prepare?: (page: Page) => Promise<unknown>
}

/** The playground of a node with its development key filled in, and the page's errors and requests so far. */
export const openPlayground = async (
  browser: Browser,
  { base, keys }: { readonly base: string; readonly keys: { readonly dev: string } },
  { context, panel = "chat", prepare }: PlaygroundOptions = {},
): Promise<{
  readonly page: Page
  readonly complaints: ReadonlyArray<string>
  /** Addresses, `blob:` and `data:` ones included. */
  readonly requested: ReadonlyArray<string>
}> => {
  const complaints: Array<string> = []
  const requested: Array<string> = []
  const page = await browser.newPage(context)
  // Only ends what hangs: a busy machine takes its time to draw.
  page.setDefaultTimeout(120_000)
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text())
  })
  page.on("pageerror", (error) => complaints.push(error.message))
  page.on("request", (request) => requested.push(request.url()))
  page.on("websocket", (socket) => requested.push(socket.url()))
  await prepare?.(page)
  await page.goto(`${base}/#${panel}`)
  await page.fill("#key", keys.dev)
  await page.dispatchEvent("#key", "change")
  return { page, complaints, requested }
}
