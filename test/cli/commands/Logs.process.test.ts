// What an operator sees of a failed model: at the start, in `models list` and in `logs`, from a real process.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { edgewise, type NodeProcess, startProcess } from "../../support/nodes/NodeProcess.ts"
import { fakeModel, llamaModel } from "../../support/nodes/TestCatalog.ts"
import { eventually } from "../../support/nodes/TestNode.ts"

let node: NodeProcess
let folder: string
let key: string
let env: Readonly<Record<string, string>>

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "edgewise-logs-"))
  writeFileSync(join(folder, "page.gguf"), "<!doctype html>")
  const broken = { ...llamaModel, id: "broken", files: { weights: { source: join(folder, "page.gguf") } } }
  const noisy = {
    ...fakeModel,
    id: "noisy",
    options: { print: { stderr: "warning: a word of the library\n" } },
  }
  node = await startProcess({ models: [broken, noisy], env: { EDGEWISE_LOG: "json" } })
  env = {
    EDGEWISE_DATA_DIR: node.dataDir,
    EDGEWISE_PORT: String(node.port),
    EDGEWISE_CATALOG: join(node.dataDir, "../catalog.json"),
  }
  const made = await edgewise(["keys", "create", "--org", "ops", "--scope", "superadmin", "--json"], env)
  key = (JSON.parse(made.stdout) as { api_key: string }).api_key
})
afterAll(async () => {
  await node.dispose()
  rmSync(folder, { recursive: true })
})

const run = (...args: ReadonlyArray<string>) => edgewise([...args, "--key", key], env)

it("the start says what cannot be loaded, names a model that can be tried, and logs a warning", async () => {
  expect(node.stdout()).toMatch(/^broken cannot be loaded: weights: .*page\.gguf is not a GGUF file$/m)
  expect(node.stdout()).toContain('"model":"noisy"')
  await eventually(() => node.stderr().includes("model cannot be loaded"), "the line is written")
  const lines = node
    .stderr()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map(
      (line) => JSON.parse(line) as { message: string; level: string; annotations: Record<string, string> },
    )
  expect(lines.find(({ message }) => message === "model cannot be loaded")).toMatchObject({
    level: "WARN",
    annotations: {
      model: "broken",
      device: "host",
      reason: expect.stringContaining("is not a GGUF file"),
      action: expect.stringContaining("edgewise models load broken"),
    },
  })
})

it("an answer's line has the request's id beside its annotations", async () => {
  const refused = await fetch(`${node.base}/v1/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${node.devKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "broken", prompt: "hi" }),
  })
  expect(refused.status).toBe(503)
  const id = refused.headers.get("x-request-id")
  await eventually(() => node.stderr().includes(`"request_id":"${id}"`), "the line is written")
  const line = node
    .stderr()
    .split("\n")
    .find((one) => one.includes(`"request_id":"${id}"`))
  expect(JSON.parse(line!)).toMatchObject({ message: "answer refused", request_id: id })
})

it("models list has the reason; logs prints the lines, or one JSON document", async () => {
  await eventually(() => node.stderr().includes("model ready"), "noisy is loaded")
  // What an engine prints comes by another way than what it answers.
  await eventually(
    async () => (await run("logs", "noisy")).stdout.includes("a word of the library"),
    "what it printed has arrived",
  )
  const [list, json, text, document, unknown] = await Promise.all([
    run("models", "list"),
    run("models", "list", "--json"),
    run("logs", "noisy"),
    run("logs", "broken", "--json"),
    run("logs", "unknown"),
  ])
  expect(list!.stdout).toMatch(/^broken: weights: .*is not a GGUF file$/m)
  expect((JSON.parse(json!.stdout) as { models: unknown }).models).toMatchObject([
    { id: "broken", weights: "unusable", reason: expect.stringContaining("is not a GGUF file") },
    { id: "noisy", weights: "here", reason: null },
  ])
  expect([text!.status, text!.stderr]).toEqual([0, ""])
  expect(text!.stdout).toMatch(/^\S+Z INFO {2}node {3}model loading$/m)
  expect(text!.stdout).toMatch(/^\S+Z WARN {2}stderr warning: a word of the library$/m)
  expect(JSON.parse(document!.stdout)).toMatchObject({
    model: "broken",
    status: "failed",
    lines: expect.arrayContaining([
      expect.objectContaining({
        stream: "node",
        level: "warn",
        text: expect.stringContaining("cannot be loaded"),
      }),
    ]),
  })
  expect([unknown!.status, unknown!.stderr]).toEqual([1, "Model not loaded (404)\n"])
})
