// The speech suite: which questions, in which order, for how long. Rows, no logic.
import { Effect, type Scope } from "effect"
import type { KokoroSize } from "../sizes/kokoro/Kokoro.ts"
import type { ChildFailed } from "../support/Child.ts"
import type { Section } from "../support/Findings.ts"
import { type CostPlan, cost } from "./Cost.ts"
import { type FirstAudioPlan, firstAudio } from "./FirstAudio.ts"
import { sizedSpeechSuite } from "./Sized.ts"
import { startStage } from "./Stage.ts"
import { type UnderrunPlan, underruns } from "./Underruns.ts"

interface Plan {
  readonly firstAudio: FirstAudioPlan
  readonly underruns: UnderrunPlan
  readonly cost: CostPlan
}

/** Under three minutes on two cores. */
const fullPlan: Plan = {
  firstAudio: { requests: 15, rounds: 7, withinMs: 60_000 },
  underruns: { streams: [1, 2, 4, 8], characters: 1_200, seconds: 10, rounds: 3, withinMs: 15_000 },
  cost: { seconds: 60, rounds: 5, withinMs: 30_000 },
}

/** Under 40 seconds: shows that it works and roughly where things stand. */
const quickPlan: Plan = {
  firstAudio: { requests: 6, rounds: 2, withinMs: 10_000 },
  underruns: { streams: [1, 8], characters: 600, seconds: 4, rounds: 1, withinMs: 1_000 },
  cost: { seconds: 20, rounds: 2, withinMs: 8_000 },
}

interface SpeechSuiteOptions {
  readonly quick: boolean
  readonly profileDir: string | undefined
  /** Undefined for the demonstration weights. */
  readonly size: KokoroSize | undefined
  readonly threads: number | undefined
}

export const speechSuite = ({
  profileDir,
  quick,
  size,
  threads,
}: SpeechSuiteOptions): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> =>
  size === undefined
    ? demonstrationSuite({ quick, profileDir })
    : sizedSpeechSuite({ quick, profileDir, size, threads })

const demonstrationSuite = (options: {
  readonly quick: boolean
  readonly profileDir: string | undefined
}): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const plan = options.quick ? quickPlan : fullPlan
    const stage = yield* startStage(options.profileDir)
    return [
      yield* firstAudio(stage, plan.firstAudio),
      yield* underruns(stage, plan.underruns),
      yield* cost(stage, plan.cost),
    ]
  })
