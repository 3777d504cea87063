// The text suite on generated weights: its sections, their order and their duration.
import { availableParallelism } from "node:os"
import { Effect } from "effect"
import { type TextSize, textWeights } from "../../sizes/text/TextWeights.ts"
import type { RoundsPlan } from "../../support/Rounds.ts"
import { type Suite, suite } from "../../support/Suite.ts"
import { generated } from "../../transcription/Sized.ts"
import { type ConstrainedPlan, constrained } from "./Constrained.ts"
import { type DefaultsPlan, defaults } from "./Defaults.ts"
import { type FirstTokenPlan, firstTokens } from "./FirstToken.ts"
import { loads } from "./Load.ts"
import { type LongPromptPlan, longPrompt } from "./LongPrompt.ts"
import { type NativePlan, nativeCalls } from "./NativeCalls.ts"
import { type PromptRatePlan, promptRate } from "./PromptRate.ts"
import { type RecoveryPlan, recovery } from "./Recovery.ts"
import { type ReplyRatePlan, replyRates } from "./ReplyRate.ts"
import { stageDied, startSizedStage } from "./Stage.ts"

interface Plan {
  readonly native: NativePlan
  readonly prompt: PromptRatePlan
  readonly replies: ReplyRatePlan
  readonly first: FirstTokenPlan
  readonly short: FirstTokenPlan
  readonly long: LongPromptPlan
  readonly defaults: DefaultsPlan
  readonly constrained: ConstrainedPlan
  readonly load: RoundsPlan
  readonly recovery: RecoveryPlan
}

/** Times of a window or a section grow with the size, because its steps do. */
const planOf = (rounds: number, scale: number): Plan => ({
  native: { rounds, streams: [1, 16], steps: 16 },
  prompt: { tokens: 500, rounds: rounds + 2, withinMs: 9_000 * scale },
  replies: { streams: [1, 4, 8, 16], windowMs: 1_200 * scale, rounds, withinMs: 9_000 * scale },
  first: { streams: [1, 8], promptTokens: 100, replyTokens: 8, rounds, withinMs: 11_000 * scale },
  short: { streams: [8, 16], promptTokens: 20, replyTokens: 8, rounds, withinMs: 8_000 * scale },
  long: { streams: 4, promptTokens: 1_000, quietMs: 1_200 * scale, rounds, withinMs: 20_000 * scale },
  defaults: { promptTokens: 250, streams: 4, windowMs: 1_000 * scale, rounds, withinMs: 16_000 * scale },
  constrained: { streams: [1, 8], windowMs: 1_500 * scale, rounds, withinMs: 20_000 * scale },
  load: { rounds, withinMs: 60_000 * scale },
  recovery: {
    streams: [1, 8],
    promptTokens: 100,
    replyTokens: 64,
    windowMs: 1_200 * scale,
    rounds,
    disturbedMs: 600_000,
  },
})

/** About three, five and ten minutes on two cores. */
const full: Readonly<Record<TextSize, Plan>> = {
  "0.2b": planOf(5, 1),
  "0.2b-q4": planOf(5, 1),
  "0.5b": planOf(4, 2),
  "0.5b-q4": planOf(4, 2),
  "1.5b": planOf(2, 4),
  "1.5b-q4": planOf(2, 4),
}

/** One round of each: a check that it works, with rough figures. */
const quick: Plan = {
  ...planOf(1, 0.5),
  recovery: { ...planOf(1, 0.5).recovery, disturbedMs: 10_000 },
}

export const sizedTextSuite = (size: TextSize): Suite =>
  suite({
    name: "text",
    plans: { full: full[size], quick },
    start: ({ profileDir, threads = availableParallelism() }) =>
      Effect.flatMap(
        generated(() => textWeights(size)),
        (weights) => startSizedStage({ weights, threads, profileDir }),
      ),
    died: stageDied,
    sections: {
      prompt: (stage, plan) => promptRate(stage, plan.prompt),
      replies: (stage, plan) => replyRates(stage, plan.replies),
      first: (stage, plan) => firstTokens(stage, plan.first),
      short: (stage, plan) => firstTokens(stage, plan.short),
      long: (stage, plan) => longPrompt(stage, plan.long),
      native: (stage, plan) => nativeCalls(stage, plan.native),
      defaults: (stage, plan) => defaults(stage, plan.defaults),
      constrained: (stage, plan) => constrained(stage, plan.constrained),
      load: (stage, plan) => loads(stage, plan.load),
      recovery: (stage, plan) => recovery(stage, plan.recovery),
    },
    // They take a minute and eleven.
    onlyNamed: ["load", "recovery"],
  })
