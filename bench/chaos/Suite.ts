// The chaos suite: how often each engine process is harmed, and for how long.
import { suite } from "../support/Suite.ts"
import { startStage } from "./Stage.ts"
import { everyHarm, type TrialsPlan, trials } from "./Trials.ts"

/** 600 faults: more than half an hour on two cores. */
const full: TrialsPlan = { harms: everyHarm, rounds: 50, withinMs: 45 * 60_000, quietMs: 500 }

/**
 * 12 faults: a check that it works, with rough figures. The quiet time is about as long as the faults: the 99th percentile
 * of 50 answers is the slowest of them, and compared with that of 150 answers every fault would look worse than it is.
 */
const quick: TrialsPlan = { harms: everyHarm, rounds: 1, withinMs: 0, quietMs: 1_500 }

export const chaosSuite = suite({
  name: "chaos",
  plans: { full, quick },
  start: ({ profileDir }) => startStage(profileDir),
  sections: { faults: trials },
})
