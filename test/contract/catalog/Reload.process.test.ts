// A catalog that is edited while its node serves: by request and by SIGHUP, under load, and with mistakes in it.
import { appendFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { Device } from "#actors/device/Device.ts"
import type { ReloadRecord } from "#api/operations/CatalogReload.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { orgWith, receiptsOf } from "../../support/nodes/Ledger.ts"
import { edgewise, startProcess } from "../../support/nodes/NodeProcess.ts"
import { askToReload, leaving, operatorKey, reload } from "../../support/nodes/Reloading.ts"
import { fakeModel, price, type TestModel, writeCatalog } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { childrenRunning } from "../../support/process/ChildProcesses.ts"
import { sha256 } from "../../support/servers/FakeHub.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [model("a")] })
})
afterAll(() => node.stop())

/** The node with these models, and with no engine that another test has left. */
const having = async (...models: ReadonlyArray<TestModel>): Promise<TestNode> => {
  await reload(node, models)
  await eventually(async () => (await leaving(node)) === 0, "engines of other models have ended")
  return node
}

const model = (id: string, more: Partial<TestModel> = {}): TestModel => ({ ...fakeModel, id, ...more })

const chat = (id: string, steps: Readonly<Record<string, unknown>>, stream = false) => ({
  model: id,
  stream,
  max_tokens: 4_000,
  messages: [{ role: "user", content: script(steps) }],
})

const listed = async (at: TestNode): Promise<ReadonlyArray<string>> => {
  const response = await at.fetch("/v1/models", { headers: { authorization: `Bearer ${at.keys.dev}` } })
  return ((await response.json()) as { data: ReadonlyArray<{ id: string }> }).data.map(({ id }) => id)
}

const isRunning = (pid: number | undefined) => childrenRunning("engineMain").includes(pid ?? 0)
const claimedBytes = Effect.map(Device, (device) => device.host().claimedBytes)

const edits = 20

it(
  `${edits} edits under load of 8 clients: nothing of models that stay fails, and they keep their processes`,
  inLong,
  async () => {
    const edition = (n: number): ReadonlyArray<TestModel> => [
      model("stays-a"),
      model("stays-b"),
      model("priced", { price: { ...price, inputPerMillionTokens: 200_000 + n } }),
      // Every fourth edit: a new engine takes a second to start, and its requests wait for it.
      model("replaced", { options: { contextTokens: 4_096 + Math.floor(n / 4) } }),
      ...(n % 2 === 0 ? [] : [model("guest", { runtime: { load: "demand" } })]),
    ]
    const at = await having(...edition(0))
    const ids = ["stays-a", "stays-b", "priced", "replaced"]
    await untilLoaded(at, ...ids)
    const pids = () => ids.slice(0, 3).map((id) => at.gauges(id).pid)
    const before = pids()
    const counts = { done: 0, guestThere: 0, guestAway: 0 }
    const wrong: Array<string> = []
    let editing = true
    const client = async (nth: number) => {
      for (let i = 0; editing || i < 4; i++) {
        const id = i % 5 === 4 ? "guest" : ids[(nth + i) % ids.length]!
        const stream = (nth + i) % 2 === 0
        const response = await at.post(
          "/v1/chat/completions",
          chat(id, { tokens: 8, text: "x", tokenMs: 3 }, stream),
        )
        const text = await response.text()
        if (id === "guest" && response.status === 404) counts.guestAway++
        else if (response.status !== 200) wrong.push(`${id}: ${response.status} ${text}`)
        else if (
          stream ? !text.endsWith("data: [DONE]\n\n") || /"error"/.test(text) : !text.includes('"xxxxxxxx"')
        )
          wrong.push(`${id}: ${text.slice(0, 200)}`)
        else if (id === "guest") counts.guestThere++
        else counts.done++
      }
    }
    const clients = Promise.all(Array.from({ length: 8 }, (_, nth) => client(nth)))
    for (let n = 1; n <= edits; n++) {
      const answer = await reload(at, edition(n))
      const guest = n % 2 === 1 ? { added: ["guest"], removed: [] } : { added: [], removed: ["guest"] }
      expect(answer).toEqual({
        status: "success",
        ...guest,
        changed: n % 4 === 0 ? ["priced", "replaced"] : ["priced"],
        unchanged: n % 4 === 0 ? 2 : 3,
        failed: [],
      })
      const until = counts.done + 8
      const guests = n % 2 === 1 ? "guestThere" : "guestAway"
      const most = counts[guests]
      const isSeen = () => counts.done >= until && counts[guests] > most
      await eventually(() => isSeen() || wrong.length > 0, "the next requests are answered")
    }
    editing = false
    await clients
    expect(wrong).toEqual([])
    expect(counts.done).toBeGreaterThanOrEqual(8 * edits)
    expect(pids()).toEqual(before)
    await eventually(async () => (await leaving(at)) === 0, "the replaced engines have ended")
  },
)

