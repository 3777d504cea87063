// Engines crash and hang, by kill -9 and by script: their requests fail at once as protocol 3.5 says, everything
// else continues, and the next request is served.
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { NodeTreeRecord, TreeRecord } from "#api/operations/NodeTree.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { TextStream } from "../support/clients/TextStream.ts"
import { inLong, isLong } from "../support/groups/Runs.ts"
import { script } from "../support/nodes/FakeNode.ts"
import { fakeModel, llamaModel } from "../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilIdle, untilLoaded } from "../support/nodes/TestNode.ts"

let node: TestNode
let operator = ""
beforeAll(async () => {
  node = await startNode({
    models: [
      fakeModel,
      { ...fakeModel, id: "other" },
      { ...fakeModel, id: "hangs", runtime: { load: "start", hangDeadlineMs: 3_000 } },
      { ...fakeModel, id: "hopeless", options: { slots: 1 } },
      { ...fakeModel, id: "crashes" },
      { ...llamaModel, runtime: { load: "start" } },
    ],
  })
  // All of them: the tree is compared with what it was before.
  await untilLoaded(node, "fake", "other", "hangs", "hopeless", "crashes", "llama")
  const made = Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org: "ops", scope: "superadmin" }))
  operator = (await node.run(made)).apiKey
})
afterAll(() => node.stop())

const path = "/v1/chat/completions"
const chat = (model: string, content: string, more: object = {}) => ({
  model,
  messages: [{ role: "user", content }],
  max_tokens: 4000,
  ...more,
})
/** Of 80 s: on a busy machine the next engine takes several to start. */
const endless = (model: string) => chat(model, script({ tokens: 4000, tokenMs: 20 }), { stream: true })
const open = async (body: object): Promise<TextStream> => {
  const stream = new TextStream(await node.post(path, body))
  await stream.take(2)
  return stream
}
const openMany = (count: number, body: object) => Promise.all(Array.from({ length: count }, () => open(body)))
const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** The end of a failed stream: one error event, then the connection closes with no `[DONE]`. */
const expectFailure = (stream: TextStream, message: string): void => {
  expect(stream.ended).toBe("cut")
  expect(stream.events).not.toContain("[DONE]")
  expect(JSON.parse(stream.events.at(-1)!)).toStrictEqual({ error: { message, type: "server_error" } })
  expect(stream.events.filter((data) => data.includes('"error"'))).toHaveLength(1)
}

/** The lines of the node's tree by name, without what changes by itself: ages, memory, CPU threads, and the messages that wait. */
const readTree = async (): Promise<Map<string, object>> => {
  const answer = await node.fetch("/v1/node/tree", { headers: { authorization: `Bearer ${operator}` } })
  const lines = new Map<string, object>()
  const add = ({
    children,
    children_total,
    holds,
    kind,
    mailbox,
    name,
    restarts,
    state,
  }: TreeRecord): void => {
    lines.set(name, {
      kind,
      state,
      restarts,
      bound: mailbox?.bound,
      requests: holds.requests,
      children_total,
    })
    children.forEach(add)
  }
  add(((await answer.json()) as typeof NodeTreeRecord.Type).tree)
  return lines
}

/** Requests health and models from the node repeatedly until stopped; every answer must be good. */
const watch = () => {
  let stopped = false
  const asked = (async () => {
    let answers = 0
    while (!stopped) {
      const health = await node.fetch("/health")
      const models = await node.fetch("/v1/models", { headers: { authorization: `Bearer ${node.keys.dev}` } })
      expect([health.status, models.status]).toEqual([200, 200])
      expect(((await models.json()) as { data: Array<unknown> }).data).toHaveLength(6)
      expect(await health.json()).toMatchObject({ status: "healthy" })
      answers++
    }
    return answers
  })()
  return () => {
    stopped = true
    return asked
  }
}

for (const [model, body] of [
  ["fake", endless("fake")],
  [
    "llama",
    chat("llama", "Tell me a long story about a cat.", {
      stream: true,
      max_tokens: 1500,
      min_tokens: 1500,
      temperature: 2,
    }),
  ],
] as const) {
  it(`kill -9 of the ${model} engine under 8 streams`, async () => {
    await untilIdle(node)
    const before = await readTree()
    const bystander = await open(endless("other"))
    const pids = ["fake", "other", "hangs", "llama"].map((id) => node.gauges(id).pid!)
    const whole = model === "fake" ? node.post(path, { ...body, stream: false }) : undefined
    const streams = await openMany(8, body)
    const pid = node.gauges(model).pid!
    const stopWatching = watch()

    const beganWith = bystander.events.length
    const others = bystander.take(beganWith + 50)
    process.kill(pid, "SIGKILL")
    await Promise.all(streams.map((stream) => stream.toEnd()))
    // That they wait for no deadline is in the words below, too: those of a deadline are others. A machine that stands still reads late.
    if (isLong) expect(bystander.events.length - beganWith).toBeLessThan(250)

    for (const stream of streams) expectFailure(stream, "The model's engine stopped unexpectedly")
    if (whole !== undefined) {
      expect((await whole).status).toBe(500)
      expect(await (await whole).json()).toEqual({ detail: "The model's engine stopped unexpectedly" })
    }

    // The next one waits for the new engine and is served by it.
    const next = await node.post(path, chat(model, "hello", { max_tokens: 3 }))
    expect(next.status).toBe(200)
    expect(await next.json()).toMatchObject({
      model,
      usage: { completion_tokens: expect.any(Number) },
    })
    expect(await stopWatching()).toBeGreaterThan(0)

    await others
    const seen = bystander.events.length
    await bystander.take(seen + 5)
    expect(bystander.ended).toBeUndefined()
    await bystander.leave()
    await untilIdle(node)
    expect(alive(pid)).toBe(false)
    const after = ["fake", "other", "hangs", "llama"].map((id) => node.gauges(id).pid!)
    expect(after.filter((each, i) => each !== pids[i])).toEqual([node.gauges(model).pid])
    expect(node.gauges(model)).toMatchObject({ restarts: 1, open: 0, waiting: 0 })
    expect(node.gauges("other").restarts).toBe(0)
    // The tree shows the same: one restart of one engine, everything else as before.
    const name = `engine ${model}`
    expect(before.get(name)).toMatchObject({ kind: "engine", state: "running", restarts: 0, requests: 0 })
    expect(await readTree()).toEqual(new Map(before).set(name, { ...before.get(name), restarts: 1 }))
  })
}

