// A model's room on its device: claimed before anything is allocated, looked at after its process has gone. Called by the
// Model actor; the device keeps the ledger.
import { Effect, type Scope } from "effect"
import { InsufficientMemory } from "#domain/Errors.ts"
import { placementOf } from "#domain/Placement.ts"
import type { Device, Grant } from "./Device.ts"
import type { Deployment } from "./ModelRegistry.ts"
import type { ModelOptions } from "./ModelView.ts"
import * as Tree from "./Tree.ts"

/** The device's promise, with others making room where they may; refused before anything is allocated. */
export const claimRoom = (
  device: Device["Service"],
  { entry, sizeBytes: weightBytes }: Deployment,
  { makeRoom, processBytes }: ModelOptions,
): Effect.Effect<Grant, InsufficientMemory, Scope.Scope> => {
  const claimed = device.claim({
    modelId: entry.id,
    placement: placementOf(entry),
    weightBytes,
    processBytes,
    threads: entry.runtime.threads,
  })
  return claimed.pipe(
    Effect.catchTag("DeviceExhausted", (exhausted) =>
      Effect.flatMap(makeRoom?.(entry.id, exhausted) ?? Effect.succeed(false), (made) =>
        made ? claimed : Effect.fail(exhausted),
      ),
    ),
    Effect.mapError(
      ({ deviceName, freeBytes, wantedBytes }) =>
        new InsufficientMemory({
          model: entry.id,
          device: deviceName,
          wantedBytes,
          freeBytes,
          retryAfterMs: Tree.reviveAfterMs,
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
    for (let look = 1; look < Tree.gpuLooks; look++) {
      if ((yield* held) === 0) return 0
      yield* Effect.sleep(Tree.gpuLookMs)
    }
    return yield* held
  })
}