it("what has begun on a removed model ends there; then its process, its memory and its series are gone", async () => {
  const at = await having(model("goes"), model("stays"))
  await untilLoaded(at, "goes", "stays")
  const { pid } = at.gauges("goes")
  const claimed = await at.run(claimedBytes)
  const begun = await at.post(
    "/v1/chat/completions",
    chat("goes", { tokens: 200, tokenMs: 1, text: "y", signalAt: 100 }, true),
  )
  expect(await reload(at, [model("stays")])).toMatchObject({ removed: ["goes"], unchanged: 1 })
  const refused = await at.post("/v1/chat/completions", chat("goes", { tokens: 1 }))
  expect([refused.status, await refused.json()]).toEqual([404, { detail: "Model not loaded" }])
  expect(await listed(at)).toEqual(["stays"])
  expect((await at.metrics()).get("edgewise_models_leaving")).toBe(1)
  expect(isRunning(pid)).toBe(true)
  process.kill(pid!, "SIGUSR2")
  const text = await begun.text()
  expect(text.match(/"content":"y"/g)).toHaveLength(200)
  expect(text.endsWith("data: [DONE]\n\n")).toBe(true)
  await eventually(async () => (await leaving(at)) === 0, "it has ended")
  expect(isRunning(pid)).toBe(false)
  expect(await at.run(claimedBytes)).toBeLessThan(claimed)
  const names = [...(await at.metrics()).keys()]
  expect(names.filter((name) => name.includes('"goes"'))).toEqual([])
})

it("an operator's unload ends what a reload has left running", async () => {
  const at = await having(model("goes"), model("stays"))
  await untilLoaded(at, "goes")
  const { pid } = at.gauges("goes")
  const begun = await at.post("/v1/chat/completions", chat("goes", { tokens: 4_000, tokenMs: 50 }, true))
  await reload(at, [model("stays")])
  const key = await operatorKey(at)
  const unloaded = await at.post("/v1/models/unload", { model_name: "goes" }, { key })
  expect([unloaded.status, ((await unloaded.json()) as { status: string }).status]).toEqual([200, "success"])
  expect(isRunning(pid)).toBe(false)
  // A stream that fails is cut, so that it cannot be taken for a whole one.
  await expect(begun.text()).rejects.toThrow()
  expect((await at.post("/v1/models/unload", { model_name: "goes" }, { key })).status).toBe(404)
})

it("a wrong catalog changes nothing and says what is wrong; callers may not reload", async () => {
  const at = await having(model("a"))
  await untilLoaded(at, "a")
  const { pid } = at.gauges("a")
  for (const [text, words] of [
    ["{", "catalog"],
    [JSON.stringify({ models: [{ id: "a" }] }), "kind"],
    [JSON.stringify({ models: [] }).replace("[]", "17"), "models"],
  ] as const) {
    writeFileSync(at.catalog, text)
    const answer = await askToReload(at)
    const { detail, mistakes } = (await answer.json()) as { detail: string; mistakes: ReadonlyArray<string> }
    expect([answer.status, detail]).toEqual([400, expect.stringContaining(words)])
    expect(detail.startsWith(mistakes[0]!)).toBe(true)
  }
  expect([await listed(at), at.gauges("a").pid]).toEqual([["a"], pid])
  expect(await reload(at, [model("a")])).toMatchObject({ unchanged: 1, changed: [] })
  const refused = await at.post("/v1/models/reload", "", { key: at.keys.credit })
  expect([refused.status, await refused.json()]).toEqual([403, { detail: "Requires the superadmin scope" }])
})

