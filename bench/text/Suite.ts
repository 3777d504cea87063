// The text suite: its sections, their order and their duration.
import { availableParallelism } from "node:os"
import { Effect, type Scope } from "effect"
import type { TextSize } from "../sizes/text/TextWeights.ts"
import { ChildFailed } from "../support/Child.ts"
import type { Section } from "../support/Findings.ts"
import { type CpuPlan, cpuPerToken } from "./CpuPerToken.ts"
import { type DecodePlan, decodeRate } from "./DecodeRate.ts"
import { organizationsApart } from "./Organizations.ts"
import { type IntrusionPlan, promptIntrusion } from "./PromptIntrusion.ts"
import { type CostPlan, requestCost } from "./RequestCost.ts"
import { type OverheadPlan, requestOverhead } from "./RequestOverhead.ts"
import { type Stage, stageDied, startStage } from "./Stage.ts"
import { type SizedTextSection, sizedTextSections, sizedTextSuite } from "./sized/Suite.ts"
import { transports } from "./Transports.ts"

interface Plan {
  readonly cpu: CpuPlan
  readonly overhead: OverheadPlan
  readonly cost: CostPlan
  readonly decode: DecodePlan
  readonly intrusion: IntrusionPlan
}

/** Under three minutes even on a busy machine: the shares of time plus one late round each. */
const fullPlan: Plan = {
  cpu: { streams: 64, stepsMs: [10, 2], windowMs: 1_200, rounds: 7, withinMs: 32_000 },
  overhead: { warmUp: 4_000, requests: 500, rounds: 12, withinMs: 10_000 },
  cost: { connections: 16, warmUpMs: 4_000, windowMs: 1_200, rounds: 7, withinMs: 18_000 },
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

/** Under 40 seconds: a check that it works, with rough figures. */
const quickPlan: Plan = {
  cpu: { streams: 64, stepsMs: [10], windowMs: 800, rounds: 2, withinMs: 6_000 },
  overhead: { warmUp: 1_500, requests: 200, rounds: 3, withinMs: 2_000 },
  cost: { connections: 16, warmUpMs: 1_500, windowMs: 600, rounds: 2, withinMs: 3_000 },
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

/** The sections in order, as named by `--section`. */
const sections = {
  tokens: (stage: Stage, plan: Plan) => cpuPerToken(stage, plan.cpu),
  latency: (stage: Stage, plan: Plan) => Effect.map(requestOverhead(stage, plan.overhead), Array.of),
  requests: (stage: Stage, plan: Plan) => Effect.map(requestCost(stage, plan.cost), Array.of),
  decode: (stage: Stage, plan: Plan) => Effect.map(decodeRate(stage, plan.decode), Array.of),
  prompts: (stage: Stage, plan: Plan) => Effect.map(promptIntrusion(stage, plan.intrusion), Array.of),
  organizations: (stage: Stage) => Effect.map(organizationsApart(stage), Array.of),
  transports: (stage: Stage, plan: Plan) => Effect.map(transports(stage, plan), Array.of),
}

type DemonstrationSection = keyof typeof sections
/** Without `organizations` and `transports`, which start more nodes and run when they are named. */
const usualSections: ReadonlyArray<DemonstrationSection> = [
  "tokens",
  "latency",
  "requests",
  "decode",
  "prompts",
]

const demonstrationSections: ReadonlyArray<DemonstrationSection> = [
  ...usualSections,
  "organizations",
  "transports",
]

export type TextSection = DemonstrationSection | SizedTextSection
/** The first ones run on the demonstration weights, the others on weights of a size. */
export const textSections: ReadonlyArray<TextSection> = [...demonstrationSections, ...sizedTextSections]

/** Fails if `--section` names a section for the other kind of weights. */
const sectionOf = <Name extends TextSection>(
  names: ReadonlyArray<Name>,
  section: TextSection | undefined,
): Effect.Effect<Name | undefined, ChildFailed> => {
  const found = names.find((name) => name === section)
  return section === undefined || found !== undefined
    ? Effect.succeed(found)
    : Effect.fail(
        new ChildFailed({
          child: "bench text",
          detail: `--section ${section}: here it is one of ${names.join(", ")}`,
        }),
      )
}

interface TextSuiteOptions {
  readonly quick: boolean
  readonly profileDir: string | undefined
  /** Runs only this section; all of them if absent. */
  readonly section: TextSection | undefined
  /** Undefined for the demonstration weights. */
  readonly size: TextSize | undefined
  readonly threads: number | undefined
}

export const textSuite = ({
  quick,
  profileDir,
  section,
  size,
  threads,
}: TextSuiteOptions): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    if (size === undefined) {
      const wanted = yield* sectionOf(demonstrationSections, section)
      return yield* demonstrationSuite({ quick, profileDir, section: wanted })
    }
    const wanted = yield* sectionOf(sizedTextSections, section)
    return yield* sizedTextSuite({
      quick,
      profileDir,
      section: wanted,
      size,
      threads: threads ?? availableParallelism(),
    })
  })

const demonstrationSuite = (options: {
  readonly quick: boolean
  /** Runs only this section; all of them if absent. */
  readonly section: DemonstrationSection | undefined
  readonly profileDir: string | undefined
}): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const plan = options.quick ? quickPlan : fullPlan
    const stage = yield* startStage(options.profileDir)
    const wanted = options.section === undefined ? usualSections : [options.section]
    const found = Effect.map(
      Effect.forEach(wanted, (name) => sections[name](stage, plan)),
      (each) => each.flat(),
    )
    return yield* Effect.raceFirst(found, stageDied(stage))
  })
