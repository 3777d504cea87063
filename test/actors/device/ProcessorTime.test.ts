// Reads processor time from /proc.
import { expect, it } from "vitest"
import { processorMsIn } from "#actors/device/ProcessorTime.ts"

it("reads the times behind a name with spaces and parentheses", () => {
  const stat = "42 (a (b) c) S 1 42 42 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 11 0 100 0 0"
  expect(processorMsIn(stat)).toBe(2_000)
  expect(processorMsIn("")).toBeUndefined()
})
