// The node's compute devices: which of them a model is placed on, how much memory of each is promised, which models share the
// CPU, how full the node's memory is. A claim is granted before anything is allocated, and ends with the claimer's scope. The host
// processor is always there; NVIDIA GPUs are where `nvidia-smi` shows them. Each device is an actor with its own state (DeviceActor).
import { Context, Effect, Layer, type Scope, Semaphore } from "effect"
import type { MemoryLevel } from "#domain/models/MemoryLevel.ts"
import type { NvidiaGpu } from "#domain/models/NvidiaReport.ts"
import type { Placement } from "#domain/models/Placement.ts"
import type { MachineCores } from "#domain/threads/MachineCores.ts"
import { readCores } from "../threads/ReadCores.ts"
import { ThreadLedger } from "../threads/ThreadLedger.ts"
import {
  type DeviceActor,
  DeviceExhausted,
  type DeviceLost,
  type Free,
  makeDeviceActor,
} from "./DeviceActor.ts"
import { type ClaimId, gpuShare, gpuState, hostState, promisedOf } from "./DeviceState.ts"
import { isUsable, roomiestFirst } from "./GpuChoice.ts"
import { makeUtilization, memoryBudgetBytes, processorName, readTemperature } from "./HostProcessor.ts"
import { type NvidiaReading, NvidiaSmi } from "./NvidiaSmi.ts"

/** The host processor's id; a GPU's is its uuid. */
export const hostId = "host"

export interface Claim {
  readonly modelId: string
  readonly placement: Placement
  /** What the weights are expected to take, on the device where they are computed. */
  readonly weightBytes: number
  /** What a process costs the host beside its weights. */
  readonly processBytes: number
  /** What its caches may take of the host's memory after it has loaded. Absent: nothing. */
  readonly cacheBytes?: number
}

/** What a claim is expected to take of the host. */
export const hostBytesOf = ({ cacheBytes = 0, processBytes, weightBytes }: Claim, onGpu: boolean): number =>
  processBytes + cacheBytes + (onGpu ? 0 : weightBytes)

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

interface HostReading {
  readonly name: string
  readonly budgetBytes: number
  readonly claimedBytes: number
  /** CPU threads that there are for models. */
  readonly threads: number
  /** Those of them that working models use. */
  readonly claimedThreads: number
}

interface MemoryPressureReading {
  readonly level: MemoryLevel
  /** Share of the memory budget that was last seen in use. */
  readonly share: number
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
 * Percent of the node's memory budget that models may claim. Below the first level of memory pressure, so that what the
 * ledger has allowed cannot put the node on it: the rest is for what requests need.
 */
const modelPercent = 85

export class Device extends Context.Service<
  Device,
  {
    /**
     * Claims memory for a model, until the scope closes. Where it is not there, `free` is asked for it, at most `rounds` times; without
     * `free` the claim is refused at once.
     */
    readonly claim: (
      claim: Claim,
      free?: Free,
      rounds?: number,
    ) => Effect.Effect<Grant, DeviceExhausted | DeviceLost, Scope.Scope>
    /** What would be refused of a claim if nothing else had any memory; undefined if it would fit. */
    readonly tooLarge: (claim: Claim) => Effect.Effect<DeviceExhausted | undefined>
    readonly host: () => HostReading
    /** The host's memory that all models together may claim. */
    readonly modelBytes: () => number
    /** How full the node's memory is, by the last reading of MemoryWatch; calm before the first. */
    readonly pressure: () => MemoryPressureReading
    /** Takes a reading of the share of the memory budget that is in use, and returns the level that follows. */
    readonly observe: (share: number) => Effect.Effect<MemoryLevel>
    /** Whether the host's actor has given up: nothing can be loaded. */
    readonly isLost: () => boolean
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
      Effect.flatMap(NvidiaSmi, (smi) => make(smi, options)),
    )
}

