// An operator has the running node pull weights: progress as events, one pull for each model, resumed, checked, and
// used without a restart.
import { existsSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Layer } from "effect"
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest"
import { Drain } from "#actors/Drain.ts"
import { ModelPulls } from "#api/operations/ModelPulls.ts"
import { builtInCatalog } from "#config/settings/NodeSettings.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { edgewise } from "../../support/nodes/NodeProcess.ts"
import { llamaModel, type TestModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode } from "../../support/nodes/TestNode.ts"
import { type FakeHub, sha256, startHub } from "../../support/servers/FakeHub.ts"

const weights = readFileSync(
  fileURLToPath(new URL("llama-demo/llama-demo-Q8_0.gguf", `file://${builtInCatalog}`)),
)
const file = "llama-demo-Q8_0.gguf"
const source = `hf:acme/llama-demo@0123abcd/${file}`
const remote: TestModel = {
  ...llamaModel,
  id: "remote",
  files: { weights: { source, sha256: sha256(weights) } },
}
/** Not loaded: only its weights matter. */
const near: TestModel = { ...llamaModel, id: "near", runtime: { load: "demand" } }
const chat = {
  model: "remote",
  temperature: 0,
  max_tokens: 8,
  messages: [{ role: "user", content: "Hello" }],
}

let hub: FakeHub
let node: TestNode
let key = ""
const endpoint = process.env.HF_ENDPOINT
beforeAll(async () => {
  hub = await startHub({ [`acme/llama-demo/0123abcd/${file}`]: weights })
  process.env.HF_ENDPOINT = hub.endpoint
})
afterAll(async () => {
  if (endpoint === undefined) delete process.env.HF_ENDPOINT
  else process.env.HF_ENDPOINT = endpoint
  await hub.stop()
})
beforeEach(async () => {
  hub.reset()
  node = await startNode({ models: [remote, near] })
  key = await node.run(
    Effect.flatMap(Accounts, (accounts) =>
      Effect.map(accounts.createKey({ org: "dev", scope: "superadmin" }), ({ apiKey }) => apiKey),
    ),
  )
})
afterEach(async () => {
  delete process.env.HF_HUB_OFFLINE
  await node.stop()
})

interface Told {
  readonly type: string
  readonly file?: string
  readonly received_bytes?: number
  readonly total_bytes?: number | null
  readonly error?: string
  readonly files?: ReadonlyArray<object>
}

/** The events of a whole answer; it has to end with `[DONE]`. */
const eventsOf = (text: string): ReadonlyArray<Told> => {
  const data = text.split("\n\n").filter((part) => part !== "")
  expect(data.at(-1)).toBe("data: [DONE]")
  return data.slice(0, -1).map((part) => JSON.parse(part.replace(/^data: /, "")) as Told)
}

const pull = (model_name = "remote", signal?: AbortSignal) =>
  node.post("/v1/models/pull", { model_name }, { key, ...(signal === undefined ? {} : { signal }) })

const part = () => join(node.dataDir, `weights/pull/hf/acme/llama-demo/0123abcd/${file}.part`)
const support = async () =>
  ((await (await node.fetch("/health")).json()) as { features: { huggingface_support: boolean } }).features
    .huggingface_support

it("reports its progress, resumes what was cut, and the next request is served", async () => {
  expect((await node.post("/v1/chat/completions", chat)).status).toBe(503)
  hub.behaviour.cutAfter = [500_000]
  hub.behaviour.pieceBytes = 100_000
  hub.behaviour.pieceMs = 20
  const answer = await pull()
  expect([answer.status, answer.headers.get("content-type")]).toEqual([
    200,
    "text/event-stream; charset=utf-8",
  ])
  const events = eventsOf(await answer.text())
  const progress = events.filter(({ type }) => type === "progress")
  expect(progress.length).toBeGreaterThan(1)
  expect(progress.at(-1)).toEqual({
    type: "progress",
    file,
    received_bytes: weights.length,
    total_bytes: weights.length,
  })
  expect(events.at(-1)).toEqual({
    type: "done",
    model: "remote",
    files: [
      {
        role: "weights",
        source,
        size_bytes: weights.length,
        sha256: sha256(weights),
        checked_by: "catalog",
        fetched: true,
      },
    ],
  })
  const ranges = hub.seen.filter(({ at }) => at === "storage").map(({ headers }) => headers.range)
  expect(ranges).toEqual([undefined, expect.stringMatching(/^bytes=[1-9]/)])
  expect((await node.post("/v1/chat/completions", chat)).status).toBe(200)
  // A second pull does no harm.
  expect(eventsOf(await (await pull()).text()).at(-1)).toMatchObject({
    type: "done",
    files: [{ fetched: false }],
  })
  expect(eventsOf(await (await pull("near")).text())).toEqual([{ type: "done", model: "near", files: [] }])
})

