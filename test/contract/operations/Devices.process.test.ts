// Devices and memory over a real node: GPU records from `nvidia-smi`'s output, refusals by the memory ledger and the
// memory level, and the command line that loads and unloads.
import { truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Device } from "#actors/device/Device.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { type FakeNvidiaSmi, fakeNvidiaSmi } from "../../support/nodes/FakeNvidiaSmi.ts"
import { edgewise } from "../../support/nodes/NodeProcess.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import {
  eventually,
  startNode,
  type TestNode,
  temporaryDir,
  untilIdle,
  untilLoaded,
} from "../../support/nodes/TestNode.ts"

const uuid = "GPU-00000000-0000-0000-0000-00000000000a"
const operatorKey = (node: TestNode): Promise<string> =>
  node.run(
    Effect.map(
      Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "ops", scope: "superadmin" })),
      ({ apiKey }) => apiKey,
    ),
  )
const chat = (model: string, content = "hi", more: object = {}) => ({
  model,
  messages: [{ role: "user", content }],
  ...more,
})

describe("a node with a GPU", () => {
  const dir = temporaryDir()
  const path = process.env.PATH
  let smi: FakeNvidiaSmi
  let node: TestNode
  let key: string
  const get = async (target: string) =>
    (await (await node.fetch(target, { headers: { authorization: `Bearer ${key}` } })).json()) as Record<
      string,
      unknown
    >

  beforeAll(async () => {
    smi = fakeNvidiaSmi(dir.path, {
      gpus: `0, ${uuid}, 143771, 1024, 142235, 37, 12, 41, Disabled, NVIDIA H200\n`,
      processes: `${uuid}, 4242, 900, /usr/bin/node\n`,
    })
    process.env.PATH = `${dir.path}:${path}`
    node = await startNode({ models: [fakeModel] })
    key = await operatorKey(node)
  })
  afterAll(async () => {
    process.env.PATH = path
    await node.stop()
    dir.remove()
  })

  it("shows it in the records of protocol 12.7, and no field more", async () => {
    const memory = { total_gb: 140.4, used_gb: 1, free_gb: 138.9, percent_used: 0.71 }
    expect(await get("/v1/gpu/status")).toEqual({
      status: "success",
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+$/),
      gpus: [
        {
          index: 0,
          name: "NVIDIA H200",
          memory: { total_mb: 143_771, used_mb: 1_024, free_mb: 142_235, ...memory },
          utilization: { gpu_percent: 37, memory_percent: 12 },
          temperature_c: 41,
        },
      ],
      processes: [{ pid: 4242, name: "/usr/bin/node", memory_mb: 900 }],
      total_gpus: 1,
    })
    expect(await get("/v1/gpu/memory")).toEqual({
      status: "success",
      timestamp: expect.any(String),
      memory: [{ ...memory, percent_free: 98.93 }],
    })
  })

  it("asks the driver no more often than every other second, and never for a request", async () => {
    await untilLoaded(node, "fake")
    const before = smi.runs()
    const beganMs = performance.now()
    for (let i = 0; i < 10; i++) {
      await get("/v1/gpu/status")
      expect((await node.post("/v1/chat/completions", chat("fake"))).status).toBe(200)
    }
    const seconds = (performance.now() - beganMs) / 1_000
    expect(smi.runs() - before).toBeLessThanOrEqual(2 + seconds / 2)
  })

  it("shows the host once the driver fails", async () => {
    smi.say({
      gpus: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
      status: 9,
    })
    const purged = await node.post("/v1/gpu/purge", {}, { key })
    expect(purged.status).toBe(200)
    expect(await get("/v1/gpu/status")).toMatchObject({
      total_gpus: 1,
      gpus: [{ index: 0 }],
      processes: [{ name: "edgewise" }],
    })
  })
})

