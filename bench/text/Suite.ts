// The text suite: its sections, their order and their duration.
import { suite } from "../support/Suite.ts"
import { type CpuPlan, cpuPerToken } from "./CpuPerToken.ts"
import { type DecodePlan, decodeRate } from "./DecodeRate.ts"
import { organizationsApart } from "./Organizations.ts"
import { type IntrusionPlan, promptIntrusion } from "./PromptIntrusion.ts"
import { type CostPlan, requestCost } from "./RequestCost.ts"
import { type OverheadPlan, requestOverhead } from "./RequestOverhead.ts"
import { stageDied, startStage } from "./Stage.ts"
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
  overhead: { warmUp: 4_000, requests: 500, blockMs: 8_000, rounds: 12, withinMs: 10_000 },
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
  overhead: { warmUp: 1_500, requests: 200, blockMs: 3_000, rounds: 3, withinMs: 2_000 },
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

/** On the demonstration weights. */
export const textSuite = suite({
  name: "text",
  plans: { full: fullPlan, quick: quickPlan },
  start: ({ profileDir }) => startStage(profileDir),
  died: stageDied,
  sections: {
    tokens: (stage, plan) => cpuPerToken(stage, plan.cpu),
    latency: (stage, plan) => requestOverhead(stage, plan.overhead),
    requests: (stage, plan) => requestCost(stage, plan.cost),
    decode: (stage, plan) => decodeRate(stage, plan.decode),
    prompts: (stage, plan) => promptIntrusion(stage, plan.intrusion),
    organizations: (stage) => organizationsApart(stage),
    transports,
  },
  // They start more nodes.
  onlyNamed: ["organizations", "transports"],
})
