// The browser that browser tests drive: the machine's own Chromium or Chrome, without a window.
import { type Browser, chromium } from "playwright-core"
import { browserPath } from "../groups/Needs.ts"
import { uses } from "../groups/Uses.ts"

/** Starts it; tests that call this have `needs("browser")`. */
export const startBrowser = (...args: ReadonlyArray<string>): Promise<Browser> => {
  uses("browser", "a browser")
  if (browserPath === undefined) throw new Error("no browser on this machine")
  return chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", ...args] })
}
