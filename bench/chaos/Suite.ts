// The chaos suite: how often each engine process comes to harm. Rows, no logic.
import { Effect, type Scope } from "effect"
import type { ChildFailed } from "../support/Child.ts"
import type { Section } from "../support/Findings.ts"
import { startStage } from "./Stage.ts"
import { everyHarm, type TrialsPlan, trials } from "./Trials.ts"

/** 600 faults: more than half an hour on two cores. */
const full: TrialsPlan = { harms: everyHarm, rounds: 50, withinMs: 45 * 60_000, quietMs: 500 }

/**
 * 12 faults: that it works, and roughly where things stand. Quiet for about as long as the faults take: a 99th percentile
 * of 50 answers is the slowest of them, and comparing it with that of 150 would make every fault look worse than it is.
 */
const quick: TrialsPlan = { harms: everyHarm, rounds: 1, withinMs: 0, quietMs: 1_500 }

export const chaosSuite = (options: {
  readonly quick: boolean
  readonly profileDir: string | undefined
}): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const stage = yield* startStage(options.profileDir)
    return yield* trials(stage, options.quick ? quick : full)
  })
