// The command line as a process: what it prints where, and its exit statuses: 0, 1 for a failure, 2 for wrong usage,
// with one line on standard error that names what is wrong. Accounts have their own tests.
import { writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { BadSetting } from "#config/BadSetting.ts"
import { load } from "#config/Config.ts"
import { settings } from "#config/Settings.ts"
import { deployments } from "#weights/ModelFiles.ts"
import { edgewise, edgewiseProcess, type Finished } from "../../support/nodes/NodeProcess.ts"
import { fakeModel, llamaModel, writeCatalog } from "../../support/nodes/TestCatalog.ts"
import { temporaryDir } from "../../support/nodes/TestNode.ts"

const dir = temporaryDir()
const catalog = join(dir.path, "catalog.json")
const dataDir = join(dir.path, "data")
beforeAll(() => writeCatalog(catalog, [fakeModel, llamaModel]))
afterAll(() => {
  dir.remove()
})

/** One line on standard error, nothing on standard output. */
const expectFailure = (
  { status, stderr, stdout }: Finished,
  expected: number,
  parts: ReadonlyArray<string>,
): void => {
  expect([status, stdout]).toEqual([expected, ""])
  expect(stderr.endsWith("\n")).toBe(true)
  expect(stderr.trimEnd().split("\n"), stderr).toHaveLength(1)
  for (const part of parts) expect(stderr).toContain(part)
  expect(stderr).not.toMatch(/ {4}at |\{"message"/)
}
const serve = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
  edgewiseProcess(["serve", ...args], {
    EDGEWISE_DATA_DIR: dataDir,
    EDGEWISE_CATALOG: catalog,
    EDGEWISE_PORT: "0",
    EDGEWISE_AUTH_PORT: "0",
    EDGEWISE_ROUTER_PORT: "0",
    EDGEWISE_LOG_LEVEL: "error",
    ...env,
  })

describe("serve with a bad setting", () => {
  it("fails in one line that names the variable, the value and what is allowed", async () => {
    const bad = await serve([], { EDGEWISE_DRAIN_SECONDS: "1.5" })
    expectFailure(bad, 2, ["EDGEWISE_DRAIN_SECONDS", '"1.5"', "an integer from 0 to 3600"])
    // The flag wins over the variable.
    const flag = await serve(["--rate-limit", "many"], { EDGEWISE_RATE_LIMIT: "5" })
    expectFailure(flag, 2, ["EDGEWISE_RATE_LIMIT", '"many"', "0 to 1000000"])
  })

  // The same arguments without a process each: starting one takes a second.
  it.each<readonly [variable: string, value: string, allowed: string]>([
    ["EDGEWISE_PORT", "70000", "0 to 65535"],
    ["EDGEWISE_PORT", "http", "0 to 65535"],
    ["EDGEWISE_PORT", "-1", "0 to 65535"],
    ["EDGEWISE_PORT", " 80", "0 to 65535"],
    ["EDGEWISE_HOST", "localhost", "IPv4 or IPv6"],
    ["EDGEWISE_REGION", "nyc-99", "yto-01"],
    ["EDGEWISE_RATE_LIMIT", "-1", "0 to 1000000"],
    ["EDGEWISE_RATE_LIMIT", "1e3", "0 to 1000000"],
    ["EDGEWISE_DRAIN_SECONDS", "3601", "0 to 3600"],
    ["EDGEWISE_LOG", "xml", "pretty or json"],
    ["EDGEWISE_LOG_LEVEL", "loud", "warn"],
  ])("%s=%s", async (variable, value, allowed) => {
    const error = await Effect.runPromise(Effect.flip(load({}, { [variable]: value })))
    expect(error).toBeInstanceOf(BadSetting)
    expect(error.message).toContain(allowed)
    expect(error.message.startsWith(`${variable}: ${JSON.stringify(value)} is not allowed`)).toBe(true)
    expect(error.message).not.toContain("\n")
  })

  it("a variable that is set to nothing is not set", async () => {
    const empty = Object.fromEntries(Object.values(settings).map(({ variable }) => [variable, ""]))
    expect(await Effect.runPromise(load({}, empty))).toEqual(await Effect.runPromise(load({}, {})))
  })

  it("a port that is taken", async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve))
    const { port } = taken.address() as { readonly port: number }
    try {
      expectFailure(await serve([], { EDGEWISE_PORT: String(port) }), 1, [`127.0.0.1:${port}`])
    } finally {
      taken.close()
    }
  })

  it("a data directory that cannot be one", async () => {
    const file = join(dir.path, "file")
    writeFileSync(file, "")
    expectFailure(await serve([], { EDGEWISE_DATA_DIR: join(file, "below") }), 1, [file])
  })
})