it("reloads at once and side by side are done one after the other", async () => {
  const at = await having(model("a", { runtime: { load: "demand" } }))
  writeCatalog(at.catalog, [
    model("a", { runtime: { load: "demand" } }),
    model("b", { runtime: { load: "demand" } }),
  ])
  const answers = await Promise.all(Array.from({ length: 10 }, () => askToReload(at)))
  const added = (await Promise.all(answers.map((answer) => answer.json() as Promise<ReloadRecord>))).map(
    (one) => one.added,
  )
  expect(added.filter((ids) => ids.length > 0)).toEqual([["b"]])
})

it("weights that changed under the same entry are a change; a file that was only touched and has a sum is none", async () => {
  const at = await having(model("a", { runtime: { load: "demand" } }))
  // Not loaded: a load would read the file again, between two edits.
  const file = join(at.dataDir, "weights.bin")
  writeFileSync(file, "one")
  const plain = model("a", { runtime: { load: "demand" }, files: { weights: { source: file } } })
  expect((await reload(at, [plain])).changed).toEqual(["a"])
  expect((await reload(at, [plain])).changed).toEqual([])
  appendFileSync(file, "!")
  expect((await reload(at, [plain])).changed).toEqual(["a"])
  const withSum = (sum: string) => model("a", { ...plain, files: { weights: { source: file, sha256: sum } } })
  expect(await reload(at, [withSum(sha256(Buffer.from("another")))])).toMatchObject({
    status: "partial",
    changed: ["a"],
    failed: [{ model: "a", reason: expect.stringContaining("has SHA-256") }],
  })
  const right = withSum(sha256(Buffer.from("one!")))
  // The entry is right again, the weights did not change.
  expect((await reload(at, [right])).changed).toEqual(["a"])
  const touch = () => utimesSync(file, new Date(), new Date(statSync(file).mtimeMs + 5_000))
  touch()
  expect((await reload(at, [right])).changed).toEqual([])
  expect((await reload(at, [plain])).changed).toEqual(["a"])
  touch()
  expect((await reload(at, [plain])).changed).toEqual(["a"])
})

it("SIGHUP under load, on a node of its own: nothing fails, the engine stays, a mistake is one line", async () => {
  const at = await startProcess({ models: [model("a")] })
  try {
    const authorization = { authorization: `Bearer ${at.devKey}` }
    const states = async () => {
      const response = await fetch(`${at.base}/v1/models/status`, { headers: authorization })
      return ((await response.json()) as { loading_status: Record<string, string> }).loading_status
    }
    await eventually(async () => (await states()).a === "loaded", "a is loaded")
    const engines = childrenRunning("engineMain", at.pid)
    const statuses: Array<number> = []
    let editing = true
    const client = async () => {
      while (editing) {
        const response = await fetch(`${at.base}/v1/chat/completions`, {
          method: "POST",
          headers: { ...authorization, "content-type": "application/json" },
          body: JSON.stringify(chat("a", { tokens: 8, tokenMs: 3 })),
        })
        await response.arrayBuffer()
        statuses.push(response.status)
      }
    }
    const clients = Promise.all(Array.from({ length: 4 }, client))
    for (let n = 0; n < 5; n++) {
      writeCatalog(at.catalog, [model("a"), model(`b${n}`)])
      at.signal("SIGHUP")
      await eventually(async () => Object.keys(await states()).join() === `a,b${n}`, `b${n} is there`)
    }
    writeFileSync(at.catalog, "{")
    at.signal("SIGHUP")
    await eventually(() => at.stderr().includes("SIGHUP: the catalog was not applied"), "the mistake is told")
    expect(Object.keys(await states())).toEqual(["a", "b4"])
    editing = false
    await clients
    expect(statuses.length).toBeGreaterThan(10)
    expect(statuses.filter((status) => status !== 200)).toEqual([])
    writeCatalog(at.catalog, [model("a")])
    at.signal("SIGHUP")
    const onlyFirst = () => childrenRunning("engineMain", at.pid).join() === engines.join()
    await eventually(onlyFirst, "no engine is left but the first")
  } finally {
    await at.dispose()
  }
})

