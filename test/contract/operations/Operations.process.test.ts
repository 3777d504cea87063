// Operator endpoints over a real node: scopes, records, and that memory is really freed.
import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
let operator: string

beforeAll(async () => {
  node = await startNode({
    models: [fakeModel, { id: "other" }, { id: "broken", options: { loadFailure: "broken weights" } }],
  })
  const made = Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "ops", scope: "superadmin" }))
  operator = (await node.run(made)).apiKey
})
afterAll(() => node.stop())

const get = (path: string, key: string) => node.fetch(path, { headers: { authorization: `Bearer ${key}` } })
const post = (path: string, body: unknown) => node.post(path, body, { key: operator })
const chat = { model: fakeModel.id, messages: [{ role: "user", content: "hi" }] }

const endpoints = [
  ["POST", "/v1/models/load", { model_name: "fake" }],
  ["POST", "/v1/models/unload", { model_name: "fake" }],
  ["POST", "/v1/models/unload-all", undefined],
  ["GET", "/v1/gpu/status", undefined],
  ["GET", "/v1/gpu/memory", undefined],
  ["POST", "/v1/gpu/purge", undefined],
  ["GET", "/v1/node/tree", undefined],
  ["DELETE", "/v1/orgs?org=dev", undefined],
  ["DELETE", "/v1/orgs/users?org=dev&user=default", undefined],
  ["DELETE", "/v1/orgs/jobs?org=dev&job_id=x", undefined],
  ["DELETE", "/v1/orgs/answers?org=dev", undefined],
] as const

it.each(endpoints)("%s %s: 403 for a standard key, 401 for none", async (method, path, body) => {
  const init = (key: string): RequestInit => ({
    method,
    headers: {
      "content-type": "application/json",
      ...(key === "" ? {} : { authorization: `Bearer ${key}` }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const refused = await node.fetch(path, init(node.keys.dev))
  expect([refused.status, await refused.json()]).toEqual([403, { detail: "Requires the superadmin scope" }])
  expect((await node.fetch(path, init(""))).status).toBe(401)
})

const statusOf = async () =>
  (await (await get("/v1/models/status", operator)).json()) as {
    loaded: ReadonlyArray<string>
    loading_status: Record<string, string>
  }

it("loads, reloads and unloads a model; its process ends, and requests then get 404", async () => {
  const loaded = await post("/v1/models/load", { model_name: "fake" })
  expect(await loaded.json()).toMatchObject({ status: "success", model: "fake", force_reload: false })
  const first = node.gauges("fake").pid!
  await post("/v1/models/load", { model_name: "fake" })
  expect(node.gauges("fake").pid).toBe(first)
  await post("/v1/models/load", { model_name: "fake", force_reload: true })
  const second = node.gauges("fake").pid!
  expect(second).not.toBe(first)
  expect((await statusOf()).loading_status).toMatchObject({ fake: "loaded", other: "unloaded" })
  // CPU threads of what is loaded, for operators.
  const threads = { fake: { source: "size", works: [{ threads: 1, ms: {} }], now: 1 } }
  expect(await statusOf()).toMatchObject({ threads })
  expect(await (await get("/v1/models/status", node.keys.dev)).json()).not.toHaveProperty("threads")

  const unloaded = await post("/v1/models/unload", { model_name: "fake" })
  expect(await unloaded.json()).toEqual({
    status: "success",
    model: "fake",
    message: expect.stringMatching(/^fake is unloaded: \d+ MB given back in \d+ ms$/),
  })
  for (const pid of [first, second]) expect(() => process.kill(pid, 0)).toThrow("ESRCH")
  expect((await post("/v1/chat/completions", chat)).status).toBe(404)
  // Idempotent, and a load brings it back.
  expect(await (await post("/v1/models/unload", { model_name: "fake" })).json()).toMatchObject({
    status: "success",
  })
  await post("/v1/models/load", { model_name: "fake" })
  expect((await post("/v1/chat/completions", chat)).status).toBe(200)
})

it("answers an unknown model 404 and a missing name 400", async () => {
  expect((await post("/v1/models/load", { model_name: "unknown" })).status).toBe(404)
  const nameless = await post("/v1/models/load", {})
  expect([nameless.status, await nameless.json()]).toEqual([400, { detail: "model_name: is required" }])
  const odd = await post("/v1/models/load", { model_name: "fake", force_reload: "yes" })
  expect(odd.status).toBe(400)
})

it("shows operators only why a model does not load", async () => {
  const refused = await post("/v1/models/load", { model_name: "broken" })
  expect([refused.status, await refused.json()]).toEqual([
    503,
    { detail: "Model is unavailable: broken weights" },
  ])
  const asked = await node.post("/v1/chat/completions", { ...chat, model: "broken" })
  expect([asked.status, await asked.json()]).toEqual([503, { detail: "Model is unavailable" }])
  expect((await statusOf()).loading_status.broken).toBe("failed")
  expect((await post("/v1/models/unload", { model_name: "broken" })).status).toBe(200)
  expect((await statusOf()).loading_status.broken).toBe("unloaded")
})

it("unloads everything and says what", async () => {
  await post("/v1/models/load", { model_name: "fake" })
  await post("/v1/models/load", { model_name: "other" })
  const response = await post("/v1/models/unload-all", "")
  expect(await response.json()).toEqual({
    status: "success",
    unloaded_models: ["fake", "other"],
    errors: [],
    total_unloaded: 2,
  })
  expect((await statusOf()).loaded).toEqual([])
})

it("reads device 0, the host processor, in the records of protocol 12.7", async () => {
  await post("/v1/models/load", { model_name: "fake" })
  const status = (await (await get("/v1/gpu/status", operator)).json()) as {
    gpus: ReadonlyArray<{ memory: Record<string, number> }>
    processes: ReadonlyArray<{ pid: number; name: string; memory_mb: number }>
  }
  expect(status).toMatchObject({ status: "success", total_gpus: 1, gpus: [{ index: 0 }] })
  const memory = status.gpus[0]!.memory
  expect(Math.abs(memory.used_mb! + memory.free_mb! - memory.total_mb!)).toBeLessThanOrEqual(1)
  expect(status.processes.find(({ pid }) => pid === node.gauges("fake").pid)).toMatchObject({
    name: "engine fake",
  })
  const record = (await (await get("/v1/gpu/memory", operator)).json()) as {
    memory: ReadonlyArray<Record<string, number>>
  }
  expect(record.memory[0]!.percent_used! + record.memory[0]!.percent_free!).toBeCloseTo(100, 1)
})

it("refuses to purge models in use, and frees their memory when forced", async () => {
  await post("/v1/models/load", { model_name: "fake" })
  const leaving = new AbortController()
  const script = `fake:${JSON.stringify({ tokens: 1_000_000, tokenMs: 5 })}`
  const running = await node.post(
    "/v1/chat/completions",
    { model: "fake", stream: true, max_tokens: 4096, messages: [{ role: "user", content: script }] },
    { signal: leaving.signal },
  )
  const refused = await post("/v1/gpu/purge", {})
  expect([refused.status, await refused.json()]).toEqual([409, { detail: "force: models are in use: fake" }])
  const purged = (await (await post("/v1/gpu/purge", { force: true })).json()) as Record<string, unknown>
  expect(purged).toMatchObject({ status: "success", models_unloaded: ["fake"], errors: [] })
  expect(purged.memory_freed_gb).toBeGreaterThan(0)
  await expect(running.text()).rejects.toThrow()
  leaving.abort()
})
