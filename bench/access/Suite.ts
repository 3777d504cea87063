// The access suite: the cost of authentication and of routing.
import { Effect } from "effect"
import { suite } from "../support/Suite.ts"
import { type RoutePlan, routing } from "./Routing.ts"
import { type VerificationPlan, verification } from "./Verification.ts"

interface Plan {
  readonly routing: RoutePlan
  readonly verification: VerificationPlan
}

/** Under a minute. */
const full: Plan = {
  routing: { perSecond: 1_000, seconds: 5, rounds: 5, withinMs: 30_000 },
  verification: { fresh: 1_000, cached: 100_000, users: 1_000_000, rounds: 5, withinMs: 20_000 },
}

/** Under 15 seconds. */
const quick: Plan = {
  routing: { perSecond: 1_000, seconds: 2, rounds: 2, withinMs: 6_000 },
  verification: { fresh: 300, cached: 20_000, users: 200_000, rounds: 2, withinMs: 6_000 },
}

export const accessSuite = suite({
  name: "access",
  plans: { full, quick },
  start: () => Effect.void,
  sections: {
    routing: (_, plan) => routing(plan.routing),
    verification: (_, plan) => verification(plan.verification),
  },
})
