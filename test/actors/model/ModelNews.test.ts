// The log lines about a model's state: too large, refused, evicted, idle, repaired. The engines run in this process.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import { Device } from "#actors/device/Device.ts"
import { NvidiaSmi } from "#actors/device/NvidiaSmi.ts"
import { EngineStarter } from "#actors/engine/EngineProcess.ts"
import { ModelNews } from "#actors/model/ModelNews.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { Deployment } from "#domain/models/Deployment.ts"
import { inProcessEngines } from "../../support/engines/InProcessEngine.ts"
import { type FakeWorld, fakeDeployment, fakeWorld } from "../../support/nodes/FakeNode.ts"
import { collectLines } from "../../support/process/LogLines.ts"

const mebibyte = 1024 * 1024
/** Memory for two models with 150 MB of weights and a process of 150 MB each. */
const device = { budgetBytes: 1_000 * mebibyte }

const inWorld = (
  world: Omit<FakeWorld, "log">,
  body: (lines: ReturnType<typeof collectLines>["lines"]) => Effect.Effect<void, unknown, ModelRegistry>,
) => {
  const { layer, lines } = collectLines()
  return body(lines).pipe(
    Effect.provide(fakeWorld({ ...world, log: layer })),
    Effect.provideService(EngineStarter, inProcessEngines().start),
  )
}

const model = (id: string) => Effect.map(ModelRegistry, (registry) => registry.model(id)!)
const view = (id: string) => Effect.map(ModelRegistry, (registry) => registry.find(id)!)
const messages = (lines: ReturnType<typeof collectLines>["lines"], id: string) =>
  lines.flatMap(({ annotations, message }) => (annotations.model === id ? [message] : []))

describe("lines of a model", () => {
  it.live("too large for its device: failed from the start, and refused with the numbers", () =>
    inWorld({ device, models: [{ id: "huge", sizeBytes: 900 * mebibyte }, { id: "small" }] }, (lines) =>
      Effect.gen(function* () {
        expect(yield* view("huge")).toMatchObject({
          status: "failed",
          lastFailure: "is too large: it needs 1050 MB, models may have 850 MB of the host",
        })
        expect(yield* view("small")).toMatchObject({ status: "unloaded" })
        expect(lines).toMatchObject([{ level: "WARN", message: "model cannot be loaded" }])
        const error = yield* Effect.flip((yield* model("huge")).load(false))
        expect(error._tag).toBe("InsufficientMemory")
        expect(lines.at(-1)).toMatchObject({
          message: "model refused for memory",
          annotations: { reason: "needs 1050 MB, 850 MB are free on the host", device: "host" },
        })
      }),
    ),
  )

  it.live("refused for memory, and evicted for another", () => {
    const sizeBytes = 250 * mebibyte
    const models = [
      { id: "a", sizeBytes },
      { id: "b", sizeBytes },
      { id: "c", sizeBytes, runtime: { pinned: true } },
    ]
    return inWorld({ device, models, evicts: true }, (lines) =>
      Effect.gen(function* () {
        yield* (yield* model("a")).load(false)
        yield* (yield* model("b")).load(false)
        yield* (yield* model("c")).load(false)
        const evicted = lines.filter(({ message }) => message === "model evicted")
        expect(evicted).toMatchObject([
          { level: "INFO", annotations: { reason: "to make memory free for c" } },
        ])
      }),
    )
  })

  it.live("unloaded by an operator, and while idle", () =>
    inWorld({ device, models: [{ id: "a" }, { id: "b", runtime: { idleUnloadSeconds: 0.05 } }] }, (lines) =>
      Effect.gen(function* () {
        yield* (yield* model("a")).load(false)
        yield* (yield* model("a")).unload
        yield* (yield* model("a")).unload
        yield* (yield* model("b")).load(false)
        yield* view("b").pipe(
          Effect.repeat({ until: ({ status }) => status === "unloaded", schedule: Schedule.spaced(5) }),
        )
        expect(messages(lines, "a")).toEqual(["model loading", "model ready", "model unloaded"])
        expect(messages(lines, "b")).toEqual(["model loading", "model ready", "model unloaded while idle"])
      }),
    ),
  )
})

