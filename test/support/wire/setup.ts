// Runs before each test file, and makes `expect` cheap: contract tests fail if a listener sends something that is not declared (WireCheck).
import { afterAll, afterEach, chai, expect } from "vitest"
import { connections, startTap, stopTap } from "./WireTap.ts"

/** Most problems that are shown for one test. */
const mostProblems = 10

const check = async (): Promise<void> => {
  if (connections.size === 0) return
  const { wireProblems } = await import("./WireCheck.ts")
  const problems = wireProblems()
  if (problems.length === 0) return
  const more = problems.length > mostProblems ? `\n… and ${problems.length - mostProblems} more` : ""
  throw new Error(`not declared (src/api/declared):\n${problems.slice(0, mostProblems).join("\n")}${more}`)
}

// Without a proxy around each of chai's assertions, which only names a property that does not exist, as the compiler does, `expect` takes
// 4 instead of 9 us (measured): property tests call it a million times.
chai.config.useProxy = false

stopTap()
if (expect.getState().testPath?.includes("/test/contract/")) {
  startTap()
  afterEach(check)
  afterAll(check)
}
