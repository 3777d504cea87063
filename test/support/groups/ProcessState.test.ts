// What Guard.ts finds that a file leaves behind for the next one in its worker.
import { afterEach, expect, it, vi } from "vitest"
import { changesSince, processState } from "./ProcessState.ts"

const before = processState()
const ignore = () => {}
afterEach(() => {
  process.off("SIGUSR2", ignore)
  vi.useRealTimers()
  vi.unstubAllEnvs()
  vi.unstubAllGlobals()
  expect(changesSince(before)).toEqual([])
})

it("is what a file has set, removed or replaced of the whole process", () => {
  process.on("SIGUSR2", ignore)
  vi.stubEnv("EDGEWISE_FAKE_ENGINES", undefined)
  vi.stubEnv("ONE_MORE", "")
  vi.stubGlobal("WebSocket", class {})
  expect(changesSince(before).toSorted()).toEqual([
    "listeners for the process's SIGUSR2",
    "the environment variable EDGEWISE_FAKE_ENGINES",
    "the environment variable ONE_MORE",
    "the global WebSocket",
  ])
})

it("is a clock that stands still", () => {
  vi.useFakeTimers()
  expect(changesSince(before)).toContain("the global setTimeout")
})
