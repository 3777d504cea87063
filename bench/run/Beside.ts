// `--beside N`: processes that compute all the time while a suite runs, because a machine at the edge rarely serves models
// alone. They end with the scope, and by themselves if the bench is killed.
import { Effect, type Scope } from "effect"
import type { Neighbours } from "#harness/report/Result.ts"
import { type ChildFailed, startChild } from "../support/Child.ts"
import type { NeighbourCommands } from "./besideMain.ts"

export interface BesideOptions {
  readonly processes: number
  /** 0 to 19; 0 is the priority of ordinary processes. */
  readonly nice: number
  /** They compute for so long, then rest for as long. Undefined: they never rest. */
  readonly pulseMs?: number | undefined
}

interface Running {
  readonly used: Effect.Effect<Neighbours, ChildFailed>
  /** Fails when one of them has ended: the figures would be those of another load. */
  readonly died: Effect.Effect<never, ChildFailed>
}

export const startNeighbours = ({
  nice,
  processes,
  pulseMs,
}: BesideOptions): Effect.Effect<Running, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const children = yield* Effect.forEach(Array.from({ length: processes }).keys(), (at) =>
      startChild<NeighbourCommands>({
        name: `neighbour ${at + 1}`,
        entry: new URL("./besideMain.ts", import.meta.url),
        args: pulseMs === undefined ? [String(nice)] : [String(nice), String(pulseMs)],
      }),
    )
    const cpuUs = Effect.map(
      Effect.forEach(children, (child) => child.ask("cpuUs")),
      (each) => each.reduce((sum, one) => sum + one, 0),
    )
    const before = { atMs: performance.now(), cpuUs: yield* cpuUs }
    return {
      used: Effect.map(cpuUs, (after) => {
        const cores = (after - before.cpuUs) / 1000 / (performance.now() - before.atMs)
        return {
          processes,
          nice,
          ...(pulseMs === undefined ? {} : { pulseMs }),
          cores: Number(cores.toFixed(2)),
        }
      }),
      died: Effect.raceAllFirst([Effect.never, ...children.map(({ died }) => died)]),
    }
  })
