// The speech suite: its sections, their order and their duration.
import { suite } from "../support/Suite.ts"
import { type CostPlan, cost } from "./Cost.ts"
import { type FirstAudioPlan, firstAudio } from "./FirstAudio.ts"
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

/** Under 40 seconds: a check that it works, with rough figures. */
const quickPlan: Plan = {
  firstAudio: { requests: 6, rounds: 2, withinMs: 10_000 },
  underruns: { streams: [1, 8], characters: 600, seconds: 4, rounds: 1, withinMs: 1_000 },
  cost: { seconds: 20, rounds: 2, withinMs: 8_000 },
}

/** On the demonstration weights. */
export const speechSuite = suite({
  name: "speech",
  plans: { full: fullPlan, quick: quickPlan },
  start: ({ profileDir }) => startStage(profileDir),
  sections: {
    first: (stage, plan) => firstAudio(stage, plan.firstAudio),
    underruns: (stage, plan) => underruns(stage, plan.underruns),
    cost: (stage, plan) => cost(stage, plan.cost),
  },
})
