// Parts of a node that crash until they give up: engines of each kind that die at every start, the actors of the host and of a model, the
// dispatcher of jobs. What callers get, and what the tree, /health and the log say.
import { Effect, Layer, Logger, References } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Device } from "#actors/device/Device.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { Redeployment } from "#actors/model/Redeployment.ts"
import type { NodeTreeRecord, TreeRecord } from "#api/operations/NodeTree.ts"
import { drawTree } from "#cli/commands/Tree.ts"
import type { Deployment } from "#domain/models/Deployment.ts"
import { Jobs } from "#store/ledger/Jobs.ts"
import { listener, liveAddress, noise, openLive, wavOf } from "../support/clients/LiveClient.ts"
import { SocketClient } from "../support/clients/SocketClient.ts"
import {
  metered,
  poll,
  submit,
  targetOf,
  post as transcribe,
  untilDone,
} from "../support/clients/TranscriptionClient.ts"
import { script } from "../support/nodes/FakeNode.ts"
import { operatorKey } from "../support/nodes/Reloading.ts"
import { fakeVoice } from "../support/nodes/SpeechNode.ts"
import { fakeModel } from "../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilIdle, untilLoaded } from "../support/nodes/TestNode.ts"

interface Line {
  readonly level: string
  readonly message: unknown
  readonly annotations: Readonly<Record<string, unknown>>
}

const onDemand = { load: "demand" }
const models = [
  fakeModel,
  { ...fakeModel, id: "later", runtime: onDemand },
  fakeVoice,
  listener({}, { runtime: { load: "start" } }),
]

/** `refuses`: whether the log fails at a line. */
const startLogged = async (refuses: (message: string) => boolean = () => false, more = models) => {
  const lines: Array<Line> = []
  const log = Logger.layer([
    Logger.make(({ fiber, logLevel, message }) => {
      if (refuses(String(message))) throw new Error("the log is full")
      lines.push({ level: logLevel, message, annotations: fiber.getRef(References.CurrentLogAnnotations) })
    }),
  ])
  const node = await startNode({ models: more, log: Layer.mergeAll(log) })
  await untilLoaded(node, "fake", "fake-voice", "listener")
  const operator = await operatorKey(node)
  const read = async (path: string) =>
    (await node.fetch(path, { headers: { authorization: `Bearer ${operator}` } })).json()
  const tree = async (): Promise<TreeRecord> =>
    ((await read("/v1/node/tree")) as typeof NodeTreeRecord.Type).tree
  const health = async () => {
    const answer = await node.fetch("/health")
    const { status } = (await answer.json()) as { readonly status: string }
    const { details } = (await read("/health")) as { readonly details: { readonly gave_up: unknown } }
    return { status: [answer.status, status], gaveUp: details.gave_up }
  }
  return { node, operator, lines, tree, health }
}

const gaveUp = (lines: ReadonlyArray<Line>) =>
  lines.filter(({ message }) => String(message) === "a part of the node has given up")

const gaveUpLine = (part: string, under: string, why: string): unknown =>
  expect.objectContaining({
    level: "Error",
    annotations: expect.objectContaining({ part, under, restarts: 5, why }),
  })

const childOf = (parent: TreeRecord, name: string): TreeRecord => {
  const found = parent.children.find((child) => child.name === name)
  if (found === undefined) throw new Error(`no ${name} under ${parent.name}`)
  return found
}

const chat = (node: TestNode, model: string, content = "hello") =>
  node.post("/v1/chat/completions", { model, max_tokens: 4, messages: [{ role: "user", content }] })
const speech = (node: TestNode) =>
  node.post("/v1/audio/speech", {
    model: "fake-voice",
    voice: "fake",
    input: "Hello.",
    response_format: "wav",
  })
const realtimeAddress = (node: TestNode) =>
  `${node.socketBase}/v1/realtime?model=gpt-realtime&token=${node.keys.dev}`
/** The status that refuses a WebSocket; 101 where it opens. */
const handshake = async (node: TestNode, address: string): Promise<number> => {
  const before = node.counts.webSockets
  const client = await SocketClient.connect(address)
  if (!(client instanceof SocketClient)) return client.status
  client.vanish()
  // The next session would be a second one: where captions were dear on a busy machine, only the first is taken in any case.
  await eventually(() => node.counts.webSockets <= before, "the socket is gone")
  return 101
}

