// The node's compute devices: which of them a model is placed on, how much memory of each is promised, which models share the
// CPU. A claim is refused before anything is allocated, and given back with the claimer's scope. The host processor is always
// there; NVIDIA GPUs are where `nvidia-smi` shows them. Each device is an actor that keeps its own books (DeviceLedger).
import { Context, Effect, Layer, type Scope, Semaphore } from "effect"
import type { NvidiaGpu } from "#domain/models/NvidiaReport.ts"
import type { Placement } from "#domain/models/Placement.ts"
import type { MachineCores } from "#domain/threads/MachineCores.ts"
import { readCores } from "../threads/ReadCores.ts"
import { ThreadLedger } from "../threads/ThreadLedger.ts"
import {
  ClaimShare,
  DeviceExhausted,
  type DeviceLedger,
  makeLedger,
  promisedOf,
  ReleaseShare,
  SettleShare,
  type Shares,
} from "./DeviceLedger.ts"
import { freeOf, gpuShare, roomiestFirst } from "./GpuChoice.ts"
import { makeUtilization, memoryBudgetBytes, processorName, readTemperature } from "./HostProcessor.ts"
import { type NvidiaReading, NvidiaSmi } from "./NvidiaSmi.ts"

/** The host processor's id in the ledger; a GPU's is its uuid. */
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

export interface HostReading {
  readonly name: string
  readonly budgetBytes: number
  readonly claimedBytes: number
  /** CPU threads that there are for models. */
  readonly threads: number
  /** Those of them that working models use. */
  readonly claimedThreads: number
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
    /** Memory is refused where it is not there. */
    readonly claim: (claim: Claim) => Effect.Effect<Grant, DeviceExhausted, Scope.Scope>
    /** What would be refused of a claim if nothing else had any memory; undefined if it would fit. */
    readonly tooLarge: (claim: Claim) => Effect.Effect<DeviceExhausted | undefined>
    readonly host: () => HostReading
    /** The host's memory that all models together may claim. */
    readonly modelBytes: () => number
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

  const host: DeviceLedger = yield* makeLedger({
    id: hostId,
    name: "the host",
    holds: () => ({ memoryBytes: promisedOf(host.shares()), threads: threads.inUse() }),
  })
  const gpus = new Map<string, DeviceLedger>()
  const one = Semaphore.makeUnsafe(1)
  const own = yield* Effect.context<Scope.Scope>()
  /** The GPUs' actors. Each begins when the driver first shows its GPU, and ends with this layer. */
  const ledgerOf = ({ index, uuid }: NvidiaGpu): Effect.Effect<DeviceLedger> =>
    one.withPermits(1)(
      Effect.gen(function* () {
        const known = gpus.get(uuid)
        if (known !== undefined) return known
        const made: DeviceLedger = yield* makeLedger({
          id: uuid,
          name: `GPU ${index}`,
          holds: () => ({ memoryBytes: promisedOf(made.shares()) }),
        })
        gpus.set(uuid, made)
        return made
      }).pipe(Effect.updateContext(() => own)),
    )

  const sharesOf = ({ uuid }: NvidiaGpu): Shares => gpus.get(uuid)?.shares() ?? new Map()

  const gpusFor = (claim: Claim) =>
    claim.placement === "nvidia"
      ? Effect.map(smi.reading, (reading) => roomiestFirst(reading, visible, sharesOf))
      : Effect.succeed([])

  const tooLarge = Effect.fnUntraced(function* (claim: Claim) {
    const [gpu] = yield* gpusFor(claim)
    const hostBytes = hostBytesOf(claim, gpu !== undefined)
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

  /** Claims the first GPU that has the bytes. Another model may have been faster at the roomiest one. */
  const claimGpu = (holder: object, bytes: number, candidates: ReadonlyArray<NvidiaGpu>) =>
    Effect.gen(function* () {
      let refusal: DeviceExhausted | undefined
      for (const gpu of candidates) {
        const ledger = yield* ledgerOf(gpu)
        const message = new ClaimShare(holder, bytes, (shares) => freeOf(gpu, shares))
        const refused = yield* Effect.match(ledger.claim(message), {
          onSuccess: () => undefined,
          onFailure: (error) => error,
        })
        if (refused === undefined) return ledger
        refusal ??= refused
      }
      return refusal === undefined ? undefined : yield* refusal
    })

  const release = (holder: object, gpu: DeviceLedger | undefined) =>
    Effect.andThen(gpu?.tell(new ReleaseShare(holder)) ?? Effect.void, host.tell(new ReleaseShare(holder)))

  const open = Effect.fnUntraced(function* (wanted: Claim, candidates: ReadonlyArray<NvidiaGpu>) {
    const holder = {}
    const gpu = yield* claimGpu(holder, wanted.weightBytes, candidates)
    const bytes = hostBytesOf(wanted, gpu !== undefined)
    yield* host
      .claim(new ClaimShare(holder, bytes, (shares) => modelBytes - promisedOf(shares)))
      .pipe(Effect.onError(() => release(holder, gpu)))
    return { holder, gpu }
  })

  const settle = (holder: object, gpu: DeviceLedger | undefined, cacheBytes: number) =>
    Effect.fnUntraced(function* (pid: number | undefined, residentBytes: number) {
      // The caches are still empty.
      yield* host.tell(new SettleShare(holder, residentBytes + cacheBytes))
      if (gpu === undefined) return
      const { processes } = yield* smi.fresh
      const used = processes.find((each) => each.pid === pid && each.gpuUuid === gpu.id)?.usedBytes ?? 0
      yield* gpu.tell(new SettleShare(holder, used))
    })

  const claim = (wanted: Claim) =>
    Effect.gen(function* () {
      const candidates = yield* gpusFor(wanted)
      const { gpu, holder } = yield* Effect.acquireRelease(open(wanted, candidates), (given) =>
        release(given.holder, given.gpu),
      )
      const grant: Grant = {
        environment: gpu === undefined ? {} : { CUDA_VISIBLE_DEVICES: gpu.id },
        counts: () => host.shares().has(holder),
        held: () =>
          new Map(
            [host, ...(gpu === undefined ? [] : [gpu])].map(({ id, shares }) => [
              id,
              shares().get(holder)?.bytes ?? 0,
            ]),
          ),
        settle: settle(holder, gpu, wanted.cacheBytes ?? 0),
      }
      return grant
    })

  return Device.of({
    claim,
    tooLarge,
    host: () => ({
      name: processorName(),
      budgetBytes,
      claimedBytes: promisedOf(host.shares()),
      threads: threads.threads,
      claimedThreads: threads.inUse(),
    }),
    modelBytes: () => modelBytes,
    threads,
    utilization: Effect.sync(utilization),
    temperature: Effect.promise(readTemperature),
    nvidia: smi.reading,
    nvidiaNow: smi.fresh,
  })
})
