// Loading and unloading of models: idle, evicted and pinned ones, models that do not fit, models whose process does not end, and a
// node whose memory becomes full. The engines run in this process.
import { afterEach, describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schedule } from "effect"
import { vi } from "vitest"
import { admitBatch, admitNew } from "#actors/device/Admission.ts"
import { Device } from "#actors/device/Device.ts"
import { EngineStarter } from "#actors/engine/EngineProcess.ts"
import { memoryWatch } from "#actors/model/MemoryWatch.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { GenerateRequest } from "#engines/protocol/Engine.ts"
import { type InProcessEngines, inProcessEngines } from "../../support/engines/InProcessEngine.ts"
import { runText } from "../../support/engines/RunText.ts"
import { type FakeWorld, fakeWorld, script } from "../../support/nodes/FakeNode.ts"

afterEach(() => {
  vi.restoreAllMocks()
})

const mebibyte = 1024 * 1024

const requestOf = (steps: Readonly<Record<string, unknown>>): GenerateRequest => ({
  prompt: { text: script(steps) },
  maxTokens: 100_000,
  sampling: { temperature: 0, topP: 1, topK: 0, frequencyPenalty: 0, presencePenalty: 0, seed: 1 },
  stop: [],
})
const short = requestOf({ tokens: 2, text: "x" })
const endless = requestOf({ tokens: 1_000_000, tokenMs: 1 })

const ask = (id: string, request = short, background = false) =>
  Effect.flatMap(ModelRegistry, (registry) =>
    runText(
      registry,
      id,
      request,
      { started: () => {}, take: () => {} },
      { urgency: background ? "background" : "interactive" },
    ),
  )

/** A running request: its fiber, once the engine has begun it. */
const begin = (id: string, background = false) =>
  Effect.gen(function* () {
    const registry = yield* ModelRegistry
    const started = yield* Deferred.make<void>()
    const listener = { started: () => void Deferred.doneUnsafe(started, Effect.void), take: () => {} }
    const fiber = yield* Effect.forkChild(
      runText(registry, id, endless, listener, {
        urgency: background ? "background" : "interactive",
      }),
      { startImmediately: true },
    )
    return { fiber, started: Deferred.await(started) }
  })

const view = (id: string) => Effect.map(ModelRegistry, (registry) => registry.find(id)!)
const model = (id: string) => Effect.map(ModelRegistry, (registry) => registry.model(id)!)
/** Polls; the test's own timeout is the bound. */
const until = (id: string, status: string) =>
  view(id).pipe(Effect.repeat({ until: (now) => now.status === status, schedule: Schedule.spaced(2) }))

const inWorld = (
  world: FakeWorld,
  body: (engines: InProcessEngines) => Effect.Effect<void, unknown, ModelRegistry | Device>,
) => {
  const engines = inProcessEngines()
  return body(engines).pipe(
    Effect.provide(fakeWorld(world)),
    Effect.provideService(EngineStarter, engines.start),
    Effect.ensuring(Effect.sync(() => expect(engines.alive.size).toBe(0))),
  )
}

/** Two of them and their processes (150 MB each by the ledger's guess) do not fit into 510 MB, 85 % of the budget. */
const large = { sizeBytes: 200 * mebibyte }
const budgetBytes = 600 * mebibyte

describe("an idle model", () => {
  it.live("is unloaded after its idle time, and loaded again for the next request", () =>
    inWorld({ models: [{ id: "a", runtime: { idleUnloadSeconds: 0.2 } }] }, (engines) =>
      Effect.gen(function* () {
        yield* ask("a")
        yield* until("a", "unloaded")
        expect([engines.alive.size, (yield* Device).host().claimedBytes]).toEqual([0, 0])
        yield* ask("a")
        expect(engines.started()).toBe(2)
        expect((yield* view("a")).timings).toMatchObject({ loads: 2, unloads: 1 })
      }),
    ),
  )

  it.live("stays loaded while it is busy, if it is pinned, and if no idle time is set", () =>
    inWorld(
      {
        models: [
          { id: "busy" },
          { id: "pinned", runtime: { pinned: true } },
          { id: "own", runtime: { idleUnloadSeconds: 0 } },
          { id: "idle" },
        ],
        idleUnloadMs: 150,
      },
      (engines) =>
        Effect.gen(function* () {
          const { fiber, started } = yield* begin("busy")
          yield* Effect.forEach(["pinned", "own", "idle"], (id) => ask(id))
          yield* started
          yield* until("idle", "unloaded")
          // After as long again as "idle" needs, every model that may be unloaded is unloaded.
          yield* ask("idle")
          yield* until("idle", "unloaded")
          const statuses = yield* Effect.forEach(["busy", "pinned", "own"], (id) => view(id))
          expect(statuses.map(({ status }) => status)).toEqual(["loaded", "loaded", "loaded"])
          yield* Fiber.interrupt(fiber)
          yield* until("busy", "unloaded")
          expect(engines.alive.size).toBe(2)
        }),
    ),
  )
})