describe("a node without much memory", () => {
  let node: TestNode
  let key: string
  const dir = temporaryDir()
  beforeAll(async () => {
    // Weights of 60 GB in a sparse file, which the fake engine does not read.
    const source = join(dir.path, "weights")
    writeFileSync(source, "")
    truncateSync(source, 60 * 1024 ** 3)
    const files = { weights: { source } }
    node = await startNode({
      models: [
        { ...fakeModel, files },
        { id: "other", files },
      ],
      settings: { memoryMb: String(100 * 1024) },
    })
    key = await operatorKey(node)
    await untilLoaded(node, "fake")
  })
  afterAll(async () => {
    await node.stop()
    dir.remove()
  })
  const operate = (action: string, body: object | undefined) =>
    node.post(`/v1/models/${action}`, body ?? "", { key })

  it("refuses a model that does not fit, to operators and callers alike, and loads it when memory is free", async () => {
    const refused = await operate("load", { model_name: "other" })
    expect([refused.status, Number(refused.headers.get("retry-after"))]).toEqual([503, 30])
    expect(await refused.json()).toEqual({
      detail: expect.stringMatching(
        /^Not enough memory: other needs 60\.15 GB, 24\.85 GB are free on the host$/,
      ),
    })
    const asked = await node.post("/v1/chat/completions", chat("other"))
    expect([asked.status, asked.headers.has("retry-after")]).toEqual([503, true])
    expect(node.status("other")).toBe("unloaded")
    expect((await operate("unload", { model_name: "fake" })).status).toBe(200)
    expect((await operate("load", { model_name: "other" })).status).toBe(200)
    await operate("unload-all", undefined)
    await operate("load", { model_name: "fake" })
  })

  it("refuses new work while its memory is nearly full, and finishes what has begun", async () => {
    const observe = (share: number) => node.run(Effect.flatMap(Device, (device) => device.observe(share)))
    const running = await node.post(
      "/v1/chat/completions",
      chat("fake", script({ tokens: 40, tokenMs: 2, text: "x" }), { stream: true }),
    )
    let refused = running
    // The memory watch reads once a second: its reading may come in between.
    await eventually(async () => {
      await observe(0.97)
      refused = await node.post("/v1/chat/completions", chat("fake"))
      return refused.status !== 200
    }, "a request is refused")
    await observe(0.1)
    expect([refused.status, await refused.json()]).toEqual([
      503,
      { detail: "The node's memory is nearly full" },
    ])
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    expect((await running.text()).endsWith("data: [DONE]\n\n")).toBe(true)
    expect((await node.post("/v1/chat/completions", chat("fake"))).status).toBe(200)
    await untilIdle(node)
  })

  // Each command is a process, and takes a second or two on a busy machine.
  it("loads and unloads from the command line", async () => {
    const env = { EDGEWISE_DATA_DIR: `${node.dataDir}-elsewhere` }
    const as = (credential: string, ...args: ReadonlyArray<string>) =>
      edgewise(["models", ...args, "--url", node.base, "--key", credential], env)
    const ran = (...args: ReadonlyArray<string>) => as(key, ...args)
    expect(await ran("unload", "--all")).toEqual({ status: 0, stdout: "unloaded fake\n", stderr: "" })
    expect(await ran("load", "fake")).toMatchObject({
      status: 0,
      stdout: "fake is loaded: scripted answers, no weights\n",
    })
    const first = node.gauges("fake").pid
    const again = await ran("load", "fake", "--force-reload", "--json")
    const [full, unknown, forbidden, ...wrong] = await Promise.all([
      ran("load", "other"),
      ran("load", "unknown"),
      as(node.keys.dev, "unload", "fake"),
      ran("unload"),
      ran("unload", "fake", "--all"),
    ])
    expect(JSON.parse(again.stdout)).toMatchObject({ status: "success", model: "fake", force_reload: true })
    expect(node.gauges("fake").pid).not.toBe(first)
    expect(full).toMatchObject({ status: 1, stdout: "" })
    expect(full.stderr).toMatch(/^Not enough memory: .* \(503\)\n$/)
    expect(unknown).toMatchObject({ status: 1, stderr: "Model not loaded (404)\n" })
    expect(forbidden).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^Requires the superadmin scope; [^\n]+ \(403\)\n$/),
    })
    expect(wrong.map(({ status }) => status)).toEqual([2, 2])
    const unloaded = await ran("unload", "fake")
    expect(unloaded.stdout).toMatch(/^fake is unloaded: \d+ MB given back in \d+ ms\n$/)
  })

  it("lists models with their state on the node, and without one", async () => {
    await operate("load", { model_name: "fake" })
    const catalog = { EDGEWISE_DATA_DIR: `${node.dataDir}-elsewhere` }
    const statuses = async (...args: ReadonlyArray<string>) => {
      const { stdout } = await edgewise(["models", "list", "--json", ...args], catalog)
      const { models } = JSON.parse(stdout) as { models: ReadonlyArray<{ id: string; status: string }> }
      return new Set(models.map(({ status }) => status))
    }
    // The built-in catalog's models are not this node's.
    expect(await statuses("--url", node.base, "--key", key)).toEqual(new Set(["not deployed"]))
    expect(await statuses("--url", "http://127.0.0.1:1", "--key", key)).toEqual(new Set(["no node"]))
  })
})
