// The text suite on generated weights: its sections, their order and their duration.
import { Effect, type Scope } from "effect"
import { type TextSize, textWeights } from "../../sizes/text/TextWeights.ts"
import { ChildFailed } from "../../support/Child.ts"
import type { Section } from "../../support/Findings.ts"
import { type ConstrainedPlan, constrained } from "./Constrained.ts"
import { type DefaultsPlan, defaults } from "./Defaults.ts"
import { type FirstTokenPlan, firstTokens } from "./FirstToken.ts"
import { type LongPromptPlan, longPrompt } from "./LongPrompt.ts"
import { type NativePlan, nativeCalls } from "./NativeCalls.ts"
import { type PromptRatePlan, promptRate } from "./PromptRate.ts"
import { type ReplyRatePlan, replyRates } from "./ReplyRate.ts"
import { type SizedStage, type SizedStageOptions, stageDied, startSizedStage } from "./Stage.ts"

interface Plan {
  readonly native: NativePlan
  readonly prompt: PromptRatePlan
  readonly replies: ReplyRatePlan
  readonly first: FirstTokenPlan
  readonly long: LongPromptPlan
  readonly defaults: DefaultsPlan
  readonly constrained: ConstrainedPlan
}

/** Times of a window or a section grow with the size, because its steps do. */
const planOf = (rounds: number, scale: number): Plan => ({
  native: { rounds, streams: [1, 16], steps: 16 },
  prompt: { tokens: 500, rounds: rounds + 2, withinMs: 9_000 * scale },
  replies: { streams: [1, 4, 8, 16], windowMs: 1_200 * scale, rounds, withinMs: 9_000 * scale },
  first: { streams: [1, 8], promptTokens: 100, replyTokens: 8, rounds, withinMs: 11_000 * scale },
  long: { streams: 4, promptTokens: 1_000, quietMs: 1_200 * scale, rounds, withinMs: 20_000 * scale },
  defaults: { promptTokens: 250, streams: 4, windowMs: 1_000 * scale, rounds, withinMs: 16_000 * scale },
  constrained: { streams: [1, 8], windowMs: 1_500 * scale, rounds, withinMs: 20_000 * scale },
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
const quick: Plan = planOf(1, 0.5)

/** The sections in order, as named by `--section`. */
const sections = {
  prompt: (stage: SizedStage, plan: Plan) => Effect.map(promptRate(stage, plan.prompt), Array.of),
  replies: (stage: SizedStage, plan: Plan) => Effect.map(replyRates(stage, plan.replies), Array.of),
  first: (stage: SizedStage, plan: Plan) => Effect.map(firstTokens(stage, plan.first), Array.of),
  long: (stage: SizedStage, plan: Plan) => Effect.map(longPrompt(stage, plan.long), Array.of),
  native: (stage: SizedStage, plan: Plan) => nativeCalls(stage, plan.native),
  defaults: (stage: SizedStage, plan: Plan) => Effect.map(defaults(stage, plan.defaults), Array.of),
  constrained: (stage: SizedStage, plan: Plan) => Effect.map(constrained(stage, plan.constrained), Array.of),
}

export type SizedTextSection = keyof typeof sections
export const sizedTextSections: ReadonlyArray<SizedTextSection> = [
  "prompt",
  "replies",
  "first",
  "long",
  "native",
  "defaults",
  "constrained",
]

export const sizedTextSuite = (options: {
  readonly size: TextSize
  readonly quick: boolean
  readonly threads: number
  readonly profileDir: string | undefined
  /** Runs only this section; all of them if absent. */
  readonly section: SizedTextSection | undefined
}): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const { profileDir, section, size, threads } = options
    const plan = options.quick ? quick : full[size]
    const weights = yield* Effect.tryPromise({
      try: () => textWeights(size),
      catch: (cause) => new ChildFailed({ child: "generated weights", detail: String(cause) }),
    })
    const settings: SizedStageOptions = { weights, threads, profileDir }
    const stage = yield* startSizedStage(settings)
    const found = Effect.map(
      Effect.forEach(section === undefined ? sizedTextSections : [section], (name) =>
        sections[name](stage, plan),
      ),
      (each) => each.flat(),
    )
    return yield* Effect.raceFirst(found, stageDied(stage))
  })
