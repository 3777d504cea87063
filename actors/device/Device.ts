// The node's compute devices and their ledger: how much memory of each is promised to models, and which models share the CPU.
// A claim is refused before anything is allocated, and given back with the claimer's scope. The host processor is always
// there; NVIDIA GPUs are where `nvidia-smi` shows them. Called by the Model actor and the operator endpoints.
import { Context, Effect, Layer, Schema, type Scope } from "effect"
import type { NvidiaGpu } from "#domain/models/NvidiaReport.ts"
import type { Placement } from "#domain/models/Placement.ts"
import type { MachineCores } from "#domain/threads/MachineCores.ts"
import { readCores } from "../threads/ReadCores.ts"
import { ThreadLedger } from "../threads/ThreadLedger.ts"
import { makeUtilization, memoryBudgetBytes, processorName, readTemperature } from "./HostProcessor.ts"
import { type NvidiaReading, NvidiaSmi } from "./NvidiaSmi.ts"

/** The host processor's id in the ledger; a GPU's is its uuid. */
export const hostId = "host"

export class DeviceExhausted extends Schema.TaggedError<DeviceExhausted>()("DeviceExhausted", {
  deviceId: Schema.String,
  deviceName: Schema.String,
  wantedBytes: Schema.Finite,
  freeBytes: Schema.Finite,
}) {}

export interface Claim {
  readonly modelId: string
  readonly placement: Placement
  /** What the weights are expected to take, on the device where they are computed. */
  readonly weightBytes: number
  /** What a process costs the host beside its weights. */
  readonly processBytes: number
}

export interface Grant {
  /** Variables that its process needs to find its device. */
  readonly environment: Readonly<Record<string, string>>
  /** Whether it still counts: it is given back when the scope of the claim closes. */
  readonly counts: () => boolean
  /** Bytes of the grant by device id. */
  readonly held: () => ReadonlyMap<string, number>
  /** After loading: what was measured replaces what was expected where it is more. */
  readonly settle: (pid: number | undefined, residentBytes: number) => Effect.Effect<void>
}

export interface HostReading {
  readonly name: string
  readonly budgetBytes: number
  readonly claimedBytes: number
  /** CPU threads that there are for models. */
  readonly threads: number
  /** Those of them that working models use. */
  readonly claimedThreads: number
}

interface Entry {
  hostBytes: number
  readonly gpuUuid: string | undefined
  gpuBytes: number
  /** False until the driver's own reading counts it. */
  settled: boolean
}

export interface DeviceOptions {
  /** What the node may fill of the host's memory; absent: nine tenths of the machine's or the container's. */
  readonly budgetBytes?: number | undefined
  /** What the machine gives; absent: as the system says. */
  readonly cores?: MachineCores | undefined
  /** As CUDA_VISIBLE_DEVICES: the operator's choice of GPUs. */
  readonly visible?: string | undefined
}

/**
 * Percent of the node's memory budget that models may claim. Below the first rung of the memory ladder, so that what the
 * ledger has allowed cannot put the node on it: the rest is for what requests need.
 */
const modelPercent = 85

/** Share of a GPU's memory that models may claim: the driver and the display need some. A guess. */
const gpuShare = 0.95

export class Device extends Context.Service<
  Device,
  {
    /** Memory is refused where it is not there. */
    readonly claim: (claim: Claim) => Effect.Effect<Grant, DeviceExhausted, Scope.Scope>
    /** What would be refused of a claim if nothing else had any memory; undefined if it would fit. */
    readonly tooLarge: (claim: Claim) => Effect.Effect<DeviceExhausted | undefined>
    readonly host: () => HostReading
    /** The CPU threads, shared by the models that work. */
    readonly threads: ThreadLedger
    /** Share of all processors' time in use since it was last asked, percent, rounded. */
    readonly utilization: Effect.Effect<number>
    /** Degrees Celsius of the host processor; 0 where the system has no sensor that it shows. */
    readonly temperature: Effect.Effect<number>
    /** What the driver says, at most two seconds old. */
    readonly nvidia: Effect.Effect<NvidiaReading>
    /** The same, asked now. */
    readonly nvidiaNow: Effect.Effect<NvidiaReading>
  }
>()("edgewise/actors/Device") {
  static readonly layer = (options: DeviceOptions = {}): Layer.Layer<Device, never, NvidiaSmi> =>
    Layer.effect(
      Device,
      Effect.map(NvidiaSmi, (smi) => make(smi, options)),
    )
}

/** Whether the operator lets models have the GPU: by uuid, its beginning, or index in the order of the PCI bus. */
export const isVisible = ({ index, uuid }: NvidiaGpu, visible: string | undefined): boolean =>
  visible === undefined ||
  visible.split(",").some((named) => {
    const name = named.trim()
    return name === String(index) || (name.startsWith("GPU-") && uuid.startsWith(name))
  })