/** Statuses of all five ways to the node. */
const callers = async (node: TestNode) => ({
  chat: (await chat(node, "fake")).status,
  speech: (await speech(node)).status,
  transcription: (await transcribe(node, wavOf(noise(0.5)), { query: { sync: "true", model: "listener" } }))
    .status,
  live: await handshake(node, liveAddress(node, { model: "listener" })),
  realtime: await handshake(node, realtimeAddress(node)),
})

/** What came of a stream that ends without its regular end: the connection is closed. */
const textUntilCut = async (response: Response): Promise<string> => {
  const decoder = new TextDecoder()
  let text = ""
  try {
    for await (const chunk of response.body!) text += decoder.decode(chunk, { stream: true })
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
  }
  return text
}

/** Kills the model's engine as often as it starts, until it has failed. */
const killUntilGivenUp = async (node: TestNode, model: string): Promise<void> => {
  let last: number | undefined
  await eventually(() => {
    if (node.status(model) === "failed") return true
    const pid = node.status(model) === undefined ? undefined : pidOf(node, model)
    if (pid !== undefined && pid !== last) {
      last = pid
      process.kill(pid, "SIGKILL")
    }
    return false
  }, `${model} is given up`)
}

const pidOf = (node: TestNode, model: string): number | undefined => {
  try {
    return node.gauges(model).pid
  } catch {
    return undefined
  }
}

describe("engines that die at every start", () => {
  let stage: Awaited<ReturnType<typeof startLogged>>
  beforeAll(async () => {
    stage = await startLogged()
  })
  afterAll(() => stage.node.stop())

  it("fail their models: callers get 503 with Retry-After, and a model beside them serves", async () => {
    const { node, operator } = stage
    expect(await callers(node)).toEqual({
      chat: 200,
      speech: 200,
      transcription: 200,
      live: 101,
      realtime: 101,
    })
    const stream = await node.post("/v1/chat/completions", {
      model: "fake",
      stream: true,
      messages: [{ role: "user", content: script({ tokens: 1_000_000, tokenMs: 5 }) }],
    })
    const text = textUntilCut(stream)
    const live = await openLive(node, { model: "listener" })
    live.send(noise(1))
    await eventually(() => node.gauges("fake").open > 0, "the chat runs")
    for (const model of ["fake", "fake-voice", "listener"]) await killUntilGivenUp(node, model)
    // What ran has a typed end.
    expect(await text).toMatch(/data: \{"error":\{[^\n]*\}\}\n\n$/)
    await live.closed
    expect(live.frames.at(-1)).toMatchObject({ type: "error" })
    expect(await callers(node)).toEqual({
      chat: 503,
      speech: 503,
      transcription: 503,
      live: 503,
      realtime: 503,
    })
    const refused = await chat(node, "fake")
    expect([await refused.json(), Number(refused.headers.get("retry-after"))]).toEqual([
      { detail: "Model is unavailable" },
      expect.any(Number),
    ])
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    expect((await node.post("/v1/models/load", { model_name: "later" }, { key: operator })).status).toBe(200)
    expect((await chat(node, "later")).status).toBe(200)
  })

  it("are in the tree with the time, the reason and what their models do, also in its drawing", async () => {
    const { tree } = stage
    const root = await tree()
    for (const model of ["fake", "fake-voice", "listener"]) {
      const { children, gave_up, state } = childOf(childOf(root, "models"), `model ${model}`)
      expect([state, children]).toEqual(["failed", []])
      expect(gave_up).toEqual([
        {
          name: `engine ${model}`,
          seconds_ago: expect.any(Number),
          restarts: 3,
          reason: expect.stringContaining("signal SIGKILL"),
          outcome: expect.stringContaining("the model has failed"),
          recovered: false,
        },
      ])
    }
    expect(drawTree(root).split("\n")).toEqual(
      expect.arrayContaining([
        expect.stringMatching(
          /^engine fake \(model fake\) gave up (?:\d+m)?\d+s ago after 3 restarts: .*signal SIGKILL; the model has failed; /,
        ),
      ]),
    )
  })

  it("make the node degraded while one model can serve, with a line for each in the log", async () => {
    const { health, lines } = stage
    expect(await health()).toEqual({ status: [200, "degraded"], gaveUp: {} })
    for (const model of ["fake", "fake-voice", "listener"])
      expect(
        lines.filter(
          ({ annotations, message }) => String(message) === "engine given up" && annotations.model === model,
        ),
      ).toMatchObject([
        { level: "Error", annotations: { reason: expect.stringContaining("it ended 4 times within 30 s") } },
      ])
    expect(gaveUp(lines)).toEqual([])
  })

  it("run again after an operator's load, which the tree says", async () => {
    const { health, node, operator, tree } = stage
    for (const model of ["fake", "fake-voice", "listener"])
      expect((await node.post("/v1/models/load", { model_name: model }, { key: operator })).status).toBe(200)
    expect(await callers(node)).toEqual({
      chat: 200,
      speech: 200,
      transcription: 200,
      live: 101,
      realtime: 101,
    })
    const { children, gave_up } = childOf(childOf(await tree(), "models"), "model fake")
    expect(children).toMatchObject([{ name: "engine fake", state: "running" }])
    expect(gave_up).toMatchObject([{ name: "engine fake", recovered: true }])
    expect((await health()).status).toEqual([200, "healthy"])
    await untilIdle(node)
  })
})