const make = Effect.fnUntraced(function* (smi: NvidiaSmi["Service"], options: DeviceOptions) {
  const budgetBytes = options.budgetBytes ?? memoryBudgetBytes()
  const threads = new ThreadLedger(options.cores ?? readCores())
  const { visible } = options
  const utilization = makeUtilization()
  const modelBytes = Math.floor((budgetBytes * modelPercent) / 100)

  const host: DeviceActor = yield* makeDeviceActor({
    id: hostId,
    name: "the host",
    initial: hostState(modelBytes),
    holds: () => ({ memoryBytes: promisedOf(host.state()), threads: threads.inUse() }),
  })
  const gpus = new Map<string, DeviceActor>()
  const one = Semaphore.makeUnsafe(1)
  const own = yield* Effect.context<Scope.Scope>()
  /** The GPUs' actors. Each begins when the driver first shows its GPU, and ends with this layer. */
  const actorOf = ({ index, uuid }: NvidiaGpu): Effect.Effect<DeviceActor> =>
    one.withPermits(1)(
      Effect.gen(function* () {
        const known = gpus.get(uuid)
        if (known !== undefined) return known
        const made: DeviceActor = yield* makeDeviceActor({
          id: uuid,
          name: `GPU ${index}`,
          initial: gpuState,
          holds: () => ({ memoryBytes: promisedOf(made.state()) }),
        })
        gpus.set(uuid, made)
        return made
      }).pipe(Effect.updateContext(() => own)),
    )

  /** Gives every GPU its row of what the driver has said. A driver that fails says nothing of any GPU. */
  const share = (reading: NvidiaReading): Effect.Effect<NvidiaReading> =>
    Effect.gen(function* () {
      if (reading.gpus.length === 0) return reading
      const usable = reading.gpus.filter((gpu) => isUsable(gpu, visible))
      for (const gpu of usable) yield* actorOf(gpu)
      for (const device of gpus.values())
        yield* device.tell({
          is: "read",
          gpu: usable.find(({ uuid }) => uuid === device.id),
          atMs: reading.atMs,
        })
      return reading
    })
  const nvidia = Effect.flatMap(smi.reading, share)
  const nvidiaNow = Effect.flatMap(smi.fresh, share)

  /** The GPUs that a model may be placed on now; none where the driver shows none, and the model is placed on the host. */
  const gpusFor = ({ placement }: Claim): Effect.Effect<ReadonlyArray<DeviceActor>> =>
    placement === "nvidia"
      ? Effect.map(nvidia, (reading) =>
          roomiestFirst(
            [...gpus.values()].filter(
              ({ id, state }) =>
                state().reading !== undefined && reading.gpus.some(({ uuid }) => uuid === id),
            ),
          ),
        )
      : Effect.succeed([])

  const tooLarge = Effect.fnUntraced(function* (claim: Claim) {
    const [gpu] = yield* gpusFor(claim)
    const hostBytes = hostBytesOf(claim, gpu !== undefined)
    const wholes = [
      {
        id: hostId,
        name: host.name,
        wantedBytes: hostBytes,
        wholeBytes: (budgetBytes * modelPercent) / 100,
      },
      ...(gpu === undefined
        ? []
        : [
            {
              id: gpu.id,
              name: gpu.name,
              wantedBytes: claim.weightBytes,
              wholeBytes: (gpu.state().reading?.gpu.totalBytes ?? 0) * gpuShare,
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

  const nothingFreed: Free = () => Effect.succeed(false)

  /**
   * Claims the first GPU that has the bytes: another model may have been faster at the roomiest one. Where none has them, memory of
   * the roomiest one is freed.
   */
  const claimGpu = Effect.fnUntraced(function* (
    id: ClaimId,
    bytes: number,
    candidates: ReadonlyArray<DeviceActor>,
    rounds: number,
    free: Free,
  ) {
    for (const gpu of candidates) {
      const exit = yield* Effect.exit(gpu.claim(id, bytes, 0, nothingFreed))
      if (exit._tag === "Success") return gpu
    }
    const roomiest = candidates.find(({ isLost }) => !isLost()) ?? candidates[0]
    // The driver reports freed memory only when it is asked.
    const freeAndRead: Free = (exhausted) =>
      Effect.tap(free(exhausted), (freed) => (freed ? nvidiaNow : Effect.void))
    yield* roomiest?.claim(id, bytes, rounds, freeAndRead) ?? Effect.void
    return roomiest
  })

  const settle = (id: ClaimId, gpu: DeviceActor | undefined, cacheBytes: number) =>
    Effect.fnUntraced(function* (pid: number | undefined, residentBytes: number) {
      // The caches are still empty.
      yield* host.tell({ is: "settled", id, bytes: residentBytes + cacheBytes })
      if (gpu === undefined) return
      const { processes } = yield* nvidiaNow
      const used = processes.find((each) => each.pid === pid && each.gpuUuid === gpu.id)?.usedBytes ?? 0
      yield* gpu.tell({ is: "settled", id, bytes: used })
    })

  let claims = 0
  const claim = Effect.fnUntraced(function* (wanted: Claim, free: Free = nothingFreed, rounds = 0) {
    const id: ClaimId = ++claims
    const candidates = yield* gpusFor(wanted)
    const release = Effect.suspend(() =>
      Effect.forEach([host, ...gpus.values()], (device) => device.tell({ is: "released", id }), {
        discard: true,
      }),
    )
    // Before the claim, which may wait and be interrupted. Releasing what was not granted changes nothing.
    yield* Effect.addFinalizer(() => release)
    return yield* Effect.gen(function* () {
      const gpu = yield* claimGpu(id, wanted.weightBytes, candidates, rounds, free)
      yield* host.claim(id, hostBytesOf(wanted, gpu !== undefined), rounds, free)
      const devices = gpu === undefined ? [host] : [host, gpu]
      const grant: Grant = {
        environment: gpu === undefined ? {} : { CUDA_VISIBLE_DEVICES: gpu.id },
        counts: () => host.state().claims.has(id),
        held: () => new Map(devices.map((device) => [device.id, device.state().claims.get(id)?.bytes ?? 0])),
        settle: settle(id, gpu, wanted.cacheBytes ?? 0),
      }
      return grant
    }).pipe(Effect.onError(() => release))
  })

  const pressure = () => {
    const { pressure: level, usedShare } = host.state()
    return { level, share: usedShare }
  }

  return Device.of({
    claim,
    tooLarge,
    host: () => ({
      name: processorName(),
      budgetBytes,
      claimedBytes: promisedOf(host.state()),
      threads: threads.threads,
      claimedThreads: threads.inUse(),
    }),
    modelBytes: () => modelBytes,
    pressure,
    isLost: host.isLost,
    observe: (used) => Effect.map(host.tell({ is: "used", share: used }), () => pressure().level),
    threads,
    utilization: Effect.sync(utilization),
    temperature: Effect.promise(readTemperature),
    nvidia,
    nvidiaNow,
  })
})
