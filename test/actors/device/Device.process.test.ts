// The ledger of memory and threads, for the host and for GPUs from recorded output of `nvidia-smi`.
import { afterAll, beforeEach, describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { type Claim, Device, type DeviceOptions, hostId } from "#actors/device/Device.ts"
import { isVisible } from "#actors/device/GpuChoice.ts"
import { NvidiaSmi } from "#actors/device/NvidiaSmi.ts"
import { type FakeNvidiaSmi, fakeNvidiaSmi } from "../../support/nodes/FakeNvidiaSmi.ts"
import { temporaryDir } from "../../support/nodes/TestNode.ts"

const mebibyte = 1024 * 1024
const uuids = [
  "GPU-00000000-0000-0000-0000-00000000000a",
  "GPU-00000000-0000-0000-0000-00000000000b",
] as const
const gpuRow = (index: 0 | 1, usedMb: number, mig = "Disabled") =>
  `${index}, ${uuids[index]}, 10000, ${usedMb}, ${10_000 - usedMb}, 0, 0, 40, ${mig}, NVIDIA H200\n`

const dir = temporaryDir()
afterAll(() => dir.remove())
let smi: FakeNvidiaSmi
beforeEach(() => {
  smi = fakeNvidiaSmi(dir.path, { gpus: gpuRow(0, 0) + gpuRow(1, 4_000) })
})

const onHost = (options: DeviceOptions) => Device.layer(options).pipe(Layer.provide(NvidiaSmi.none))
const onGpus = (options: DeviceOptions = {}) =>
  Layer.suspend(() =>
    Device.layer({ budgetBytes: 1e12, visible: "0,1", ...options }).pipe(
      Layer.provide(NvidiaSmi.layer(smi.command)),
    ),
  )

const want = (mb: number, change: Partial<Claim> = {}): Claim => ({
  modelId: "m",
  placement: "host",
  weightBytes: mb * mebibyte,
  processBytes: 0,
  ...change,
})

describe("the host's ledger", () => {
  it.effect(
    "refuses a claim that does not fit before anything is allocated, and accepts it once there is memory",
    () =>
      Effect.gen(function* () {
        const device = yield* Device
        const scope = yield* Scope.make()
        yield* device.claim(want(600)).pipe(Scope.provide(scope))
        const refused = yield* Effect.flip(Effect.scoped(device.claim(want(500))))
        expect(refused).toMatchObject({
          deviceId: hostId,
          wantedBytes: 500 * mebibyte,
          freeBytes: 420 * mebibyte,
        })
        expect(device.host().claimedBytes).toBe(600 * mebibyte)
        yield* Scope.close(scope, Exit.void)
        yield* Effect.scoped(device.claim(want(1_000)))
        expect(device.host().claimedBytes).toBe(0)
      }).pipe(Effect.provide(onHost({ budgetBytes: 1_200 * mebibyte }))),
  )

  it.effect("counts the measured memory if it is more than the expected one", () =>
    Effect.gen(function* () {
      const device = yield* Device
      const grant = yield* device.claim(want(100))
      yield* grant.settle(undefined, 300 * mebibyte)
      expect(device.host().claimedBytes).toBe(300 * mebibyte)
      yield* grant.settle(undefined, 50 * mebibyte)
      expect(device.host().claimedBytes).toBe(300 * mebibyte)
    }).pipe(Effect.scoped, Effect.provide(onHost({ budgetBytes: 1_200 * mebibyte }))),
  )

  it.effect("counts caches, which are empty when the memory is measured", () =>
    Effect.gen(function* () {
      const device = yield* Device
      const caches = { cacheBytes: 50 * mebibyte }
      const grant = yield* device.claim(want(100, caches))
      expect(device.host().claimedBytes).toBe(150 * mebibyte)
      yield* grant.settle(undefined, 300 * mebibyte)
      expect(device.host().claimedBytes).toBe(350 * mebibyte)
      expect(yield* device.tooLarge(want(1_000, caches))).toMatchObject({ wantedBytes: 1_050 * mebibyte })
    }).pipe(Effect.scoped, Effect.provide(onHost({ budgetBytes: 1_200 * mebibyte }))),
  )

  it.effect("counts the CPU threads that working models use", () =>
    Effect.gen(function* () {
      const device = yield* Device
      const first = device.threads.join(() => {})
      expect(device.host()).toMatchObject({ threads: 4, claimedThreads: 0 })
      first.works("interactive")
      expect(device.host()).toMatchObject({ threads: 4, claimedThreads: 4 })
      first.wants(3)
      expect(device.host().claimedThreads).toBe(3)
      first.leave()
      expect(device.host().claimedThreads).toBe(0)
    }).pipe(Effect.provide(onHost({ cores: { hardwareThreads: 4, cores: 4, quota: undefined } }))),
  )

  it.effect("places a GPU model on the host if there is no GPU", () =>
    Effect.gen(function* () {
      const device = yield* Device
      const grant = yield* device.claim(want(100, { placement: "nvidia" }))
      expect(grant.environment).toEqual({})
      expect([...grant.held()]).toEqual([[hostId, 100 * mebibyte]])
    }).pipe(Effect.scoped, Effect.provide(onHost({ budgetBytes: 1_200 * mebibyte }))),
  )
})

describe("with GPUs", () => {
  it.live("takes the GPU with the most free memory, then the other, then none", () =>
    Effect.gen(function* () {
      const device = yield* Device
      const gpu = (mb: number) => device.claim(want(mb, { placement: "nvidia", processBytes: mebibyte }))
      const first = yield* gpu(5_000)
      expect(first.environment).toEqual({ CUDA_VISIBLE_DEVICES: uuids[0] })
      expect([...first.held()]).toEqual([
        [hostId, mebibyte],
        [uuids[0], 5_000 * mebibyte],
      ])
      // 6,000 MB are free of the second by the driver's reading, 4,500 of the first by the ledger.
      expect((yield* gpu(5_500)).environment).toEqual({ CUDA_VISIBLE_DEVICES: uuids[1] })
      const refused = yield* Effect.flip(gpu(5_000))
      expect(refused).toMatchObject({ deviceId: uuids[0], deviceName: "GPU 0", freeBytes: 4_500 * mebibyte })
      expect(device.host().claimedBytes).toBe(2 * mebibyte)
    }).pipe(Effect.scoped, Effect.provide(onGpus())),
  )

  it.live("counts the process's memory that the driver reports", () =>
    Effect.gen(function* () {
      const device = yield* Device
      const grant = yield* device.claim(want(1_000, { placement: "nvidia" }))
      smi.say({ gpus: gpuRow(0, 1_800), processes: `${uuids[0]}, 77, 1800, node\n` })
      yield* grant.settle(77, 0)
      expect(grant.held().get(uuids[0])).toBe(1_800 * mebibyte)
    }).pipe(Effect.scoped, Effect.provide(onGpus())),
  )

  it.live("does not use GPUs with MIG instances and GPUs that the operator has not named", () =>
    Effect.gen(function* () {
      smi.say({ gpus: gpuRow(0, 0, "Enabled") + gpuRow(1, 4_000) })
      const device = yield* Device
      const grant = yield* device.claim(want(10, { placement: "nvidia" }))
      expect(grant.environment).toEqual({ CUDA_VISIBLE_DEVICES: uuids[1] })
    }).pipe(Effect.scoped, Effect.provide(onGpus({ visible: uuids.join(",") }))),
  )

  it("reads CUDA_VISIBLE_DEVICES as CUDA does", () => {
    const gpu = { index: 1, uuid: uuids[1] } as Parameters<typeof isVisible>[0]
    expect(["1", "0, 1", "GPU-0", uuids[1], undefined].map((visible) => isVisible(gpu, visible))).toEqual(
      Array.from({ length: 5 }, () => true),
    )
    expect(["", "0", "-1", "GPU-1", "11"].map((visible) => isVisible(gpu, visible))).toEqual(
      Array.from({ length: 5 }, () => false),
    )
  })
})

describe("nvidia-smi itself", () => {
  const reading = Effect.flatMap(NvidiaSmi, (program) => program.reading)
  const fresh = Effect.flatMap(NvidiaSmi, (program) => program.fresh)
  const program = Layer.suspend(() => NvidiaSmi.layer(smi.command))

  it.effect("runs once for many concurrent readers, and again for a reading before and one after", () =>
    Effect.gen(function* () {
      const before = smi.runs()
      yield* Effect.all(
        Array.from({ length: 20 }, () => reading),
        { concurrency: "unbounded" },
      )
      expect(smi.runs() - before).toBe(2)
      yield* fresh
      expect(smi.runs() - before).toBe(4)
    }).pipe(Effect.provide(program)),
  )

  it.effect("does not run again at once after it failed, and its message is reported", () =>
    Effect.gen(function* () {
      smi.say({ gpus: "Failed to initialize NVML: Driver/library version mismatch\n", status: 18 })
      const first = yield* fresh
      expect(first.gpus).toEqual([])
      expect(first.problem).toMatch(/18 .*mismatch/)
      const runs = smi.runs()
      yield* fresh
      yield* reading
      expect(smi.runs()).toBe(runs)
    }).pipe(Effect.provide(program)),
  )

  it.live("shows devices without processes if those cannot be read", () =>
    Effect.gen(function* () {
      smi.say({ gpus: gpuRow(0, 0), processes: "nonsense\n" })
      expect(yield* fresh).toMatchObject({ gpus: [{ index: 0 }], processes: [], problem: expect.any(String) })
    }).pipe(Effect.provide(program)),
  )

  it.live("gives no device if there is no such program", () =>
    Effect.gen(function* () {
      expect(yield* reading).toMatchObject({ gpus: [], problem: expect.stringContaining("is not there") })
    }).pipe(Effect.provide(NvidiaSmi.layer("no-such-program-anywhere"))),
  )
})
