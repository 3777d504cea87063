// What a running node does when models are added and removed: with a catalog of its own after a request that needs an operator's
// credential, with the built-in one by itself.
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, expect, it } from "vitest"
import { builtInCatalog } from "#config/settings/NodeSettings.ts"
import { writeToyLlama } from "../../support/engines/ToyGguf.ts"
import { edgewise, type NodeProcess, startProcess } from "../../support/nodes/NodeProcess.ts"
import { eventually, temporaryDir } from "../../support/nodes/TestNode.ts"
import { type FakeHub, startHub } from "../../support/servers/FakeHub.ts"

const dir = temporaryDir()
const commit = "abcdef0123456789"
let hub: FakeHub
let node: NodeProcess | undefined
beforeAll(async () => {
  const path = join(dir.path, "toy.gguf")
  writeToyLlama(path)
  const toy = readFileSync(path)
  hub = await startHub({
    [`acme/toy-GGUF/${commit}/toy-Q8_0.gguf`]: toy,
    [`acme/bad-GGUF/${commit}/../../../outside-Q8_0.gguf`]: toy,
    [`acme/bad-GGUF/${commit}/with space-Q8_0.gguf`]: toy,
  })
})
afterEach(async () => {
  // Not killed: its engines would still write into the data directory while that is removed.
  node?.signal("SIGTERM")
  await node?.exited
  await node?.dispose()
  node = undefined
})
afterAll(async () => {
  await hub.stop()
  dir.remove()
})

/** Without engines that load at the start: only the list of models matters here. */
const started = async (env: Readonly<Record<string, string>> = {}): Promise<NodeProcess> => {
  node = await startProcess({ env })
  return node
}

const environment = ({ catalog, dataDir, port }: NodeProcess) => ({
  EDGEWISE_DATA_DIR: dataDir,
  EDGEWISE_CATALOG: catalog,
  EDGEWISE_PORT: String(port),
  HF_ENDPOINT: hub.endpoint,
})

/** What `serve` was started with, as flags of a command. */
const flags = ({ catalog, dataDir }: NodeProcess) => ["--data-dir", dataDir, "--catalog", catalog]

const statuses = async ({ base, devKey }: NodeProcess): Promise<Readonly<Record<string, string>>> => {
  const reply = await fetch(`${base}/v1/models/status`, { headers: { authorization: `Bearer ${devKey}` } })
  return ((await reply.json()) as { loading_status: Record<string, string> }).loading_status
}

it("a catalog of its own: is read again for an operator, and the command says so to others", async () => {
  const here = await started()
  const env = environment(here)
  const byFlags = {
    EDGEWISE_PORT: env.EDGEWISE_PORT,
    EDGEWISE_API_KEY: here.devKey,
    HF_ENDPOINT: env.HF_ENDPOINT,
  }
  const without = await edgewise(["models", "add", "hf:acme/toy-GGUF", "--json", ...flags(here)], byFlags)
  expect([without.status, JSON.parse(without.stdout)]).toMatchObject([
    0,
    {
      id: "toy",
      catalog: here.catalog,
      node: "not served",
      note: expect.stringContaining("edgewise reload"),
    },
  ])
  expect(Object.keys(await statuses(here))).toEqual(["fake"])
  const again = await edgewise(["models", "add", "hf:acme/toy-GGUF", "--json"], env)
  expect(JSON.parse(again.stdout)).toMatchObject({ id: "toy", node: "served" })
  expect(Object.keys(await statuses(here))).toEqual(["fake", "toy"])
  const gone = await edgewise(["models", "remove", "toy", "--files", "--json"], env)
  expect(JSON.parse(gone.stdout)).toMatchObject({
    node: "served",
    deleted: [expect.stringContaining("toy-Q8_0.gguf")],
  })
  expect(Object.keys(await statuses(here))).toEqual(["fake"])
})

it("weights that another model uses are kept, and a pulled file is deleted with its last one", async () => {
  const dataDir = join(dir.path, "shared")
  const env = { EDGEWISE_DATA_DIR: dataDir, EDGEWISE_PORT: "1", HF_ENDPOINT: hub.endpoint }
  for (const id of ["one", "two"])
    expect((await edgewise(["models", "add", "hf:acme/toy-GGUF", "--id", id], env)).status).toBe(0)
  const file = join(dataDir, `weights/hf/acme/toy-GGUF/${commit}/toy-Q8_0.gguf`)
  const remove = async (id: string): Promise<unknown> =>
    JSON.parse((await edgewise(["models", "remove", id, "--files", "--json"], env)).stdout)
  expect([await remove("one"), existsSync(file)]).toMatchObject([{ node: "none", deleted: [] }, true])
  expect([await remove("two"), existsSync(file)]).toMatchObject([{ deleted: [expect.any(String)] }, false])
  expect(existsSync(join(dataDir, "models.jsonc"))).toBe(false)
})

it("the built-in catalog: a node notices by itself, and a file with a mistake changes nothing", async () => {
  const here = await started({ EDGEWISE_CATALOG: builtInCatalog })
  const env = { ...environment(here), EDGEWISE_CATALOG: "" }
  const added = await edgewise(["models", "add", "hf:acme/toy-GGUF", "--as", "llm-3.5-9b", "--json"], env)
  expect(JSON.parse(added.stdout)).toMatchObject({ node: "served" })
  const now = await statuses(here)
  expect([Object.keys(now)[0], "llm-3.5-9b" in now]).toEqual(["toy", false])
  const path = join(here.dataDir, "models.jsonc")
  const right = readFileSync(path, "utf8")
  writeFileSync(path, right.replace('"contextTokens"', '"contextToken"'))
  await eventually(() => here.stderr().includes("the catalog was not applied"), "the mistake is logged")
  expect(Object.keys(await statuses(here))).toContain("toy")
  writeFileSync(path, right)
  const removed = await edgewise(["models", "remove", "toy", "--json"], env)
  expect(JSON.parse(removed.stdout)).toMatchObject({ node: "served", back: ["llm-3.5-9b"] })
  expect([Object.keys(await statuses(here)).includes("llm-3.5-9b"), existsSync(path)]).toEqual([true, false])
})

it("names that lead out of a repository, or that no entry may have, are not there", async () => {
  const { status, stderr } = await edgewise(["models", "add", "hf:acme/bad-GGUF"], {
    EDGEWISE_DATA_DIR: join(dir.path, "data"),
    EDGEWISE_PORT: "1",
    HF_ENDPOINT: hub.endpoint,
  })
  expect([status, stderr]).toEqual([1, expect.stringContaining("has no weights that an adapter reads")])
})
