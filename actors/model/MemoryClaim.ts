// The memory that a model claims of its device: claimed before anything is allocated, checked after its process has ended.
// Called by the Model actor; the device keeps the ledger.
import { Effect, type Scope } from "effect"
import type { Deployment } from "#domain/models/Deployment.ts"
import { placementOf } from "#domain/models/Placement.ts"
import { InsufficientMemory } from "#domain/wire/Errors.ts"
import { adapterFacts } from "#engines/AdapterFacts.ts"
import type { Claim, Device, Grant } from "../device/Device.ts"
import type { DeviceExhausted, DeviceLost } from "../device/DeviceActor.ts"
import * as Limits from "../Limits.ts"
import { lackOf } from "./DeploymentChange.ts"

/** Frees enough memory of a device for a claim that did not fit; false if it could not. */
export type EvictUntilFits = (forModel: string, exhausted: DeviceExhausted) => Effect.Effect<boolean>

export interface ClaimOptions {
  /** Memory of its process besides the weights, bytes. */
  readonly processBytes: number
  readonly evictUntilFits?: EvictUntilFits
}

/** What a process costs beside its weights: Node, the native library, buffers. A guess from one reading (110 MB). */
export const processBytes = 150 * 1024 * 1024

/** What a model will claim, by its entry and the size of its files. */
export const claimOf = (
  { entry, sizeBytes }: Pick<Deployment, "entry" | "sizeBytes">,
  ofProcess: number,
): Claim => ({
  modelId: entry.id,
  placement: placementOf(entry),
  weightBytes: sizeBytes,
  processBytes: ofProcess,
  cacheBytes: adapterFacts[entry.adapter]?.cacheBytes?.(entry) ?? 0,
})

/** Claims memory for the second sessions of an ONNX engine (see SecondSession). Evicts nothing: false if it is not free. */
export const claimSecond = (
  device: Device["Service"],
  { entry, sizeBytes }: Deployment,
): Effect.Effect<boolean, never, Scope.Scope> =>
  device.claim({ modelId: entry.id, placement: "host", weightBytes: sizeBytes, processBytes: 0 }).pipe(
    Effect.as(true),
    Effect.orElseSucceed(() => false),
  )

const megabytes = (bytes: number): number => Math.ceil(bytes / 1024 ** 2)

/** Why a model cannot be loaded even with nothing beside it. Undefined if it fits. */
export const tooLargeProblem = (
  device: Device["Service"],
  deployment: Pick<Deployment, "entry" | "sizeBytes">,
  ofProcess: number,
): Effect.Effect<string | undefined> =>
  Effect.map(device.tooLarge(claimOf(deployment, ofProcess)), (exhausted) =>
    exhausted === undefined
      ? undefined
      : `is too large: it needs ${megabytes(exhausted.wantedBytes)} MB, models may have ` +
        `${megabytes(exhausted.freeBytes)} MB of ${exhausted.deviceName}`,
  )

/** Why a model cannot be loaded, as far as that is known without loading it: its files, or its empty device's size. */
export const problemAtStart = (
  device: Device["Service"],
  deployment: Deployment,
  ofProcess: number,
): Effect.Effect<string | undefined> => {
  const lack = lackOf(deployment)
  return lack === undefined ? tooLargeProblem(device, deployment, ofProcess) : Effect.succeed(lack)
}

/** Claims the memory; evicts other models if that is allowed. Fails before anything is allocated. */
export const claimMemory = (
  device: Device["Service"],
  deployment: Deployment,
  { evictUntilFits, processBytes: ofProcess }: ClaimOptions,
): Effect.Effect<Grant, DeviceLost | InsufficientMemory, Scope.Scope> => {
  const { entry } = deployment
  const claiming =
    evictUntilFits === undefined
      ? device.claim(claimOf(deployment, ofProcess))
      : device.claim(
          claimOf(deployment, ofProcess),
          (exhausted) => evictUntilFits(entry.id, exhausted),
          Limits.evictionRounds,
        )
  return Effect.catchTag(claiming, "DeviceExhausted", ({ deviceName, freeBytes, wantedBytes }) =>
    Effect.fail(
      new InsufficientMemory({
        model: entry.id,
        device: deviceName,
        wantedBytes,
        freeBytes,
        retryAfterMs: Limits.reviveAfterMs,
      }),
    ),
  )
}

/** Bytes of GPU memory that the driver still counts for a process that has ended. It notices the end with a delay. */
export const heldOnGpu = (
  device: Device["Service"],
  grant: Grant | undefined,
  pid: number | undefined,
): Effect.Effect<number> => {
  if (grant === undefined || pid === undefined || grant.held().size < 2) return Effect.succeed(0)
  const held = Effect.map(device.nvidiaNow, ({ processes }) =>
    processes.reduce((sum, one) => sum + (one.pid === pid ? (one.usedBytes ?? 0) : 0), 0),
  )
  return Effect.gen(function* () {
    for (let reading = 1; reading < Limits.gpuReadings; reading++) {
      if ((yield* held) === 0) return 0
      yield* Effect.sleep(Limits.gpuReadingMs)
    }
    return yield* held
  })
}