it.live("a problem with the files is checked again at each load, and gone once it is repaired", () => {
  const { layer, lines } = collectLines()
  let found: Pick<Deployment, "files" | "sizeBytes" | "missing" | "problem"> = {
    files: {},
    sizeBytes: 0,
    problem: "weights: x.gguf is not there",
  }
  let checks = 0
  const { entry } = fakeDeployment({ id: "a", runtime: { load: "start" } })
  const relocate = () =>
    Effect.sync((): Deployment => {
      checks++
      return { entry, ...found }
    })
  return Effect.gen(function* () {
    expect(yield* view("a")).toMatchObject({ status: "failed", lastFailure: "weights: x.gguf is not there" })
    expect(messages(lines, "a")).toEqual(["model cannot be loaded"])
    expect((yield* Effect.flip((yield* model("a")).load(false)))._tag).toBe("ModelUnavailable")
    expect(yield* view("a")).toMatchObject({ status: "failed", lastFailure: "weights: x.gguf is not there" })
    found = { files: {}, sizeBytes: 0, missing: ["hf:a/b@0/x.gguf"] }
    yield* Effect.flip((yield* model("a")).load(false))
    expect(yield* view("a")).toMatchObject({ lastFailure: expect.stringContaining("edgewise models pull a") })
    found = { files: {}, sizeBytes: 5 * mebibyte }
    yield* (yield* model("a")).load(false)
    expect(yield* view("a")).toMatchObject({ status: "loaded", lastFailure: "" })
    expect(checks).toBe(3)
    // The claim is for the present size of the files, not for that at the start.
    const { claimedBytes } = (yield* Device).host()
    expect(claimedBytes).toBeGreaterThanOrEqual(155 * mebibyte)
  }).pipe(
    Effect.provide(
      ModelRegistry.layer([{ entry, ...found }], { relocate }).pipe(
        Layer.provideMerge(Device.layer(device)),
        Layer.provide(Layer.merge(NvidiaSmi.none, layer)),
      ),
    ),
    Effect.provideService(EngineStarter, inProcessEngines().start),
  )
})

describe("the reason of a crash", () => {
  const reason = (...printed: ReadonlyArray<string>): string => {
    const news = new ModelNews(fakeDeployment({ id: "a" }).entry, () => {})
    news.output.open().take("stderr", Buffer.from(printed.map((line) => `${line}\n`).join("")))
    return news.withCause("signal SIGABRT")
  }
  const place = [
    "error: llama.cpp: current device: 0, in function ggml_cuda_kernel_can_use_pdl at /home/runner/work/node-llama-cpp/node-llama-cpp/llama/llama.cpp/ggml/src/ggml-cuda/common.cuh:1640",
    "error: llama.cpp: cudaFuncGetAttributes(&attr, kernel)",
  ]
  const noCode =
    "llama.cpp's CUDA library has no code for this card with this driver; a newer driver helps, or a card of compute capability 8.6, 8.9, 12.0 or 12.1, or your own build of llama.cpp"

  it("is that the CUDA library has no code for the card, where CUDA says so before the place", () => {
    for (const said of [
      "error: llama.cpp: CUDA error: the provided PTX was compiled with an unsupported toolchain.",
      "error: llama.cpp: CUDA error: no kernel image is available for execution on the device",
    ])
      expect(reason(said, ...place)).toBe(`signal SIGABRT: ${noCode}; it printed: ${said}`)
  })

  it("is the last error that the engine printed otherwise", () => {
    expect(reason("error: llama.cpp: CUDA error: out of memory", ...place)).toBe(
      `signal SIGABRT; it printed: ${place.at(-1)}`,
    )
    expect(reason("the provided PTX was compiled with an unsupported toolchain")).toBe("signal SIGABRT")
  })
})