it("`models pull --node` follows it, from anywhere", async () => {
  const command = (...args: ReadonlyArray<string>) =>
    edgewise(["models", "pull", ...args, "--node", "--url", node.base, "--key", key])
  const done = await command("remote", "near")
  expect([done.status, done.stdout.split("\n")]).toEqual([
    0,
    [expect.stringContaining("pulled, SHA-256 as in the catalog"), "near: its weights are local files", ""],
  ])
  expect(done.stderr).toContain(`${file}: 100 % of `)
  const unknown = await command("nothing")
  expect([unknown.status, unknown.stdout, unknown.stderr]).toEqual([1, "", "Model not loaded (404)\n"])
})

it("several callers share one pull; it goes on while one of them is there, and ends with the last", async () => {
  hub.behaviour.pieceBytes = 50_000
  hub.behaviour.pieceMs = 100
  const leaves = new AbortController()
  const [first, second] = await Promise.all([pull("remote", leaves.signal), pull()])
  await eventually(() => existsSync(part()) && statSync(part()).size > 100_000, "some has come")
  leaves.abort()
  await first.text().catch(() => "")
  expect(eventsOf(await second.text()).at(-1)).toMatchObject({ type: "done", files: [{ fetched: true }] })
  expect(hub.seen.filter(({ at }) => at === "storage")).toHaveLength(1)
})

it("ends when its only caller leaves, keeps what came, and goes on from there", async () => {
  hub.behaviour.pieceBytes = 50_000
  // The pull takes two seconds: enough to notice the disconnect on a busy machine.
  hub.behaviour.pieceMs = 100
  const leaves = new AbortController()
  const answer = await pull("remote", leaves.signal)
  await eventually(() => existsSync(part()) && statSync(part()).size > 300_000, "some has come")
  leaves.abort()
  await answer.text().catch(() => "")
  await eventually(() => hub.sending() === 0, "the node reads no more")
  let size = -1
  // What came is written once the file no longer grows; on a slow disk some of it may be written later still.
  await eventually(async () => {
    const before = size
    size = statSync(part()).size
    await new Promise((resolve) => setTimeout(resolve, 100))
    return size === before
  }, "the pull has ended")
  hub.behaviour.pieceMs = 20
  hub.seen.length = 0
  expect(eventsOf(await (await pull()).text()).at(-1)).toMatchObject({ type: "done" })
  const ranges = hub.seen.filter(({ at }) => at === "storage").map(({ headers }) => headers.range)
  expect(ranges).toEqual([expect.stringMatching(/^bytes=\d+-$/)])
  const from = Number(/\d+/.exec(ranges[0]!)![0])
  expect(from).toBeGreaterThanOrEqual(size)
  expect(from).toBeLessThan(weights.length)
})

it("a wrong sum, a hub that refuses and a node that stops are events; nothing is kept of a wrong file", async () => {
  hub.behaviour.content = Buffer.from(weights).fill(7, 0, 100)
  const wrong = eventsOf(await (await pull()).text())
  expect(wrong.at(-1)).toEqual({ type: "error", error: expect.stringContaining("SHA-256") })
  expect(existsSync(part())).toBe(false)
  hub.reset()
  hub.behaviour.hubStatus = 404
  expect(eventsOf(await (await pull()).text()).at(-1)).toEqual({
    type: "error",
    error: expect.stringContaining("no such repository"),
  })
  hub.reset()
  hub.behaviour.pieceBytes = 10_000
  hub.behaviour.pieceMs = 100
  const answer = await pull()
  await node.run(Effect.flatMap(Drain, (drain) => Effect.forkDetach(drain.close)))
  expect(eventsOf(await answer.text()).at(-1)).toEqual({ type: "error", error: "Server is shutting down" })
})

it("refuses callers who are no operators, models that are not there, and wrong bodies", async () => {
  const refused = await node.post("/v1/models/pull", { model_name: "remote" })
  expect([refused.status, await refused.json()]).toEqual([403, { detail: "Requires the superadmin scope" }])
  expect((await pull("nothing")).status).toBe(404)
  const empty = await node.post("/v1/models/pull", {}, { key })
  expect([empty.status, ((await empty.json()) as { detail: string }).detail]).toEqual([
    400,
    expect.stringContaining("model_name"),
  ])
  expect(hub.seen).toEqual([])
})

it("/health reports whether it can pull: with a hub, and a writable folder", async () => {
  expect(await support()).toBe(true)
  const nowhere = {
    dir: "/nowhere/weights",
    dataDir: "/nowhere",
    catalog: "",
    hub: { endpoint: "http://x", token: undefined },
  }
  const canPull = Effect.flatMap(ModelPulls, (pulls) => pulls.canPull).pipe(
    Effect.provide(Layer.provide(ModelPulls.layer(nowhere), Drain.layer)),
  )
  expect(await Effect.runPromise(canPull)).toBe(false)
  process.env.HF_HUB_OFFLINE = "1"
  const offline = await startNode({ models: [remote] })
  const other = node
  node = offline
  expect(await support()).toBe(false)
  const operator = await offline.run(
    Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "dev", scope: "superadmin" })),
  )
  const answer = await offline.post("/v1/models/pull", { model_name: "remote" }, { key: operator.apiKey })
  expect([answer.status, await answer.json()]).toEqual([
    400,
    { detail: "this node uses no hub: HF_HUB_OFFLINE is set" },
  ])
  await offline.stop()
  node = other
})
