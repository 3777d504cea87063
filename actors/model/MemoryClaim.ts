// A model's room on its device: claimed before anything is allocated, looked at after its process has gone. Called by the
// Model actor; the device keeps the ledger.
import { Effect, type Scope } from "effect"
import { placementOf } from "#domain/models/Placement.ts"
import { InsufficientMemory } from "#domain/wire/Errors.ts"
import type { Claim, Device, Grant } from "../device/Device.ts"
import type { DeviceExhausted } from "../device/DeviceLedger.ts"
import * as Limits from "../Limits.ts"
import { lackOf } from "./DeploymentChange.ts"
import type { Deployment } from "./ModelRegistry.ts"
import type { ModelOptions } from "./ModelState.ts"

const claimOf = ({ entry, sizeBytes }: Deployment, processBytes: number): Claim => ({
  modelId: entry.id,
  placement: placementOf(entry),
  weightBytes: sizeBytes,
  processBytes,
})

/** What the second sessions of an ONNX engine take, see OnnxSession: claimed only where nothing has to make way for it. */
export const claimSecond = (
  device: Device["Service"],
  { entry, sizeBytes }: Deployment,
): Effect.Effect<boolean, never, Scope.Scope> =>
  device.claim({ modelId: entry.id, placement: "host", weightBytes: sizeBytes, processBytes: 0 }).pipe(
    Effect.as(true),
    Effect.orElseSucceed(() => false),
  )

const megabytes = (bytes: number): number => Math.ceil(bytes / 1024 ** 2)

/** Why a model cannot be loaded, as far as that is known without loading it: its files, or its empty device's size. */
export const problemAtStart = (
  device: Device["Service"],
  deployment: Deployment,
  processBytes: number,
): Effect.Effect<string | undefined> => {
  const lack = lackOf(deployment)
  if (lack !== undefined) return Effect.succeed(lack)
  return Effect.map(device.tooLarge(claimOf(deployment, processBytes)), (exhausted) =>
    exhausted === undefined
      ? undefined
      : `is too large: it needs ${megabytes(exhausted.wantedBytes)} MB, models may have ` +
        `${megabytes(exhausted.freeBytes)} MB of ${exhausted.deviceName}`,
  )
}

/** The device's promise, with others making room where they may; refused before anything is allocated. */
export const claimRoom = (
  device: Device["Service"],
  deployment: Deployment,
  { makeRoom, processBytes }: ModelOptions,
): Effect.Effect<Grant, InsufficientMemory, Scope.Scope> => {
  const { entry } = deployment
  const claimed = device.claim(claimOf(deployment, processBytes))
  // Again and again: another load that waited for the same memory may have been first.
  const claiming = (rounds: number): Effect.Effect<Grant, DeviceExhausted, Scope.Scope> =>
    Effect.catchTag(claimed, "DeviceExhausted", (exhausted) =>
      Effect.flatMap(makeRoom?.(entry.id, exhausted) ?? Effect.succeed(false), (made) =>
        made && rounds > 0 ? claiming(rounds - 1) : Effect.fail(exhausted),
      ),
    )
  return claiming(Limits.roomRounds).pipe(
    Effect.mapError(
      ({ deviceName, freeBytes, wantedBytes }) =>
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

/** Device memory that the driver still counts for a process that has ended; it may take a moment to notice. */
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
    for (let look = 1; look < Limits.gpuLooks; look++) {
      if ((yield* held) === 0) return 0
      yield* Effect.sleep(Limits.gpuLookMs)
    }
    return yield* held
  })
}
