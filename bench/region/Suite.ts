// The region suite: what nodes lose by sharing a database.
import { Effect } from "effect"
import { suite } from "../support/Suite.ts"
import { type RegionPlan, throughput } from "./Region.ts"

/** Two minutes. */
const full: RegionPlan = { forMs: 3_000, rounds: 5, withinMs: 100_000 }

/** 40 seconds. */
const quick: RegionPlan = { forMs: 1_500, rounds: 1, withinMs: 10_000 }

export const regionSuite = suite({
  name: "region",
  plans: { full, quick },
  start: () => Effect.void,
  sections: { throughput: (_, plan) => throughput(plan) },
})
