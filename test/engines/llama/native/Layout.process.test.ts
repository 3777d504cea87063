// The struct tables against the library's own header, which node-llama-cpp ships as a git bundle of the release.
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, it } from "vitest"
import {
  batch,
  contextParams,
  differences,
  type Fields,
  fieldsOf,
  modelParams,
} from "#engines/llama/native/Layout.ts"

const bundle = join(
  dirname(fileURLToPath(import.meta.resolve("node-llama-cpp"))),
  "../llama/gitRelease.bundle",
)

const header = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "edgewise-header-"))
  const git = (...words: ReadonlyArray<string>) =>
    execFileSync("git", ["-C", folder, ...words], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })
  try {
    git("init", "--bare", "-q")
    git("fetch", "-q", "--depth=1", bundle, "HEAD")
    return git("show", "FETCH_HEAD:include/llama.h")
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** A field's type in koffi's notation. */
const typeOf = (declared: string): string => {
  if (declared.includes("*") || /_(callback|devices?)\b|_callback_t\b/.test(declared)) return "void *"
  if (declared.startsWith("enum ")) return "int32"
  return declared.replace(/_t$/, "").replace("size", "size_t")
}

/** The fields of `struct name { … }`, in order. */
const fieldsIn = (text: string, name: string): Fields => {
  const body = new RegExp(`struct ${name} \\{([^}]*)\\}`).exec(text)?.[1]
  if (body === undefined) throw new Error(`no struct ${name} in the header`)
  const fields = body
    .replaceAll(/\/\/.*$/gm, "")
    .split(";")
    .map((field) => field.trim().replaceAll(/\s+/g, " "))
    .filter((field) => field !== "")
    .map((field) => {
      const [, declared = "", named = ""] = /^(.*?)\s?(\w+)$/.exec(field) ?? []
      return [named, typeOf(declared)]
    })
  return Object.fromEntries(fields) as Fields
}

const text = header()
for (const [name, fields] of [
  ["llama_model_params", fieldsOf(modelParams)],
  ["llama_context_params", fieldsOf(contextParams)],
  ["llama_batch", batch],
] as const)
  it(`${name} has the fields of the header, in its order`, () => {
    expect(Object.entries(fields)).toEqual(Object.entries(fieldsIn(text, name)))
  })

it("defaults that shifted by a field are noticed", () => {
  const expected = Object.fromEntries(Object.entries(modelParams).map(([name, [, value]]) => [name, value]))
  expect(differences(modelParams, expected)).toEqual([])
  expect(differences(modelParams, { ...expected, use_extra_bufts: false, vocab_only: true })).toEqual([
    "vocab_only is true, not false",
    "use_extra_bufts is false, not true",
  ])
})
