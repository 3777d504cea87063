// `edgewise check`: all mistakes at once, as lines or as a document, with the exit status that scripts read, and
// nothing left behind.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { edgewise } from "../../support/nodes/NodeProcess.ts"
import { catalogText, withWeights } from "../mistakes/World.ts"

const dir = mkdtempSync(join(tmpdir(), "edgewise-check-"))
const catalog = join(dir, "catalog.json")
const taken = createServer()
let port = 0
beforeAll(async () => {
  await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve))
  const address = taken.address()
  port = typeof address === "object" && address !== null ? address.port : 0
})
afterAll(() => {
  taken.close()
  rmSync(dir, { recursive: true, force: true })
})

const check = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
  edgewise(["check", ...args], {
    EDGEWISE_DATA_DIR: join(dir, "data", "of", "a", "node"),
    EDGEWISE_CATALOG: catalog,
    EDGEWISE_PORT: "0",
    EDGEWISE_AUTH_PORT: "0",
    EDGEWISE_ROUTER_PORT: "0",
    ...env,
  })

it("is 0 where all is well, and leaves nothing behind", async () => {
  writeFileSync(catalog, catalogText({ id: "Qwen/Qwen3-0.6B" }))
  const before = readdirSync(dir)
  const [text, json] = [await check([]), await check(["--json"])]
  expect(text).toEqual({
    status: 0,
    stdout: "nothing is wrong with settings, files, data directory and ports\n",
    stderr: "",
  })
  expect([json.status, json.stderr, JSON.parse(json.stdout)]).toEqual([0, "", { ok: true, findings: [] }])
  expect(readdirSync(dir)).toEqual(before)
})

it("is 2 with a line for each mistake in settings and files", async () => {
  writeFileSync(catalog, catalogText({ runtimes: {}, options: { slots: 0 } }))
  const wrong = await check(["--rate-limit", "many"], { EDGEWISE_RATE_LIMT: "5" })
  expect(wrong).toEqual({
    status: 2,
    stdout:
      'settings: EDGEWISE_RATE_LIMT: is not a setting; did you mean "EDGEWISE_RATE_LIMIT"?\n' +
      'settings: EDGEWISE_RATE_LIMIT: "many" is not allowed; allowed is an integer from 0 to 1000000\n',
    stderr: "",
  })
  const files = await check(["--json"], {
    EDGEWISE_REGIONS: join(dir, "none.json"),
    EDGEWISE_PORT: String(port),
  })
  expect([files.status, files.stderr]).toEqual([2, ""])
  const { findings, ok } = JSON.parse(files.stdout) as { ok: boolean; findings: ReadonlyArray<object> }
  expect(ok).toBe(false)
  expect(findings).toEqual([
    { subject: "regions", problem: `${join(dir, "none.json")}: there is no such regions file` },
    { subject: "catalog", problem: expect.stringContaining("options.slots: 0 is not allowed") },
    { subject: "catalog", problem: expect.stringContaining("runtimes: is not a known key") },
    { subject: "ports", problem: `edge: cannot listen on 127.0.0.1:${port}: the port is in use` },
  ])
  expect((await check([])).stdout.split("\n")).toEqual([
    expect.stringMatching(/^catalog: .*catalog\.json:11:\d+: my-model: options\.slots: 0 is not allowed/),
    expect.stringMatching(/^catalog: .*: my-model: runtimes: is not a known key; did you mean "runtime"\?$/),
    "",
  ])
})

it("is 1 where weights, data directory or ports are not as they should be", async () => {
  const missing = { ...withWeights, files: { weights: { source: "missing.gguf" } } }
  const hub = { ...withWeights, files: { weights: { source: "hf:acme/demo@main/a.gguf" } } }
  writeFileSync(catalog, catalogText({ ...missing, id: "missing" }, { ...hub, id: "remote" }))
  mkdirSync(join(dir, "store"), { recursive: true })
  writeFileSync(join(dir, "store", "store.sqlite"), "not a database")
  const found = await check([], { EDGEWISE_DATA_DIR: join(dir, "store"), EDGEWISE_MEMORY_MB: "1" })
  expect([found.status, found.stderr]).toEqual([1, ""])
  expect(found.stdout.split("\n")).toEqual([
    expect.stringMatching(/^weights: .*missing: weights: missing\.gguf/),
    "weights: remote: it is not pulled: edgewise models pull remote",
    `data directory: ${join(dir, "store", "store.sqlite")}: is not a SQLite database`,
    expect.stringMatching(/^memory: EDGEWISE_MEMORY_MB: 1 MB is less than/),
    "",
  ])
  expect(existsSync(join(dir, "store", "compiled"))).toBe(false)
})
