// The current level of memory pressure (domain/models/MemoryLevel): set by MemoryWatch, checked before new work is admitted.
// Without a watch the level is calm.
import { Context, Effect, Layer, Option } from "effect"
import { isAtLeast, type MemoryLevel, nextLevel } from "#domain/models/MemoryLevel.ts"
import { MemoryPressure } from "#domain/wire/Errors.ts"
import * as Limits from "../Limits.ts"

interface MemoryPressureLevelShape {
  readonly level: () => MemoryLevel
  /** Share of the memory budget that was last seen in use. */
  readonly share: () => number
  readonly observe: (share: number) => MemoryLevel
}

const make = (): MemoryPressureLevelShape => {
  let level: MemoryLevel = "calm"
  let share = 0
  return {
    level: () => level,
    share: () => share,
    observe: (seen) => {
      share = seen
      level = nextLevel(level, seen)
      return level
    },
  }
}

export class MemoryPressureLevel extends Context.Service<MemoryPressureLevel, MemoryPressureLevelShape>()(
  "edgewise/actors/MemoryPressureLevel",
) {
  static readonly layer = Layer.sync(MemoryPressureLevel, make)
}

const refuseFrom = (level: MemoryLevel): Effect.Effect<void, MemoryPressure> =>
  Effect.flatMap(Effect.serviceOption(MemoryPressureLevel), (pressure) =>
    Option.isSome(pressure) && isAtLeast(pressure.value.level(), level)
      ? Effect.fail(new MemoryPressure({ retryAfterMs: Limits.pressureRetryMs }))
      : Effect.void,
  )

/** Asked before new work of any kind is begun. */
export const admitNew: Effect.Effect<void, MemoryPressure> = refuseFrom("full")

/** Checked before background work is taken: work that no client waits for. */
export const admitBatch: Effect.Effect<void, MemoryPressure> = refuseFrom("busy")