it("`edgewise reload` says what changed, or what is wrong", async () => {
  const at = await having(model("a"), model("b"))
  const env = { EDGEWISE_API_KEY: await operatorKey(at) }
  writeCatalog(at.catalog, [model("a", { kind: "song" }), model("b", { adapter: "none" })])
  const bad = await edgewise(["reload", "--url", at.base], env)
  const lines = bad.stderr.trim().split("\n")
  expect([bad.status, bad.stdout, lines.length]).toEqual([2, "", 2])
  expect(lines).toEqual([
    expect.stringMatching(/catalog\.json:\d+:\d+: a: kind: /),
    expect.stringMatching(/catalog\.json:\d+:\d+: b: adapter: /),
  ])
  writeCatalog(at.catalog, [model("b")])
  const good = await edgewise(["reload", "--url", at.base], env)
  expect([good.status, good.stdout, good.stderr]).toEqual([0, "removed a; 1 unchanged\n", ""])
  const json = await edgewise(["reload", "--json", "--url", at.base], env)
  expect(JSON.parse(json.stdout)).toMatchObject({ status: "success", unchanged: 1 })
})

it("a price that changed is charged from then on, on the same engine", async () => {
  const free = { inputPerMillionTokens: 0, outputPerMillionTokens: 0 }
  const at = await having(model("a", { price: free }))
  await untilLoaded(at, "a")
  const { pid } = at.gauges("a")
  const key = await orgWith(at, "probe", 1_000_000)
  const ask = async () => (await at.post("/v1/chat/completions", chat("a", { tokens: 100 }), { key })).json()
  await ask()
  expect(
    await reload(at, [model("a", { price: { ...free, outputPerMillionTokens: 1_000_000 } })]),
  ).toMatchObject({
    changed: ["a"],
  })
  await ask()
  await eventually(async () => (await receiptsOf(at, "probe")).length === 2, "both are charged")
  const charged = (await receiptsOf(at, "probe")).map(({ microDollars }) => microDollars)
  expect(charged.toSorted((one, other) => one - other)).toEqual([0, 100])
  expect(at.gauges("a").pid).toBe(pid)
})

it("files that vanish under a loaded model leave it its engine; without one, it is failed until they are back", async () => {
  const at = await having(model("runs"))
  const file = join(at.dataDir, "weights.bin")
  writeFileSync(file, "one")
  const files = { weights: { source: file } }
  const both = [model("runs", { files }), model("waits", { files, runtime: { load: "demand" } })]
  expect(await reload(at, both)).toMatchObject({ status: "success", added: ["waits"], changed: ["runs"] })
  await untilLoaded(at, "runs")
  const { pid } = at.gauges("runs")
  rmSync(file)
  const reason = `weights: ${file} is not there`
  expect(await reload(at, both)).toEqual({
    status: "partial",
    added: [],
    removed: [],
    changed: ["waits"],
    unchanged: 1,
    failed: ["runs", "waits"].map((id) => ({ model: id, reason })),
  })
  const ask = async (id: string) => (await at.post("/v1/chat/completions", chat(id, { tokens: 1 }))).status
  expect([await ask("runs"), await ask("waits")]).toEqual([200, 503])
  writeFileSync(file, "one")
  const mended = await reload(at, both)
  expect([mended.status, mended.changed.includes("waits")]).toEqual(["success", true])
  expect([await ask("runs"), await ask("waits")]).toEqual([200, 200])
  expect(at.gauges("runs").pid).not.toBe(pid)
})

it("an alias works from the reload on that adds it until the one that takes it away, on the same engine", async () => {
  const at = await having(model("a"))
  await untilLoaded(at, "a")
  const { pid } = at.gauges("a")
  const ask = async () => (await at.post("/v1/chat/completions", chat("nickname", { tokens: 1 }))).status
  expect(await ask()).toBe(404)
  expect((await reload(at, [model("a", { aliases: ["nickname"] })])).changed).toEqual(["a"])
  expect(await ask()).toBe(200)
  expect((await reload(at, [model("a")])).changed).toEqual(["a"])
  expect([await ask(), at.gauges("a").pid]).toEqual([404, pid])
})
