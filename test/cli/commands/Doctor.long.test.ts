// `edgewise doctor` as a process: figures of real engines within its time, a model that cannot be loaded, wrong usage, and
// nothing left behind, also after an interruption.
import { mkdirSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import { afterAll, beforeAll, expect, it, vi } from "vitest"
import { Document } from "#cli/doctor/report/Document.ts"
import { edgewise, startCommand } from "../../support/nodes/NodeProcess.ts"
import { fakeModel, llamaModel, writeCatalog } from "../../support/nodes/TestCatalog.ts"
import { temporaryDir } from "../../support/process/TemporaryDir.ts"

const dir = temporaryDir()
const temporary = join(dir.path, "tmp")
const catalog = join(dir.path, "catalog.json")
const env = {
  EDGEWISE_CATALOG: catalog,
  EDGEWISE_DATA_DIR: join(dir.path, "data"),
  EDGEWISE_PORT: "0",
  TMPDIR: temporary,
}

beforeAll(() => {
  mkdirSync(temporary)
  const broken = { ...llamaModel, id: "broken", files: { weights: { source: "missing.gguf" } } }
  writeCatalog(catalog, [fakeModel, llamaModel, broken])
})
afterAll(() => dir.remove())

/** Seconds that it may take. On a busy machine 6 s can be too short to load and measure both. The report then advises more time, which is followed. */
const times = [6, 45, 300]
const measured = async ([seconds = 0, ...more] = times): ReturnType<typeof edgewise> => {
  const args = ["doctor", "--model", "fake", "--model", "llama", "--seconds", `${seconds}`, "--json"]
  const report = await edgewise(args, env)
  const isShort = report.status === 1 && report.stdout.includes("--seconds gives")
  return isShort && more.length > 0 ? measured(more) : report
}

it("measures the models that are named, and leaves nothing behind", async () => {
  const { status, stderr, stdout } = await measured()
  // Where it fails, the document says why.
  expect([status, stderr, status === 0 ? "" : stdout]).toEqual([0, "", ""])
  const document = Schema.decodeUnknownSync(Document)(JSON.parse(stdout))
  expect(document.ok).toBe(true)
  expect(document.models.map(({ id }) => id)).toEqual(["fake", "llama"])
  const [fake, llama] = document.models
  for (const model of [fake, llama]) {
    expect(model?.text?.levels.map(({ streams }) => streams)).toEqual([1, 4, 16])
    expect(model?.text?.levels[0]?.prompt_tokens_per_second).toBeGreaterThan(0)
    expect(model?.text?.levels[0]?.reply_tokens_per_second).toBeGreaterThan(0)
  }
  expect(fake?.libraries).toEqual([])
  expect(llama?.libraries[0]?.name).toBe("llama.cpp")
  expect(llama?.memory_bytes).toBeGreaterThan(1_000_000)
  expect(document.surroundings.map(({ name }) => name)).toContain("onnxruntime-node")
  expect(readdirSync(temporary)).toEqual([])
  expect(readdirSync(dir.path).toSorted()).toEqual(["catalog.json", "tmp"])
})

it("is 1 with a line for a model that cannot be loaded", async () => {
  const { status, stderr, stdout } = await edgewise(["doctor", "--model", "broken", "--seconds", "5"], env)
  expect([status, stderr]).toEqual([1, ""])
  expect(stdout).toMatch(/^broken failed: weights: missing\.gguf is not there$/m)
  expect(stdout.trim().split("\n").at(-1)).toMatch(/; not every model could be measured$/)
})

it("is 2 for a model that is not there and for a time out of range", async () => {
  const model = await edgewise(["doctor", "--model", "lama"], env)
  expect([model.status, model.stdout]).toEqual([2, ""])
  expect(model.stderr).toContain("--model: this catalog deploys no model lama here; did you mean llama?")
  const seconds = await edgewise(["doctor", "--seconds", "1"], env)
  expect([seconds.status, seconds.stdout]).toEqual([2, ""])
  expect(seconds.stderr).toContain("an integer from 5 to 3600")
})

it("leaves nothing behind when it is interrupted", async () => {
  const running = startCommand(["doctor", "--model", "llama", "--seconds", "60"], env)
  await vi.waitUntil(() => readdirSync(temporary).length > 0, { timeout: 60_000, interval: 50 })
  running.signal("SIGINT")
  const { status, stderr, stdout } = await running.finished
  expect([status, stdout, stderr]).toEqual([1, "", "interrupted\n"])
  expect(readdirSync(temporary)).toEqual([])
})
