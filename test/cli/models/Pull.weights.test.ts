// `edgewise models pull` as an operator runs it: a catalog whose weights are on a hub, the command as a process, and a
// node that serves what was pulled.
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { builtInCatalog } from "#config/settings/NodeSettings.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { edgewise, type Finished, startCommand } from "../../support/nodes/NodeProcess.ts"
import { llamaModel, type TestModel, writeCatalog } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, temporaryDir } from "../../support/nodes/TestNode.ts"
import { type FakeHub, sha256, startHub } from "../../support/servers/FakeHub.ts"

const weights = readFileSync(
  fileURLToPath(new URL("llama-demo/llama-demo-Q8_0.gguf", `file://${builtInCatalog}`)),
)
const source = "hf:acme/llama-demo@0123abcd/llama-demo-Q8_0.gguf"
const remote: TestModel = {
  ...llamaModel,
  id: "remote",
  files: { weights: { source, sha256: sha256(weights) } },
}
const local: TestModel = { ...llamaModel, id: "near" }

let hub: FakeHub
const dir = temporaryDir()
const catalog = join(dir.path, "catalog.json")
const dataDir = join(dir.path, "data")
beforeAll(async () => {
  hub = await startHub({ "acme/llama-demo/0123abcd/llama-demo-Q8_0.gguf": weights })
  writeCatalog(catalog, [remote, local])
})
afterAll(async () => {
  await hub.stop()
  dir.remove()
})

const models = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
  edgewise(["models", ...args], {
    EDGEWISE_DATA_DIR: dataDir,
    EDGEWISE_CATALOG: catalog,
    HF_ENDPOINT: hub.endpoint,
    ...env,
  })

const failed = ({ status, stderr, stdout }: Finished, words: string, expected = 1) => {
  expect([status, stdout]).toEqual([expected, ""])
  expect(stderr.trimEnd().split("\n"), stderr).toHaveLength(1)
  expect(stderr).toContain(words)
}

const lastFailure = (id: string) => Effect.map(ModelRegistry, (registry) => registry.find(id)?.lastFailure)

const chat = {
  model: "remote",
  temperature: 0,
  max_tokens: 8,
  messages: [{ role: "user", content: "Hello" }],
}

it("a node says what is not pulled, and after a pull it serves it without a restart", inLong, async () => {
  const node = await startNode({ models: [remote, local], dataDir })
  const refused = await node.post("/v1/chat/completions", chat)
  expect([refused.status, await refused.json()]).toEqual([503, { detail: "Model is unavailable" }])
  expect(await node.run(lastFailure("remote"))).toBe("weights are not pulled: edgewise models pull remote")

  hub.behaviour.token = "hf_SecretToken"
  hub.behaviour.cutAfter = [500_000]
  const pulled = await models(["pull", "remote", "--json"], { HF_TOKEN: "hf_SecretToken" })
  expect(pulled.status, pulled.stderr).toBe(0)
  expect(JSON.parse(pulled.stdout)).toMatchObject({
    models: [
      {
        id: "remote",
        files: [
          {
            source,
            size_bytes: weights.length,
            sha256: sha256(weights),
            checked_by: "catalog",
            fetched: true,
          },
        ],
      },
    ],
  })
  // Output is no terminal: plain lines instead of a progress bar.
  expect(pulled.stderr).toMatch(/llama-demo-Q8_0\.gguf: 0 % of /)
  expect(pulled.stderr).toContain("attempt 2")
  expect(pulled.stdout + pulled.stderr).not.toMatch(/SecretToken|signature/)
  expect(
    hub.seen.filter(({ at }) => at === "storage").every(({ headers }) => headers.authorization === undefined),
  ).toBe(true)

  const again = await models(["pull", "remote", "near"])
  expect([again.status, again.stderr]).toEqual([0, ""])
  expect(again.stdout).toContain("already there, SHA-256 as in the catalog")
  expect(again.stdout).toContain("near: its weights are local files")

  const answer = await node.post("/v1/chat/completions", chat)
  const same = await node.post("/v1/chat/completions", { ...chat, model: "near" })
  expect(answer.status).toBe(200)
  const content = async (response: Response) =>
    ((await response.json()) as { choices: ReadonlyArray<{ message: { content: string } }> }).choices[0]
      ?.message.content
  expect(await content(answer)).toBe(await content(same))
  await node.stop()
})

it("two processes at once fetch it once; one that is killed leaves no lock, and what it had is used", async () => {
  hub.reset()
  const two = { EDGEWISE_DATA_DIR: join(dir.path, "two") }
  hub.behaviour.holdAfter = 400_000
  hub.behaviour.pieceBytes = 100_000
  const killed = startCommand(["models", "pull", "remote"], {
    EDGEWISE_CATALOG: catalog,
    HF_ENDPOINT: hub.endpoint,
    ...two,
  })
  const part = join(
    two.EDGEWISE_DATA_DIR,
    "weights/pull/hf/acme/llama-demo/0123abcd/llama-demo-Q8_0.gguf.part",
  )
  await eventually(
    () => (statSync(part, { throwIfNoEntry: false })?.size ?? 0) > 300_000,
    "some of it has come",
  )
  killed.signal("SIGKILL")
  expect((await killed.finished).status).toBe(null)
  hub.reset()
  // So slow that both run at the same time.
  hub.behaviour.pieceMs = 50
  hub.behaviour.pieceBytes = 100_000
  const both = await Promise.all([1, 2].map(() => models(["pull", "remote", "--json"], two)))
  expect(both.map(({ status }) => status)).toEqual([0, 0])
  const fetched = both.map(
    ({ stdout }) =>
      (JSON.parse(stdout) as { models: [{ files: [{ fetched: boolean }] }] }).models[0].files[0].fetched,
  )
  expect(fetched.toSorted()).toEqual([false, true])
  const storage = hub.seen.filter(({ at }) => at === "storage")
  expect(storage).toHaveLength(1)
  expect(Number(/^bytes=(\d+)-$/.exec(storage[0]?.headers.range ?? "")?.[1])).toBeGreaterThanOrEqual(300_000)
})

it("fails in one line that names what is wrong, with status 1; wrong settings and wrong usage are 2", async () => {
  hub.reset()
  const empty = { EDGEWISE_DATA_DIR: join(dir.path, "empty") }
  const [unknown, endpoint, token, offline, listed, usage] = await Promise.all([
    models(["pull", "unknown"]),
    models(["pull", "remote"], { HF_ENDPOINT: "ftp://x" }),
    models(["pull", "remote"], { HF_TOKEN: "two words" }),
    models(["pull", "remote"], { HF_HUB_OFFLINE: "1" }),
    models(["list", "--json"], empty),
    models(["pull"]),
  ])
  failed(unknown, "has no model unknown; it has remote, near")
  failed(offline, "HF_HUB_OFFLINE is set")
  failed(endpoint, "HF_ENDPOINT", 2)
  failed(token, "HF_TOKEN", 2)
  expect(token.stderr).not.toContain("two words")
  expect((JSON.parse(listed.stdout) as { models: unknown }).models).toMatchObject([
    { id: "remote", weights: "not pulled" },
    { id: "near", weights: "here" },
  ])
  expect(usage.status).toBe(2)
  hub.behaviour.hubStatus = 404
  failed(await models(["pull", "remote"], empty), "no such repository, revision or file")
})
