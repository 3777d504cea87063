// What the memory ledger adds for the rows of pictures that a model keeps.
import { expect, it } from "vitest"
import { adapterFacts } from "#engines/AdapterFacts.ts"

const mebibyte = 1024 * 1024
const weights = { source: "a.gguf" }
const kept = (files: Record<string, unknown>, options: unknown = {}) =>
  adapterFacts["llama-gguf"]?.cacheBytes?.({ files, options })

it("a model with a tower claims what it may keep of pictures, others claim nothing", () => {
  expect(kept({ weights })).toBe(0)
  expect(kept({ weights, mmproj: weights })).toBe(128 * mebibyte)
  expect(kept({ weights, mmproj: weights }, { slots: 2, pictureMegabytes: 7 })).toBe(7 * mebibyte)
  // Refused at its load.
  expect(kept({ weights, mmproj: weights }, { pictureMegabytes: -1 })).toBe(0)
})