describe("a model that does not fit", () => {
  it.live("is refused before anything is started, and keeps its state", () =>
    inWorld(
      {
        models: [
          { id: "a", ...large },
          { id: "b", ...large },
        ],
        device: { budgetBytes },
      },
      (engines) =>
        Effect.gen(function* () {
          yield* ask("a")
          const refused = yield* Effect.flip(ask("b"))
          expect(refused).toMatchObject({
            _tag: "InsufficientMemory",
            model: "b",
            wantedBytes: 350 * mebibyte,
            freeBytes: 160 * mebibyte,
          })
          expect(yield* Effect.flip((yield* model("b")).load(false))).toMatchObject({
            _tag: "InsufficientMemory",
          })
          expect((yield* view("b")).status).toBe("unloaded")
          expect(engines.started()).toBe(1)
          yield* (yield* model("a")).unload
          yield* ask("b")
        }),
    ),
  )

  it.live("evicts the idle model that is quickest to load again, if eviction is allowed", () =>
    inWorld(
      {
        models: [
          { id: "slow", ...large, options: { loadMs: 50 } },
          { id: "quick", ...large },
          { id: "c", ...large },
        ],
        device: { budgetBytes: 900 * mebibyte },
        evicts: true,
      },
      () =>
        Effect.gen(function* () {
          // Its load takes a minute by the clock: one of the other may take seconds where the machine stands still.
          const { now } = performance
          let aheadMs = 0
          vi.spyOn(performance, "now").mockImplementation(() => now.call(performance) + aheadMs)
          const first = yield* Effect.forkChild(ask("slow"), { startImmediately: true })
          yield* until("slow", "loading")
          aheadMs = 60_000
          yield* Fiber.join(first)
          yield* ask("quick")
          yield* ask("c")
          const statuses = yield* Effect.forEach(["slow", "quick", "c"], (id) => view(id))
          expect(statuses.map(({ status }) => status)).toEqual(["loaded", "unloaded", "loaded"])
          // It was unloaded and can be loaded again: the next request loads it and evicts another model.
          yield* ask("quick")
          expect((yield* view("c")).status).toBe("unloaded")
        }),
    ),
  )

  it.live("evicts no model that is busy or pinned", () =>
    inWorld(
      {
        models: [
          { id: "a", ...large },
          { id: "b", ...large },
        ],
        device: { budgetBytes },
        evicts: true,
      },
      () =>
        Effect.gen(function* () {
          const { fiber, started } = yield* begin("a")
          yield* started
          expect(yield* Effect.flip(ask("b"))).toMatchObject({ _tag: "InsufficientMemory" })
          expect(fiber.pollUnsafe()).toBeUndefined()
          yield* Fiber.interrupt(fiber)
        }),
    ),
  )

  it.live("evicts for both of two models that load at the same time, or refuses", () =>
    inWorld(
      {
        models: [
          { id: "a", ...large },
          { id: "b", ...large },
        ],
        device: { budgetBytes },
        evicts: true,
      },
      () =>
        Effect.gen(function* () {
          const asked = Array.from({ length: 20 }, (_, i) => Effect.exit(ask(i % 2 === 0 ? "a" : "b")))
          const exits = yield* Effect.all(asked, { concurrency: "unbounded" })
          expect(exits.some(({ _tag }) => _tag === "Success")).toBe(true)
          expect((yield* Device).host().claimedBytes).toBeLessThanOrEqual(budgetBytes)
        }),
    ),
  )
})

describe("loading", () => {
  it.live("ends when the model is unloaded meanwhile", () =>
    inWorld({ models: [{ id: "a", options: { loadMs: 600_000 } }] }, () =>
      Effect.gen(function* () {
        const loading = yield* Effect.forkChild((yield* model("a")).load(false))
        const waiting = yield* Effect.forkChild(ask("a"))
        yield* until("a", "loading")
        yield* (yield* model("a")).unload
        expect(yield* Effect.flip(Fiber.join(loading))).toMatchObject({ _tag: "ModelUnavailable" })
        expect(yield* Effect.flip(Fiber.join(waiting))).toMatchObject({
          _tag: expect.stringMatching(/^Model/),
        })
        expect((yield* view("a")).status).toBe("unloaded")
        expect(yield* Effect.flip(ask("a"))).toMatchObject({ _tag: "ModelNotLoaded" })
      }),
    ),
  )

  it.live("fails once for all who wait for it", () =>
    inWorld({ models: [{ id: "a", options: { loadMs: 50, loadFailure: "broken" } }] }, (engines) =>
      Effect.gen(function* () {
        const asked = Array.from({ length: 5 }, () => Effect.flip(ask("a")))
        const errors = yield* Effect.all(asked, { concurrency: "unbounded" })
        expect(errors.map(({ _tag }) => _tag)).toEqual(Array.from({ length: 5 }, () => "ModelUnavailable"))
        expect(engines.started()).toBe(1)
      }),
    ),
  )

  it.live("fails when it takes longer than it may", () =>
    inWorld(
      { models: [{ id: "a", options: { loadMs: 600_000 }, runtime: { loadDeadlineMs: 100 } }] },
      (engines) =>
        Effect.gen(function* () {
          expect(yield* Effect.flip((yield* model("a")).load(false))).toMatchObject({
            _tag: "ModelUnavailable",
          })
          expect((yield* view("a")).status).toBe("failed")
          expect(engines.started()).toBe(4)
        }),
    ),
  )
})