describe("a catalog", () => {
  it("that cannot be used ends the start in one line", async () => {
    const file = join(dir.path, "nowhere.json")
    expectFailure(await serve([], { EDGEWISE_CATALOG: file }), 2, [file, "there is no such catalog file"])
  })

  it.each<readonly [string, string, string]>([
    ["that is no JSON", "{", ""],
    ["that is no catalog", '{"models":[{}]}', "id"],
    ["that has a bad id", JSON.stringify({ models: [entry({ id: "a b" })] }), "id"],
    [
      "that has an unknown adapter",
      JSON.stringify({ models: [entry({ adapter: "gpt" })] }),
      'adapter: "gpt" is not an adapter; allowed are',
    ],
    [
      "that has a model twice",
      JSON.stringify({ models: [entry({}), entry({})] }),
      "is also the id of the model on line 1",
    ],
  ])("%s", async (_, text, problem) => {
    const file = join(dir.path, "bad.json")
    writeFileSync(file, text)
    const error = await Effect.runPromise(
      Effect.flip(deployments({ catalog: file, dataDir: dir.path, region: "local" })),
    )
    expect(error.message).toContain(`${file}:`)
    expect(error.message).toContain(problem)
  })
})

function entry(more: object): object {
  return { id: "m", kind: "text", adapter: "fake", ownedBy: "t", created: 1, files: {}, price: {}, ...more }
}

describe("wrong usage", () => {
  it("is 2", async () => {
    const env = { EDGEWISE_DATA_DIR: dataDir }
    const wrong = [["serve", "--nonsense", "1"], ["dance"], ["models", "dance"]]
    for (const finished of await Promise.all(wrong.map((args) => edgewise(args, env))))
      expectFailure(finished, 2, ["--help"])
  })

  it("help and version are 0, on standard output", async () => {
    const help = await edgewise(["serve", "--help"])
    expect([help.status, help.stderr]).toEqual([0, ""])
    for (const variable of ["EDGEWISE_PORT", "EDGEWISE_DATA_DIR", "EDGEWISE_RATE_LIMIT"])
      expect(help.stdout).toContain(variable)
    const version = await edgewiseProcess(["--version"])
    expect([version.status, version.stderr]).toEqual([0, ""])
    expect(version.stdout).toMatch(/\d+\.\d+\.\d+/)
  })
})

describe("models list", () => {
  const list = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>>) =>
    edgewise(["models", "list", ...args], { EDGEWISE_DATA_DIR: dataDir, ...env })

  it("is a table, or one JSON document and nothing else", async () => {
    const table = await list([], { EDGEWISE_CATALOG: catalog })
    expect([table.status, table.stderr]).toEqual([0, ""])
    expect(table.stdout).toMatch(/^id +kind +adapter/)
    expect(table.stdout).toContain("llama-gguf")
    const json = await list(["--json"], { EDGEWISE_CATALOG: catalog })
    expect([json.status, json.stderr]).toEqual([0, ""])
    const { models } = JSON.parse(json.stdout) as { models: ReadonlyArray<Record<string, unknown>> }
    expect(models).toMatchObject([
      { id: "fake", kind: "text", adapter: "fake", size_bytes: 0 },
      { id: "llama", kind: "text", adapter: "llama-gguf", size_bytes: expect.any(Number) },
    ])
    expect(models[1]!.size_bytes).toBeGreaterThan(100_000)
  })

  it("is the region's: the vision model is deployed on sfo-02 alone", async () => {
    const ids = async (region: string) => {
      const { stdout } = await list(["--json"], { EDGEWISE_REGION: region })
      return (JSON.parse(stdout) as { models: ReadonlyArray<{ id: string }> }).models.map(({ id }) => id)
    }
    const [local, toronto, vision] = await Promise.all(["local", "yto-01", "sfo-02"].map(ids))
    expect(vision).toContain("llm-3.6-35b-a3b")
    expect(toronto).not.toContain("llm-3.6-35b-a3b")
    for (const id of ["llm-3.5-27b", "llm-3.8-27b", "llm-3.5-9b"]) {
      expect(toronto).toContain(id)
      expect(local).toContain(id)
    }
  })
})
