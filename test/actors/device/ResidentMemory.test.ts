import { afterEach, expect, it, vi } from "vitest"
import { ownResidentBytes } from "#actors/device/ResidentMemory.ts"

afterEach(() => vi.restoreAllMocks())

it("the process's own memory is that of the newest reading while no file descriptor is free", () => {
  const before = ownResidentBytes()
  expect(before).toBeGreaterThan(0)
  vi.spyOn(process.memoryUsage, "rss").mockImplementation(() => {
    throw Object.assign(new Error("EMFILE: too many open files, uv_resident_set_memory"), { code: "EMFILE" })
  })
  expect(ownResidentBytes()).toBe(before)
})
