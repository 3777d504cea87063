// Runs before each test file: contract tests fail if a listener sends something that is not declared (WireCheck).
import { afterAll, afterEach, expect } from "vitest"
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

stopTap()
if (expect.getState().testPath?.includes("/test/contract/")) {
  startTap()
  afterEach(check)
  afterAll(check)
}
