// Templates that model makers have published, as llama.cpp's release has them, which node-llama-cpp brings with it. The hashes
// were recorded from Python's jinja2 3.1.6 (Templates.ts says how), dates replaced. DeepSeek's templates print no tools.
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "@effect/vitest"
import type { Llama } from "node-llama-cpp"
import { nativeJinja } from "#engines/llama/native/Internals.ts"
import { openLibrary } from "#engines/llama/native/Library.ts"
import { ChatTemplate } from "#engines/llama/prompt/ChatTemplate.ts"
import published from "./published.json" with { type: "json" }
import { recordedTools, recordedTurns } from "./Recorded.ts"

const bundle = new URL("../../../../node_modules/node-llama-cpp/llama/gitRelease.bundle", import.meta.url)
  .pathname
let folder: string
let llama: Llama
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "edgewise-templates-"))
  execFileSync("git", ["clone", "--quiet", "--bare", bundle, folder], { stdio: "ignore" })
  llama = await openLibrary({ gpu: "off", threads: 1, logger: () => {} })
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await llama.dispose()
})

const sourceOf = (file: string): string =>
  execFileSync("git", ["-C", folder, "show", `HEAD:models/templates/${file}`], {
    encoding: "utf8",
    maxBuffer: 1e7,
  })

it.each(Object.entries(published))("%s is rendered as Python's Jinja does", (file, { family, sha256 }) => {
  const source = sourceOf(file)
  const chat = new ChatTemplate(source, nativeJinja(llama)(source), { bos: "<s>", eos: "</s>" })
  const parts = chat.parts(recordedTurns, family.startsWith("deepseek") ? [] : recordedTools)
  const text = parts.map((part) => part.text).join("")
  const dated = text.replace(/\d\d \w{3} \d{4}|\d{4}-\d\d-\d\d/g, "DATE")
  expect([chat.tools.name, createHash("sha256").update(dated).digest("hex")]).toEqual([family, sha256])
})