/** Raises in the pure part of the actor: a comparison asks it for its value. */
const defect = {
  valueOf: () => {
    throw new Error("injected")
  },
} as unknown as number

const crashHost = (node: TestNode) =>
  node.run(
    Effect.gen(function* () {
      const device = yield* Device
      while (!device.isLost()) {
        yield* device.observe(defect)
        yield* Effect.sleep(5)
      }
    }),
  )

describe("the actor of the host", () => {
  it("keeps what it promised over a crash; given up, nothing is loaded, loaded models serve, and the node says so", async () => {
    const { health, lines, node, operator, tree } = await startLogged()
    try {
      const claimed = () => node.run(Effect.map(Device, (device) => device.host().claimedBytes))
      const before = await claimed()
      await node.run(Effect.flatMap(Device, (device) => Effect.exit(device.observe(defect))))
      await eventually(
        async () => childOf(childOf(await tree(), "devices"), "the host").state === "running",
        "it runs again",
      )
      expect(childOf(childOf(await tree(), "devices"), "the host").restarts).toBe(1)
      expect(await claimed()).toBe(before)
      await node.post("/v1/models/load", { model_name: "later" }, { key: operator })
      await node.post("/v1/models/unload", { model_name: "later" }, { key: operator })
      expect(await claimed()).toBe(before)

      await crashHost(node)
      expect(await callers(node)).toEqual({
        chat: 200,
        speech: 200,
        transcription: 200,
        live: 101,
        realtime: 101,
      })
      const load = await node.post("/v1/models/load", { model_name: "later" }, { key: operator })
      expect([load.status, load.headers.has("retry-after")]).toEqual([503, true])
      const devices = childOf(await tree(), "devices")
      expect(childOf(devices, "the host").state).toBe("gave up")
      expect(devices.gave_up).toMatchObject([
        {
          name: "the host",
          restarts: 5,
          reason: "Error: injected",
          outcome: "nothing can be loaded on it; loaded models go on until the node is started again",
          recovered: false,
        },
      ])
      expect(await health()).toEqual({
        status: [200, "degraded"],
        gaveUp: { "devices › the host": expect.stringContaining("Error: injected; nothing can be loaded") },
      })
      expect(gaveUp(lines)).toEqual([gaveUpLine("the host", "devices", "Error: injected")])
      expect(lines.find(({ message }) => String(message) === "model load failed")).toMatchObject({
        annotations: {
          model: "later",
          reason: expect.stringContaining("no memory can be claimed of the host"),
        },
      })
      // Once nothing is loaded, no request can be served.
      for (const model of ["fake", "fake-voice", "listener"])
        await node.post("/v1/models/unload", { model_name: model }, { key: operator })
      expect((await health()).status).toEqual([503, "unhealthy"])
      expect((await callers(node)).chat).toBe(404)
    } finally {
      await node.stop()
    }
  })
})

/** Raises in the model's actor, which asks before each message whether the model is pinned. */
const raising = (deployment: Deployment): Deployment => ({
  ...deployment,
  entry: {
    ...deployment.entry,
    runtime: {
      ...deployment.entry.runtime,
      get pinned(): boolean {
        throw new Error("injected")
      },
    },
  },
})

