// README's table of models for people, computed again from the presets.
import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { processBytes } from "#actors/model/MemoryClaim.ts"
import { presetNamed } from "#weights/presets/Presets.ts"
import { repository } from "../support/docs/GuideBlocks.ts"

describe("the models for people", () => {
  const rows = readFileSync(`${repository}/README.md`, "utf8")
    .split("\n")
    .filter((line) => /^\| \d+ GB \|/.test(line))
    .map((line) => line.split("|").map((cell) => cell.trim().replaceAll("`", "")))

  it("are presets, with the sizes of their files and the memory that a node sets aside", () => {
    expect(rows).toHaveLength(3)
    for (const [, machine = "", ears = "", text = "", voice = "", disk, memory] of rows) {
      const sizes = [ears, text, voice].map((name) => presetNamed(name)?.sizeBytes ?? Number.NaN)
      const bytes = sizes.reduce((sum, size) => sum + size, 0)
      expect([machine, disk]).toEqual([machine, `${(bytes / 1e9).toFixed(1)} GB`])
      expect([machine, memory]).toEqual([machine, `${((bytes + 3 * processBytes) / 1e9).toFixed(1)} GB`])
      // Half of the machine is left to the contexts, the system and other programs.
      expect((bytes + 3 * processBytes) / 1e9).toBeLessThan(Number.parseInt(machine, 10) / 2)
    }
  })
})