it.live("says that an unload failed when the process does not end, and replaces it at the next load", () => {
  const engines = inProcessEngines()
  let stuck = true
  const start: InProcessEngines["start"] = (options) =>
    Effect.map(engines.start(options), (handle) => (stuck ? { ...handle, hasExited: () => false } : handle))
  return Effect.gen(function* () {
    yield* ask("a")
    const failed = yield* Effect.flip((yield* model("a")).unload)
    expect(failed).toMatchObject({ _tag: "UnloadFailed", model: "a" })
    expect(yield* view("a")).toMatchObject({
      status: "failed",
      lastFailure: expect.stringContaining("has not ended"),
    })
    stuck = false
    yield* (yield* model("a")).load(false)
    yield* ask("a")
    expect((yield* (yield* model("a")).unload).was).toBe(true)
  }).pipe(Effect.provide(fakeWorld({ models: [{ id: "a" }] })), Effect.provideService(EngineStarter, start))
})

describe("memory pressure", () => {
  const world = { models: [{ id: "a", options: { slots: 2 }, runtime: { hangDeadlineMs: 400 } }] }

  it.live("full: refuses new requests, continues running ones, lets background work wait", () =>
    inWorld(world, () =>
      Effect.gen(function* () {
        const device = yield* Device
        const registry = yield* ModelRegistry
        const { fiber, started } = yield* begin("a")
        yield* started
        yield* device.observe(0.96)
        expect(yield* Effect.flip(ask("a"))).toMatchObject({ _tag: "MemoryPressure" })
        expect(yield* Effect.flip(admitNew)).toMatchObject({ _tag: "MemoryPressure" })
        const listener = { started: () => {}, take: () => {} }
        yield* runText(registry, "a", short, listener, { continues: true })
        const later = yield* begin("a", true)
        expect((yield* view("a")).host!.gauges()).toMatchObject({ open: 1, waiting: 1 })
        expect(fiber.pollUnsafe()).toBeUndefined()
        yield* device.observe(0.5)
        yield* ask("a")
        yield* Fiber.interrupt(fiber)
        // No event concerns the model: the next heartbeat starts the waiting request.
        yield* later.started
        yield* Fiber.interrupt(later.fiber)
      }),
    ),
  )

  it.live("busy: refuses batch work only", () =>
    inWorld(world, () =>
      Effect.gen(function* () {
        const device = yield* Device
        yield* device.observe(0.93)
        yield* ask("a")
        yield* admitNew
        expect(yield* Effect.flip(admitBatch)).toMatchObject({ _tag: "MemoryPressure" })
        yield* device.observe(0.9)
        expect(yield* Effect.flip(admitBatch)).toMatchObject({ _tag: "MemoryPressure" })
        yield* device.observe(0.88)
        yield* admitBatch
      }),
    ),
  )

  it.live("lean: unloads idle models one by one until there is enough memory, if eviction is allowed", () => {
    let usedBytes = 500
    const models = [{ id: "a" }, { id: "b" }, { id: "pinned", runtime: { pinned: true } }]
    const engines = inProcessEngines()
    const watched = memoryWatch({ usedBytes: () => usedBytes, everyMs: 5, evicts: true }).pipe(
      Layer.provideMerge(fakeWorld({ models, device: { budgetBytes: 1_000 * mebibyte } })),
    )
    return Effect.gen(function* () {
      yield* Effect.forEach(["a", "b", "pinned"], (id) => ask(id))
      usedBytes = 870 * mebibyte
      yield* until("a", "unloaded")
      yield* until("b", "unloaded")
      expect((yield* Device).pressure().level).toBe("lean")
      expect((yield* view("pinned")).status).toBe("loaded")
      usedBytes = 100 * mebibyte
      yield* Effect.sync(() => 0).pipe(
        Effect.andThen(Device),
        Effect.repeat({
          until: (device) => device.pressure().level === "calm",
          schedule: Schedule.spaced(2),
        }),
      )
      yield* ask("a")
    }).pipe(Effect.provide(watched), Effect.provideService(EngineStarter, engines.start))
  })
})
