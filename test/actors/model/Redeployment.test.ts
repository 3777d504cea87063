// A new catalog applied to a running registry: which changes restart a model, what waits, and when old engines end. The engines
// run in this process.
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schedule } from "effect"
import { Device } from "#actors/device/Device.ts"
import { EngineStarter } from "#actors/engine/EngineProcess.ts"
import { changeOf } from "#actors/model/DeploymentChange.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { Redeployment } from "#actors/model/Redeployment.ts"
import type { Deployment, FileVersion } from "#domain/models/Deployment.ts"
import type { GenerateRequest } from "#engines/protocol/Engine.ts"
import type { Flow } from "#engines/protocol/Reader.ts"
import { type InProcessEngines, inProcessEngines } from "../../support/engines/InProcessEngine.ts"
import { runText } from "../../support/engines/RunText.ts"
import { type FakeWorld, fakeDeployment, fakeWorld, script } from "../../support/nodes/FakeNode.ts"

const requestOf = (steps: Readonly<Record<string, unknown>>): GenerateRequest => ({
  prompt: { text: script(steps) },
  maxTokens: 100_000,
  sampling: { temperature: 0, topP: 1, topK: 0, frequencyPenalty: 0, presencePenalty: 0, seed: 1 },
  stop: [],
})

const ask = (
  id: string,
  steps: Readonly<Record<string, unknown>> = { tokens: 2 },
  started: (info: unknown, flow: Flow) => void = () => {},
) =>
  Effect.flatMap(ModelRegistry, (registry) =>
    runText(registry, id, requestOf(steps), { started, take: () => {} }),
  )

const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })
const apply = (...deployments: ReadonlyArray<Deployment>) =>
  Effect.flatMap(Redeployment, (redeployment) => redeployment.apply(deployments))
const leaving = Effect.map(Redeployment, (redeployment) => redeployment.leaving().length)
/** Polls; the test's own timeout is the bound. */
const until = <R>(condition: Effect.Effect<boolean, never, R>) =>
  Effect.repeat(condition, { until: (holds) => holds, schedule: Schedule.spaced(2) })
const allGone = until(Effect.map(leaving, (count) => count === 0))

const inWorld = (
  world: FakeWorld,
  body: (engines: InProcessEngines) => Effect.Effect<void, unknown, ModelRegistry | Redeployment | Device>,
) => {
  const engines = inProcessEngines()
  return body(engines).pipe(
    Effect.provide(fakeWorld(world)),
    Effect.provideService(EngineStarter, engines.start),
    Effect.ensuring(Effect.sync(() => expect(engines.alive.size).toBe(0))),
  )
}

const version = (change: Partial<FileVersion> = {}): FileVersion => ({
  sizeBytes: 10,
  modifiedMs: 1_000,
  sha256: undefined,
  ...change,
})
const deployed = (file: FileVersion, price = 1): Deployment => ({
  ...fakeDeployment({ price: { inputPerMillionTokens: price } }),
  files: { weights: "/weights" },
  versions: { weights: file },
})

describe("a changed entry", () => {
  it.each<[string, Deployment, Deployment, string]>([
    ["the same", deployed(version()), deployed(version()), "none"],
    ["a price", deployed(version()), deployed(version(), 2), "metadata"],
    ["another size", deployed(version()), deployed(version({ sizeBytes: 11 })), "engine"],
    ["another time", deployed(version()), deployed(version({ modifiedMs: 2 })), "engine"],
    [
      "another time and the same sum",
      deployed(version({ sha256: "a" })),
      deployed(version({ sha256: "a", modifiedMs: 2 })),
      "none",
    ],
    ["another sum", deployed(version({ sha256: "a" })), deployed(version({ sha256: "b" })), "engine"],
    ["a sum where there was none", deployed(version()), deployed(version({ sha256: "a" })), "none"],
    ["other options", fakeDeployment(), fakeDeployment({ options: { slots: 2 } }), "engine"],
    ["other runtime settings", fakeDeployment(), fakeDeployment({ runtime: { threads: 2 } }), "engine"],
    ["weights that have come", fakeDeployment(), { ...fakeDeployment(), files: { weights: "/w" } }, "engine"],
    ["files that were mended", { ...fakeDeployment(), problem: "is cut short" }, fakeDeployment(), "engine"],
    ["other damage", { ...fakeDeployment(), problem: "a" }, { ...fakeDeployment(), problem: "b" }, "engine"],
    ["damage", deployed(version()), { ...deployed(version({ sizeBytes: 1 })), problem: "a" }, "engine"],
  ])("%s", (_what, before, after, change) => {
    expect(changeOf(before, after, false)).toBe(change)
  })

  it("keeps its engine if its files can no longer be loaded, but not if the entry names other files", () => {
    const damaged = { ...deployed(version({ sizeBytes: 1 })), problem: "is cut short" }
    expect(changeOf(deployed(version()), damaged, true)).toBe("none")
    const repriced = { ...damaged, ...deployed(version(), 2), problem: "is cut short" }
    expect(changeOf(deployed(version()), repriced, true)).toBe("metadata")
    const { entry } = fakeDeployment()
    const another = {
      ...fakeDeployment(),
      files: { weights: "/other.gguf" },
      entry: { ...entry, files: { weights: { source: "other.gguf" } } },
    }
    expect(changeOf(fakeDeployment(), { ...another, problem: "is not there" }, true)).toBe("engine")
    expect(
      changeOf(fakeDeployment(), { ...fakeDeployment({ options: { slots: 2 } }), problem: "a" }, true),
    ).toBe("engine")
  })
})

