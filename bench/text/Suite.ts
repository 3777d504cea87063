// The text suite: which questions, in which order, for how long. Rows, no logic.
import { availableParallelism } from "node:os"
import { Effect, type Scope } from "effect"
import type { TextSize } from "../sizes/text/TextWeights.ts"
import type { ChildFailed } from "../support/Child.ts"
import type { Section } from "../support/Findings.ts"
import { type CpuPlan, cpuPerToken } from "./CpuPerToken.ts"
import { type DecodePlan, decodeRate } from "./DecodeRate.ts"
import { type IntrusionPlan, promptIntrusion } from "./PromptIntrusion.ts"
import { type OverheadPlan, requestOverhead } from "./RequestOverhead.ts"
import { stageDied, startStage } from "./Stage.ts"
import { sizedTextSuite } from "./sized/Suite.ts"

interface Plan {
  readonly cpu: CpuPlan
  readonly overhead: OverheadPlan
  readonly decode: DecodePlan
  readonly intrusion: IntrusionPlan
}

/** Under three minutes, on however busy a machine: the shares and one late round each. */
const fullPlan: Plan = {
  cpu: { streams: 64, stepsMs: [10, 2], windowMs: 1_200, rounds: 7, withinMs: 32_000 },
  overhead: { warmUp: 4_000, requests: 500, rounds: 12, withinMs: 10_000 },
  decode: {
    loads: [
      { streams: 1, tokens: 512 },
      { streams: 4, tokens: 256 },
      { streams: 16, tokens: 128 },
    ],
    rounds: 6,
    withinMs: 14_000,
  },
  intrusion: { streams: 4, promptTokens: 2_000, quietMs: 1_000, rounds: 9, withinMs: 15_000 },
}

/** Under 40 seconds: shows that it works and roughly where things stand. */
const quickPlan: Plan = {
  cpu: { streams: 64, stepsMs: [10], windowMs: 800, rounds: 2, withinMs: 6_000 },
  overhead: { warmUp: 1_500, requests: 200, rounds: 3, withinMs: 2_000 },
  decode: {
    loads: [
      { streams: 1, tokens: 256 },
      { streams: 4, tokens: 128 },
      { streams: 16, tokens: 64 },
    ],
    rounds: 1,
    withinMs: 0,
  },
  intrusion: { streams: 4, promptTokens: 2_000, quietMs: 500, rounds: 2, withinMs: 2_000 },
}

interface TextSuiteOptions {
  readonly quick: boolean
  readonly profileDir: string | undefined
  /** Undefined for the demonstration weights. */
  readonly size: TextSize | undefined
  readonly threads: number | undefined
}

export const textSuite = ({
  quick,
  profileDir,
  size,
  threads,
}: TextSuiteOptions): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> =>
  size === undefined
    ? demonstrationSuite({ quick, profileDir })
    : sizedTextSuite({ quick, profileDir, size, threads: threads ?? availableParallelism() })

const demonstrationSuite = (options: {
  readonly quick: boolean
  readonly profileDir: string | undefined
}): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const plan = options.quick ? quickPlan : fullPlan
    const stage = yield* startStage(options.profileDir)
    const sections = Effect.gen(function* () {
      return [
        ...(yield* cpuPerToken(stage, plan.cpu)),
        yield* requestOverhead(stage, plan.overhead),
        yield* decodeRate(stage, plan.decode),
        yield* promptIntrusion(stage, plan.intrusion),
      ]
    })
    return yield* Effect.raceFirst(sections, stageDied(stage))
  })
