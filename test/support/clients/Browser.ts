// The browser of browser tests: the installed Chromium or Chrome, headless.
import { type Browser, chromium } from "playwright-core"
import { browserPath } from "../groups/Needs.ts"
import { uses } from "../groups/Uses.ts"

/** Starts the browser. Tests that call this need the option `needs("browser")`. */
export const startBrowser = (...args: ReadonlyArray<string>): Promise<Browser> => {
  uses("browser", "a browser")
  if (browserPath === undefined) throw new Error("no browser on this machine")
  return chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", ...args] })
}