const mebibyte = 1024 * 1024
const large = (slots: number): Deployment =>
  fakeDeployment({ id: "a", sizeBytes: 400 * mebibyte, options: { slots } })
/** One model of this size and its process fit into memory; two do not. */
const device = { budgetBytes: 1_000 * mebibyte }

describe("the loads of a start", () => {
  it.live("have ended when each model is loaded or has failed, and none is begun for that", () =>
    inWorld({ models: [] }, (engines) =>
      Effect.gen(function* () {
        const { loads } = yield* Redeployment
        const registry = yield* ModelRegistry
        const start = { load: "start" }
        yield* apply(
          fakeDeployment({ id: "good", runtime: start }),
          { ...fakeDeployment({ id: "lacking", runtime: start }), problem: "is not there" },
          fakeDeployment({ id: "later", runtime: { load: "demand" } }),
        )
        yield* loads
        expect(registry.all().map(({ entry, status }) => [entry.id, status])).toEqual([
          ["good", "loaded"],
          ["lacking", "failed"],
          ["later", "unloaded"],
        ])
        expect(engines.started()).toBe(1)
      }),
    ),
  )
})

describe("a model that is replaced", () => {
  it.live("is loaded once the old engine has released its memory; requests wait for it", () =>
    inWorld({ models: [], device }, (engines) =>
      Effect.gen(function* () {
        yield* apply(large(1))
        // Its reader is paused for as long as the test looks, and an engine sends far less than that without being read.
        const tokens = 5_000
        const reading: { flow: Flow | undefined } = { flow: undefined }
        const old = yield* fork(
          ask("a", { tokens }, (_, flow) => {
            reading.flow = flow
            flow.pause()
          }),
        )
        yield* until(Effect.sync(() => reading.flow !== undefined))
        expect((yield* apply(large(2))).changed).toEqual(["a"])
        const next = yield* fork(ask("a"))
        yield* Effect.sleep(100)
        expect([engines.started(), old.pollUnsafe(), next.pollUnsafe()]).toEqual([1, undefined, undefined])
        reading.flow?.resume()
        expect((yield* Fiber.join(old)).completionTokens).toBe(tokens)
        expect((yield* Fiber.join(next)).completionTokens).toBe(2)
        expect([engines.started(), engines.alive.size]).toEqual([2, 1])
      }),
    ),
  )

  it.live("stops waiting for that memory when an operator unloads it", () =>
    inWorld({ models: [], device }, () =>
      Effect.gen(function* () {
        const registry = yield* ModelRegistry
        yield* apply(large(1))
        const old = yield* fork(ask("a", { tokens: 1_000_000, tokenMs: 5 }))
        yield* until(Effect.sync(() => registry.find("a")?.status === "loaded"))
        yield* apply(large(2))
        const next = yield* fork(Effect.flip(ask("a")))
        yield* Effect.sleep(20)
        yield* registry.model("a")!.unload
        expect((yield* Fiber.join(next))._tag).toBe("ModelNotLoaded")
        yield* Fiber.interrupt(old)
        yield* allGone
        expect((yield* Device).host().claimedBytes).toBe(0)
      }),
    ),
  )

  it.live("passes requests that its engine has not begun to the new engine", () => {
    const broken = fakeDeployment({ id: "a", options: { loadFailure: "wrong file" } })
    const isReplaced = Deferred.makeUnsafe<void>()
    let loads = 0
    /** The first load begins after the replacement, and fails. */
    const relocate = () =>
      Effect.suspend(() =>
        ++loads === 1
          ? Effect.as(Deferred.await(isReplaced), broken)
          : Effect.succeed(fakeDeployment({ id: "a" })),
      )
    return inWorld({ models: [], relocate }, () =>
      Effect.gen(function* () {
        yield* apply(broken)
        const asked = yield* fork(ask("a"))
        yield* until(Effect.sync(() => loads === 1))
        yield* apply(fakeDeployment({ id: "a" }))
        yield* Deferred.succeed(isReplaced, undefined)
        expect((yield* Fiber.join(asked)).completionTokens).toBe(2)
        expect(loads).toBe(2)
        yield* allGone
      }),
    )
  })

  it.live("stays unloaded where an operator has unloaded it", () =>
    inWorld({ models: [{ id: "a", runtime: { load: "start" } }] }, () =>
      Effect.gen(function* () {
        const registry = yield* ModelRegistry
        yield* ask("a")
        yield* registry.model("a")!.unload
        yield* apply(fakeDeployment({ id: "a", runtime: { load: "start" }, options: { slots: 2 } }))
        expect((yield* Effect.flip(ask("a")))._tag).toBe("ModelNotLoaded")
        expect(registry.find("a")?.status).toBe("unloaded")
      }),
    ),
  )
})