const make = (smi: NvidiaSmi["Service"], options: DeviceOptions): Device["Service"] => {
  const budgetBytes = options.budgetBytes ?? memoryBudgetBytes()
  const threads = new ThreadLedger(options.cores ?? readCores())
  const { visible } = options
  const entries = new Set<Entry>()
  const sum = (part: (entry: Entry) => number) =>
    [...entries].reduce((total, entry) => total + part(entry), 0)
  const utilization = makeUtilization()

  const freeOf = (gpu: NvidiaGpu): number => {
    const promised = sum((entry) => (entry.gpuUuid === gpu.uuid ? entry.gpuBytes : 0))
    const unseen = sum((entry) => (entry.gpuUuid === gpu.uuid && !entry.settled ? entry.gpuBytes : 0))
    // Others may use the device as well: neither our books nor the driver's reading alone tells what is free.
    return Math.min(Math.floor(gpu.totalBytes * gpuShare) - promised, gpu.freeBytes - unseen)
  }

  const roomiest = (reading: NvidiaReading): NvidiaGpu | undefined =>
    reading.gpus
      // A GPU in MIG instances cannot be claimed as one; see docs/operations.md.
      .filter((gpu) => !gpu.mig && isVisible(gpu, visible))
      .toSorted((a, b) => freeOf(b) - freeOf(a) || a.index - b.index)[0]

  const open = (claim: Claim, gpu: NvidiaGpu | undefined): Effect.Effect<Entry, DeviceExhausted> => {
    const gpuBytes = gpu === undefined ? 0 : claim.weightBytes
    const hostBytes = claim.processBytes + (gpu === undefined ? claim.weightBytes : 0)
    const hostFree = Math.floor((budgetBytes * modelPercent) / 100) - sum((entry) => entry.hostBytes)
    if (gpu !== undefined && gpuBytes > freeOf(gpu)) {
      const facts = { deviceId: gpu.uuid, deviceName: `GPU ${gpu.index}`, wantedBytes: gpuBytes }
      return Effect.fail(new DeviceExhausted({ ...facts, freeBytes: freeOf(gpu) }))
    }
    if (hostBytes > hostFree) {
      const facts = { deviceId: hostId, deviceName: "the host", wantedBytes: hostBytes }
      return Effect.fail(new DeviceExhausted({ ...facts, freeBytes: hostFree }))
    }
    const entry: Entry = { hostBytes, gpuUuid: gpu?.uuid, gpuBytes, settled: false }
    entries.add(entry)
    return Effect.succeed(entry)
  }

  const tooLarge = Effect.fnUntraced(function* (claim: Claim) {
    const gpu = claim.placement === "nvidia" ? roomiest(yield* smi.reading) : undefined
    const hostBytes = claim.processBytes + (gpu === undefined ? claim.weightBytes : 0)
    const wholes = [
      {
        id: hostId,
        name: "the host",
        wantedBytes: hostBytes,
        wholeBytes: (budgetBytes * modelPercent) / 100,
      },
      ...(gpu === undefined
        ? []
        : [
            {
              id: gpu.uuid,
              name: `GPU ${gpu.index}`,
              wantedBytes: claim.weightBytes,
              wholeBytes: gpu.totalBytes * gpuShare,
            },
          ]),
    ]
    const small = wholes.find(({ wantedBytes, wholeBytes }) => wantedBytes > wholeBytes)
    return small === undefined
      ? undefined
      : new DeviceExhausted({
          deviceId: small.id,
          deviceName: small.name,
          wantedBytes: small.wantedBytes,
          freeBytes: Math.floor(small.wholeBytes),
        })
  })

  const settle = (entry: Entry) =>
    Effect.fnUntraced(function* (pid: number | undefined, residentBytes: number) {
      entry.hostBytes = Math.max(entry.hostBytes, residentBytes)
      if (entry.gpuUuid !== undefined) {
        const { processes } = yield* smi.fresh
        const used = processes.find((one) => one.pid === pid && one.gpuUuid === entry.gpuUuid)?.usedBytes ?? 0
        entry.gpuBytes = Math.max(entry.gpuBytes, used)
      }
      entry.settled = true
    })

  const claim = (wanted: Claim) =>
    Effect.gen(function* () {
      const gpu = wanted.placement === "nvidia" ? roomiest(yield* smi.reading) : undefined
      const entry = yield* Effect.acquireRelease(
        Effect.suspend(() => open(wanted, gpu)),
        (given) => Effect.sync(() => entries.delete(given)),
      )
      const grant: Grant = {
        environment: gpu === undefined ? {} : { CUDA_VISIBLE_DEVICES: gpu.uuid },
        counts: () => entries.has(entry),
        held: () =>
          new Map([
            [hostId, entry.hostBytes],
            ...(entry.gpuUuid === undefined ? [] : [[entry.gpuUuid, entry.gpuBytes] as const]),
          ]),
        settle: settle(entry),
      }
      return grant
    })

  return Device.of({
    claim,
    tooLarge,
    host: () => ({
      name: processorName(),
      budgetBytes,
      claimedBytes: sum((entry) => entry.hostBytes),
      threads: threads.threads,
      claimedThreads: threads.inUse(),
    }),
    threads,
    utilization: Effect.sync(utilization),
    temperature: Effect.promise(readTemperature),
    nvidia: smi.reading,
    nvidiaNow: smi.fresh,
  })
}
