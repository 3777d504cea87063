// Which licences restrict the use of a model: those of the presets, and names as hubs have them.
import { expect, it } from "vitest"
import { restrictsUse } from "#weights/found/Licences.ts"
import { presets } from "#weights/presets/Presets.ts"

it("lets free licences pass, and asks about every other name", () => {
  for (const free of [
    "apache-2.0",
    "MIT",
    "bsd-3-clause",
    "cc-by-4.0",
    "cc-by-sa-4.0",
    "gpl-3.0",
    "lgpl-2.1",
    "agpl-3.0",
    "mpl-2.0",
    "cc0-1.0",
  ])
    expect([free, restrictsUse(free)]).toEqual([free, false])
  for (const limited of [
    "llama3.2",
    "gemma",
    "cc-by-nc-4.0",
    "cc-by-nc-sa-4.0",
    "openrail++",
    "other",
    "apache-2.0-nc",
    "mit license with limits",
  ])
    expect([limited, restrictsUse(limited)]).toEqual([limited, true])
  expect(restrictsUse(undefined)).toBe(false)
})

it("of the presets, those of Llama, Gemma and Nemotron", () => {
  const limited = presets.filter(({ licence }) => restrictsUse(licence)).map(({ name }) => name)
  expect(limited).toEqual(["llama-3.2-1b", "llama-3.2-3b", "gemma-3-1b", "nemotron-streaming-en"])
})
