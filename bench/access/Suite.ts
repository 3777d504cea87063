// The access suite: the cost of authentication and of routing.
import { Effect, type Scope } from "effect"
import type { ChildFailed } from "../support/Child.ts"
import type { Section } from "../support/Findings.ts"
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

export const accessSuite = (options: {
  readonly quick: boolean
}): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const plan = options.quick ? quick : full
    return [yield* routing(plan.routing), yield* verification(plan.verification)]
  })
