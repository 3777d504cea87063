import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { expect, it } from "vitest"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { frontEndLack, isInstalled, missingFrontEnd } from "#weights/FrontEnd.ts"

const english = "phonemizer"
const others = "@echogarden/espeak-ng-emscripten"
const has =
  (...names: ReadonlyArray<string>) =>
  (name: string): boolean =>
    names.includes(name)
const entry = (adapter: string, ...languages: ReadonlyArray<string>) =>
  ({ adapter, speech: { languages } }) as unknown as ModelEntry

it("names the package that a language needs, where it is not installed", () => {
  const clone = entry("style-clone-onnx")
  expect(missingFrontEnd(clone, "en", has(english))).toBeUndefined()
  expect(missingFrontEnd(clone, "de", has(english))).toBe(others)
  expect(missingFrontEnd(entry("chatterbox-onnx"), "de", has())).toBeUndefined()
  const kokoro = entry("kokoro-onnx")
  expect(missingFrontEnd(kokoro, "en", has())).toBe(english)
  expect(missingFrontEnd(kokoro, "fr", has())).toBe(others)
  expect(missingFrontEnd(kokoro, "zh", has(english, others))).toBe("pinyin-pro")
  expect(missingFrontEnd(kokoro, "ja", has(english, others))).toBe("lindera-wasm-nodejs-ipadic")
  expect(missingFrontEnd(clone, "zh", has(others))).toBeUndefined()
})

it("tells a model that can speak nothing from one that lacks some languages", () => {
  expect(frontEndLack(entry("kokoro-onnx", "en"), has())).toEqual({
    all: true,
    problem: "it cannot speak en: the npm package phonemizer is not installed",
  })
  expect(frontEndLack(entry("style-clone-onnx", "en", "de", "fr"), has(english))).toEqual({
    all: false,
    problem: `it cannot speak de, fr: the npm package ${others} is not installed`,
  })
  expect(frontEndLack(entry("kokoro-onnx", "en", "zh"), has(english))).toEqual({
    all: false,
    problem: "it cannot speak zh: the npm package pinyin-pro is not installed; run edgewise setup chinese",
  })
  expect(frontEndLack(entry("style-clone-onnx", "en", "de"), has(english, others))).toBeUndefined()
  expect(frontEndLack(entry("whisper-hf-onnx"), has())).toBeUndefined()
})

it("finds the packages that are installed here", () => {
  expect(missingFrontEnd(entry("style-clone-onnx"), "en")).toBeUndefined()
  expect(missingFrontEnd(entry("style-clone-onnx"), "de")).toBeUndefined()
})

it("finds a package whose file for CommonJS was deleted, as bin/trim.js does, and no package that is not there", () => {
  const dir = mkdtempSync(join(tmpdir(), "edgewise-front-end-"))
  try {
    const folder = join(dir, "node_modules", english)
    mkdirSync(folder, { recursive: true })
    const exports = { import: "./a.js", require: "./a.cjs" }
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name: english, exports }))
    const from = pathToFileURL(join(dir, "program.ts")).href
    expect(isInstalled(english, from)).toBe(true)
    expect(isInstalled(others, from)).toBe(false)
  } finally {
    rmSync(dir, { recursive: true })
  }
})
