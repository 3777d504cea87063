// The cost of authentication at an edge: a session token seen before, a new one, a forged one, the rate
// limit, and the memory of many users. Measured in a process of its own (verifierMain).
import { Effect, type Scope } from "effect"
import { atMost, figure, type Part } from "#harness/report/Figure.ts"
import { type ChildFailed, startChild } from "../support/Child.ts"
import type { Commands } from "../support/CommandChannel.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import type { Verified, Work } from "./verifierMain.ts"

export interface VerificationPlan extends RoundsPlan, Work {}

type Verifier = { readonly verify: (work: Work) => Promise<Verified> } & Commands

export const verification = (plan: VerificationPlan): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const verifier = yield* startChild<Verifier>({
      name: "verifier",
      entry: new URL("./verifierMain.ts", import.meta.url),
    })
    const { cached, fresh, users } = plan
    const work = { cached, fresh, users }
    // The first round warms up the code and is not counted.
    yield* verifier.ask("verify", work)
    const rounds = yield* repeatRounds(plan, () => verifier.ask("verify", work))
    const of = (part: keyof Verified) => rounds.map((round) => round[part])
    return {
      title: "Knowing who calls: processor time for one credential",
      method:
        `user and system time of the process, all its threads, over ${cached} checks of one token and ${fresh} tokens ` +
        `that are new, the key behind them known; the rate limit over ${users} users with a request each, their names ` +
        "included in the bytes",
      figures: [
        figure("a token seen before", "µs", of("cachedUs"), atMost(10)),
        figure("a new token", "µs", of("freshUs"), atMost(500)),
        figure("a forged token", "µs", of("forgedUs"), atMost(500)),
        figure("the rate limit, a user's first request", "µs", of("admitUs")),
        figure("memory of a user", "bytes", of("userBytes")),
      ],
    }
  })
