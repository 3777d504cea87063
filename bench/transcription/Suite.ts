// The transcription suite: its sections, their order and their duration.
import { suite } from "../support/Suite.ts"
import { type RealTimePlan, realTime } from "./RealTime.ts"
import { type SharesPlan, shares } from "./Shares.ts"
import { demonstrationStage, startStage } from "./Stage.ts"
import { type UploadsPlan, uploads } from "./Uploads.ts"

interface Plan {
  readonly realTime: RealTimePlan
  readonly shares: SharesPlan
  readonly uploads: UploadsPlan
}

/** Under three minutes on two cores. */
const fullPlan: Plan = {
  realTime: { seconds: 60, rounds: 9, withinMs: 60_000 },
  shares: { clients: 4, seconds: 4, forMs: 5_000, rounds: 5, withinMs: 40_000 },
  uploads: { rounds: 7, withinMs: 40_000 },
}

/** Under 40 seconds: a check that it works, with rough figures. */
const quickPlan: Plan = {
  realTime: { seconds: 20, rounds: 3, withinMs: 12_000 },
  shares: { clients: 4, seconds: 4, forMs: 3_000, rounds: 1, withinMs: 1_000 },
  uploads: { rounds: 2, withinMs: 8_000 },
}

/** On the demonstration weights. */
export const transcriptionSuite = suite({
  name: "transcription",
  plans: { full: fullPlan, quick: quickPlan },
  start: ({ profileDir }) => startStage({ ...demonstrationStage, profileDir }),
  sections: {
    speed: (stage, plan) => realTime(stage, plan.realTime),
    shares: (stage, plan) => shares(stage, plan.shares),
    uploads: (stage, plan) => uploads(stage, plan.uploads),
  },
})