it("an engine that stops answering is replaced, and only its own requests fail", inLong, async () => {
  const bystander = await open(endless("other"))
  const sharing = await openMany(3, endless("hangs"))
  const pid = node.gauges("hangs").pid!
  const hung = new TextStream(
    await node.post(path, chat("hangs", script({ tokens: 9, tokenMs: 2, hangAt: 4 }), { stream: true })),
  )
  const whole = node.post(path, chat("hangs", script({ tokens: 9, tokenMs: 50 })))
  await Promise.all([hung, ...sharing].map((stream) => stream.toEnd()))
  for (const stream of [hung, ...sharing]) expectFailure(stream, "The model's engine stopped responding")
  expect([(await whole).status, await (await whole).json()]).toEqual([
    500,
    { detail: "The model's engine stopped responding" },
  ])

  const next = await node.post(path, chat("hangs", script({ tokens: 2, text: "ok " })))
  expect(await next.json()).toMatchObject({ choices: [{ message: { content: "ok ok " } }] })
  await eventually(() => !alive(pid), "the hung process is gone")
  expect(node.gauges("hangs").restarts).toBe(1)
  const seen = bystander.events.length
  await bystander.take(seen + 5)
  expect(bystander.ended).toBeUndefined()
  await bystander.leave()
  await untilIdle(node)
})

it("requests that wait when the engine crashes are served by the next one", async () => {
  const first = await open(endless("hopeless"))
  const waiting = [1, 2, 3].map((i) =>
    node.post(path, chat("hopeless", script({ tokens: 1, text: `w${i}` }))),
  )
  await eventually(() => node.gauges("hopeless").waiting === 3, "three wait")
  process.kill(node.gauges("hopeless").pid!, "SIGKILL")
  await first.toEnd()
  expectFailure(first, "The model's engine stopped unexpectedly")
  for (const [i, response] of (await Promise.all(waiting)).entries()) {
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: `w${i + 1}` } }] })
  }
})

/** Of users that the node has not served yet. */
const freshKeys = (count: number) =>
  node.run(
    Effect.gen(function* () {
      const accounts = yield* Accounts
      return yield* Effect.forEach(Array.from({ length: count }), (_, nth) =>
        Effect.map(
          accounts.createKey({ org: "dev", user: `fresh-${nth}-${Math.random()}` }),
          (made) => made.apiKey,
        ),
      )
    }),
  )

describe("an engine that crashes repeatedly", () => {
  it("by one user's requests: that user is refused, all others are served", async () => {
    const [attacker, honest] = await freshKeys(2)
    const statuses: Array<number> = []
    for (let i = 0; i < 8; i++) {
      const response = await node.post(path, chat("crashes", script({ tokens: 3, crashAt: 1 })), {
        key: attacker!,
      })
      statuses.push(response.status)
      if (response.status === 503) expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(30)
      await response.arrayBuffer()
      const other = await node.post(path, chat("crashes", script({ tokens: 2, text: "ok" })), {
        key: honest!,
      })
      expect([other.status, await other.json()]).toMatchObject([
        200,
        { choices: [{ message: { content: "okok" } }] },
      ])
    }
    expect(statuses).toEqual([500, 500, 503, 503, 503, 503, 503, 503])
    expect(node.status("crashes")).toBe("loaded")
  })

  it("by every user's requests: it is marked failed with the reason, and other models are unaffected", async () => {
    const pid = node.gauges("other").pid
    const statuses: Array<number> = []
    for (const key of await freshKeys(6)) {
      const response = await node.post(path, chat("hopeless", script({ tokens: 3, crashAt: 1 })), { key })
      statuses.push(response.status)
      await response.arrayBuffer()
      if (response.status === 503) break
    }
    expect(statuses.at(-1)).toBe(503)
    expect(statuses.slice(0, -1).every((status) => status === 500)).toBe(true)

    const refused = await node.post(path, chat("hopeless", "hello"))
    expect(refused.status).toBe(503)
    expect(await refused.json()).toEqual({ detail: "Model is unavailable" })
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    const health = await node.fetch("/health")
    expect([health.status, ((await health.json()) as { status: string }).status]).toEqual([200, "degraded"])
    const status = await node.fetch("/v1/models/status", {
      headers: { authorization: `Bearer ${node.keys.dev}` },
    })
    expect(await status.json()).toMatchObject({
      loaded: ["fake", "other", "hangs", "crashes", "llama"],
      loading_status: { fake: "loaded", hopeless: "failed" },
    })
    expect((await node.post(path, chat("other", "hello"))).status).toBe(200)
    expect(node.gauges("other").pid).toBe(pid)
    await untilIdle(node)
  })
})
