// The table of presets: names, repositories and sums of the right form, and what other pages promise.
import { readFileSync } from "node:fs"
import { Schema } from "effect"
import { expect, it } from "vitest"
import { ModelId } from "#domain/models/ModelEntry.ts"
import { isVerified } from "#weights/presets/Preset.ts"
import { presetNamed, presets } from "#weights/presets/Presets.ts"

const page = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8")

it("has each name once, and each is an id", () => {
  const names = presets.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  for (const name of names) expect(Schema.is(ModelId)(name), name).toBe(true)
  expect(presetNamed("WHISPER-base")?.repository).toBe("onnx-community/whisper-base")
  expect(presetNamed("whisper")).toBeUndefined()
})

it.each(presets.map((preset) => [preset.name, preset] as const))(
  "%s can be found and checked",
  (_, preset) => {
    expect(preset.repository).toMatch(/^[\w.-]+\/[\w.-]+$/)
    expect(preset.sizeBytes).toBeGreaterThan(preset.kind === "detection" ? 1e6 : 1e7)
    for (const sum of Object.values(preset.sums ?? {})) expect(sum).toMatch(/^[0-9a-f]{64}$/)
    if (preset.file !== undefined && isVerified(preset))
      expect(Object.keys(preset.sums ?? {})).toContain(preset.file)
    // A size that was not verified is rounded, so that it does not look exact.
    if (!isVerified(preset) && preset.file === undefined) expect(preset.sizeBytes % 1e6).toBe(0)
    expect(preset.file === undefined).toBe(["detection", "speech", "transcription"].includes(preset.kind))
  },
)

it("knows the names that the guide uses", () => {
  const named = [
    ...page("docs/bring-your-weights.md").matchAll(/models add ([a-z][a-z0-9.-]+)(?![\w:/.])/g),
  ].map(([, name = ""]) => name)
  expect(named.length).toBeGreaterThan(2)
  for (const name of named) expect(presetNamed(name)?.name, name).toBe(name)
})
