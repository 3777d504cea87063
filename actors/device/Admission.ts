// Refuses new work while the node's memory is nearly full (domain/models/MemoryLevel).
import { Effect, Option } from "effect"
import { isAtLeast, type MemoryLevel } from "#domain/models/MemoryLevel.ts"
import { MemoryPressure } from "#domain/wire/Errors.ts"
import * as Limits from "../Limits.ts"
import { Device } from "./Device.ts"

/** Without devices, in tests and scripts, nothing is refused. */
const refuseFrom = (level: MemoryLevel): Effect.Effect<void, MemoryPressure> =>
  Effect.flatMap(Effect.serviceOption(Device), (device) =>
    Option.isSome(device) && isAtLeast(device.value.pressure().level, level)
      ? Effect.fail(new MemoryPressure({ retryAfterMs: Limits.pressureRetryMs }))
      : Effect.void,
  )

/** Checked before new work of any kind is begun. */
export const admitNew: Effect.Effect<void, MemoryPressure> = refuseFrom("full")

/** Checked before background work is taken: work that no client waits for. */
export const admitBatch: Effect.Effect<void, MemoryPressure> = refuseFrom("busy")