describe("the actor of a model", () => {
  it("takes its engine with it in a crash; given up, its model has failed, others serve, the node says so, and a reload replaces it", async () => {
    const { health, lines, node, operator, tree } = await startLogged()
    try {
      const model = await node.run(Effect.map(ModelRegistry, (registry) => registry.model("fake")!))
      const good = model.deployment
      const crash = () => node.run(Effect.exit(model.retire()))
      const shown = async () => childOf(childOf(await tree(), "models"), "model fake")

      const stream = await node.post("/v1/chat/completions", {
        model: "fake",
        stream: true,
        messages: [{ role: "user", content: script({ tokens: 1_000_000, tokenMs: 5 }) }],
      })
      const text = textUntilCut(stream)
      await eventually(() => node.gauges("fake").open > 0, "the chat runs")
      model.amend(raising(good))
      expect((await crash())._tag).toBe("Failure")
      model.amend(good)
      expect(await text).toMatch(/data: \{"error":\{[^\n]*\}\}\n\n$/)
      // The next request loads it again.
      await eventually(async () => (await chat(node, "fake")).status === 200, "it serves again")
      expect(await shown()).toMatchObject({ state: "loaded", restarts: 1 })
      expect((await health()).status).toEqual([200, "healthy"])

      model.amend(raising(good))
      await eventually(async () => {
        await crash()
        return (await shown()).state === "gave up"
      }, "it gives up")
      model.amend(good)
      expect(node.status("fake")).toBe("failed")
      const refused = await chat(node, "fake")
      expect([refused.status, refused.headers.has("retry-after"), await refused.json()]).toEqual([
        503,
        true,
        { detail: "Model is unavailable" },
      ])
      expect(await callers(node)).toMatchObject({ speech: 200, transcription: 200, live: 101 })
      expect((await chat(node, "later")).status).toBe(200)
      const load = await node.post("/v1/models/load", { model_name: "fake" }, { key: operator })
      expect([load.status, JSON.stringify(await load.json())]).toEqual([
        503,
        expect.stringContaining("its part of the node has given up"),
      ])
      expect(childOf(await tree(), "models").gave_up).toMatchObject([
        { name: "model fake", restarts: 5, reason: "Error: injected", recovered: false },
      ])
      expect(await health()).toEqual({
        status: [200, "degraded"],
        gaveUp: { "models › model fake": expect.stringContaining("Error: injected; ") },
      })
      expect(gaveUp(lines)).toEqual([gaveUpLine("model fake", "models", "Error: injected")])

      // A catalog that changes its entry brings a new actor in its place.
      await node.run(
        Effect.gen(function* () {
          const registry = yield* ModelRegistry
          const deployed = registry.all().map(({ entry }) => registry.model(entry.id)!.deployment)
          yield* (yield* Redeployment).apply(
            deployed.map((one) =>
              one === good ? { ...one, entry: { ...one.entry, options: { slots: 3 } } } : one,
            ),
          )
        }),
      )
      expect((await chat(node, "fake")).status).toBe(200)
      expect(childOf(await tree(), "models").gave_up).toMatchObject([{ name: "model fake", recovered: true }])
      expect((await health()).status).toEqual([200, "healthy"])
    } finally {
      await node.stop()
    }
  })
})

describe("the dispatcher of jobs", () => {
  it("gives up when neither jobs can be read nor that can be logged: jobs in work begin again with a new one, and are charged once", async () => {
    let isBroken = false
    const slow = listener({ callMs: 300 }, { id: "slow", runtime: { load: "start" } })
    const { health, lines, node, tree } = await startLogged(
      (message) => message.includes("transcription jobs could not be read"),
      [...models, slow],
    )
    try {
      const jobs = await node.run(Jobs)
      const { endedElsewhere } = jobs
      Object.defineProperty(jobs, "endedElsewhere", {
        value: (shared: boolean) =>
          isBroken ? Effect.die(new Error("injected")) : endedElsewhere.call(jobs, shared),
      })
      const shown = async () => childOf(childOf(await tree(), "transcription jobs"), "jobs in work")
      const dev = targetOf(node)

      const first = await submit(dev, wavOf(noise(30)), { model: "slow" })
      await eventually(async () => (await poll(dev, first)).body.status === "processing", "it is in work")
      isBroken = true
      expect((await chat(node, "fake")).status).toBe(200)
      await eventually(async () => (await shown()).restarts > 0, "jobs in work begin again")
      isBroken = false
      expect((await shown()).gave_up).toMatchObject([
        {
          name: "dispatcher",
          restarts: 5,
          outcome: "jobs in work go back to their queue and begin again",
        },
      ])
      expect((await untilDone(dev, first)).status).toBe(200)
      expect((await metered(node, "dev")).requests).toBe(1)
      expect((await shown()).gave_up).toMatchObject([{ name: "dispatcher", recovered: true }])
      expect((await health()).status).toEqual([200, "healthy"])
      expect(gaveUp(lines)).toEqual([gaveUpLine("dispatcher", "jobs in work", "Error: the log is full")])
    } finally {
      await node.stop()
    }
  })
})
