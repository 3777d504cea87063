// The memory of this machine as a node with these settings would give it to models, without a node.
import { Effect, Layer } from "effect"
import { Device } from "#actors/device/Device.ts"
import { NvidiaSmi } from "#actors/device/NvidiaSmi.ts"
import { visibleGpus } from "#config/OtherVariables.ts"
import type { Config } from "#config/Settings.ts"

export const withDevice = <A, E, R>(
  { memoryMb }: Pick<Config, "memoryMb">,
  use: Effect.Effect<A, E, R | Device>,
) =>
  Effect.provide(
    use,
    Device.layer({
      budgetBytes: memoryMb === 0 ? undefined : memoryMb * 1024 * 1024,
      visible: visibleGpus(),
    }).pipe(Layer.provide(NvidiaSmi.layer())),
  )
