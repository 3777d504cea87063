// The operations suite: memory that unloaded models leave, and the effect of slow clients on others.
import { Effect, type Scope } from "effect"
import type { ChildFailed } from "../support/Child.ts"
import type { Section } from "../support/Findings.ts"
import { controlLoop } from "./ControlLoop.ts"
import { loadCycles } from "./Cycles.ts"
import { restarts } from "./Restart.ts"
import { slowClients } from "./SlowClients.ts"

/** 100 cycles of eight models: five minutes. */
export const cyclesSuite = ({
  quick,
}: {
  readonly quick: boolean
}): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> =>
  Effect.map(loadCycles(quick ? 5 : 100), (section) => [section])

/** A minute. */
export const controlSuite = ({
  quick,
}: {
  readonly quick: boolean
}): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> =>
  Effect.map(controlLoop(quick ? 2 : 10), (section) => [section])

/** Ten starts and as many restarts: a minute. */
export const restartSuite = ({
  quick,
}: {
  readonly quick: boolean
}): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> =>
  Effect.map(restarts(quick ? 2 : 10), (section) => [section])

/** Three attacks of 40 s. */
export const slowClientsSuite = (): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> =>
  Effect.map(slowClients(), (section) => [section])
