// Text on the card through the node, beside node-llama-cpp's own loop on the same card: tokens a second and first tokens.

import { Effect } from "effect"
import { figure } from "#harness/report/Figure.ts"
import { type FirstTokenPlan, firstTokens } from "../text/sized/FirstToken.ts"
import { type ReplyRatePlan, replyRates } from "../text/sized/ReplyRate.ts"
import { stageDied, startSizedStage } from "../text/sized/Stage.ts"
import { type CardSize, type Measure, settingsOf, threads, weightsOf } from "./Stage.ts"

export interface TextPlan {
  readonly size: CardSize
  readonly replies: ReplyRatePlan
  readonly first: FirstTokenPlan
}

export const textOnCard: Measure<TextPlan> = (stage, { size, ...plan }) =>
  Effect.gen(function* () {
    const { gpu, profileDir } = stage
    const beganMs = performance.now()
    const { path } = yield* weightsOf(size)
    const generatedMs = performance.now()
    const sized = yield* startSizedStage({
      weights: path,
      threads,
      profileDir,
      gpu,
      settings: settingsOf(stage),
    })
    const startedMs = performance.now()
    const measuring = Effect.gen(function* () {
      return [yield* replyRates(sized, plan.replies), yield* firstTokens(sized, plan.first)]
    })
    const sections = yield* Effect.raceFirst(measuring, stageDied(sized))
    const start = {
      title: "Start",
      method:
        "the weights generated or found; then a node and a bare loop with them on the card, and the replies that warm them up",
      figures: [
        figure("weights", "s", [(generatedMs - beganMs) / 1_000]),
        figure("node and bare loop, warm", "s", [(startedMs - generatedMs) / 1_000]),
      ],
    }
    return [start, ...sections].map((section) => ({
      ...section,
      title: `${size} on the card: ${section.title}`,
    }))
  })