describe("a model that is removed", () => {
  it.live("is ended after its time limit, even if requests still run", () =>
    inWorld({ models: [{ id: "a" }], leaveAfterMs: 250 }, (engines) =>
      Effect.gen(function* () {
        let begun = false
        const onStart = () => {
          begun = true
        }
        const asked = yield* fork(Effect.flip(ask("a", { tokens: 1_000_000, tokenMs: 5 }, onStart)))
        yield* until(Effect.sync(() => begun))
        yield* apply()
        expect((yield* Fiber.join(asked))._tag).toBe("EngineFailed")
        yield* allGone
        expect([engines.alive.size, (yield* Device).host().claimedBytes]).toEqual([0, 0])
      }),
    ),
  )

  it.live("is ended at once if it is loading", () =>
    inWorld({ models: [{ id: "a", runtime: { load: "start" }, options: { loadMs: 60_000 } }] }, (engines) =>
      Effect.gen(function* () {
        yield* until(Effect.sync(() => engines.started() === 1))
        yield* apply()
        yield* allGone
        expect((yield* Device).host().claimedBytes).toBe(0)
      }),
    ),
  )
})

it.live("an engine gets its weights and the files that they name, as they are at its load", () => {
  const located: Deployment = {
    ...fakeDeployment({ id: "a" }),
    files: { weights: "/w/a-00001-of-00002.gguf" },
    parts: ["/w/a-00001-of-00002.gguf", "/w/a-00002-of-00002.gguf"],
  }
  const engines = inProcessEngines()
  const granted: Array<ReadonlyArray<string> | undefined> = []
  const start: typeof engines.start = (options) => {
    granted.push(options.files)
    return engines.start(options)
  }
  return ask("a").pipe(
    Effect.andThen(
      Effect.sync(() => {
        expect(granted.map((files) => [...new Set(files)])).toEqual([located.parts])
      }),
    ),
    Effect.provide(fakeWorld({ models: [{ id: "a" }], relocate: () => Effect.succeed(located) })),
    Effect.provideService(EngineStarter, start),
  )
})

describe("weights that are not there", () => {
  it.live("are searched for at each request, and used as soon as they exist", () => {
    let isHere = false
    const relocate = () =>
      Effect.sync(() => ({ ...fakeDeployment({ id: "a" }), missing: isHere ? [] : ["hf:a/b@c/d"] }))
    return inWorld({ models: [{ id: "a" }], relocate }, () =>
      Effect.gen(function* () {
        const registry = yield* ModelRegistry
        expect((yield* Effect.flip(ask("a")))._tag).toBe("ModelUnavailable")
        expect(registry.find("a")).toMatchObject({
          status: "failed",
          lastFailure: "weights are not pulled: edgewise models pull a",
        })
        isHere = true
        expect((yield* ask("a")).completionTokens).toBe(2)
        expect(registry.find("a")?.status).toBe("loaded")
      }),
    )
  })
})
