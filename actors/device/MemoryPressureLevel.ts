// Where the node stands on the ladder of domain/MemoryLadder: asked by whoever admits work, told by MemoryWatch. A node
// without a watch is calm.
import { Context, Effect, Layer, Option } from "effect"
import { isAtLeast, nextRung, type Rung } from "#domain/models/MemoryLevel.ts"
import { MemoryPressure } from "#domain/wire/Errors.ts"
import * as Tree from "../Tree.ts"

interface MemoryLadderShape {
  readonly rung: () => Rung
  /** Share of the memory budget that was last seen in use. */
  readonly share: () => number
  readonly observe: (share: number) => Rung
}

const make = (): MemoryLadderShape => {
  let rung: Rung = "calm"
  let share = 0
  return {
    rung: () => rung,
    share: () => share,
    observe: (seen) => {
      share = seen
      rung = nextRung(rung, seen)
      return rung
    },
  }
}

export class MemoryLadder extends Context.Service<MemoryLadder, MemoryLadderShape>()(
  "edgewise/actors/MemoryLadder",
) {
  static readonly layer = Layer.sync(MemoryLadder, make)
}

const refuseFrom = (rung: Rung): Effect.Effect<void, MemoryPressure> =>
  Effect.flatMap(Effect.serviceOption(MemoryLadder), (ladder) =>
    Option.isSome(ladder) && isAtLeast(ladder.value.rung(), rung)
      ? Effect.fail(new MemoryPressure({ retryAfterMs: Tree.pressureRetryMs }))
      : Effect.void,
  )

/** Asked before new work of any kind is begun. */
export const admitNew: Effect.Effect<void, MemoryPressure> = refuseFrom("full")

/** Asked before work is taken that nobody waits for in person. */
export const admitBatch: Effect.Effect<void, MemoryPressure> = refuseFrom("busy")
