// Time to first token when prompts that share no prefix arrive together, through the node and through the bare loop, and how long
// the node's replies that have begun wait for the other prompts.

import { Effect } from "effect"
import { median } from "#harness/figures/Statistics.ts"
import { atMost, besideFloor, type Figure, figure, type Part, readingsOf } from "#harness/report/Figure.ts"
import type { ChildFailed } from "../../support/Child.ts"
import { type RoundsPlan, repeatRounds } from "../../support/Rounds.ts"
import { runToEnd, type SizedStage } from "./Stage.ts"

export interface FirstTokenPlan extends RoundsPlan {
  readonly streams: ReadonlyArray<number>
  readonly promptTokens: number
  /** Tokens of each reply: replies that have begun run beside the prompts that have not. */
  readonly replyTokens: number
}

const goalOf = (streams: number) => atMost(streams === 1 ? 1.1 : 1.2)

/** The median stream and the last one of a round. */
const summary = (firstMs: ReadonlyArray<number>) => ({ middle: median(firstMs), last: Math.max(...firstMs) })

export const firstTokens = (stage: SizedStage, plan: FirstTokenPlan): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const figures: Array<Figure> = []
    for (const streams of plan.streams) {
      const rounds = yield* repeatRounds(plan, () =>
        Effect.gen(function* () {
          const prompts = stage.serials.prompts(streams, plan.promptTokens)
          const bare = yield* stage.bare.ask("firstTokens", { prompts, tokens: plan.replyTokens })
          const { firstEventMs, gaps } = yield* runToEnd(stage, prompts, plan.replyTokens)
          return { bare: summary(bare), node: summary(firstEventMs), gapMs: gaps.max }
        }),
      )
      const rows = (name: string, part: "middle" | "last") => {
        const bare = rounds.map((reading) => reading.bare[part])
        const node = rounds.map((reading) => reading.node[part])
        return besideFloor(
          readingsOf(`${name}: bare loop`, "ms", bare),
          readingsOf(`${name}: through HTTP streaming`, "ms", node),
          goalOf(streams),
        )
      }
      if (streams === 1) figures.push(...rows("1 prompt", "middle"))
      else
        figures.push(
          ...rows(`${streams} prompts, median`, "middle"),
          ...rows(`${streams} prompts, last`, "last"),
          figure(
            `${streams} prompts: longest gap of a reply through HTTP streaming`,
            "ms",
            rounds.map(({ gapMs }) => gapMs),
          ),
        )
    }
    return {
      title: `First token of prompts at once, ${plan.promptTokens} tokens each, ${stage.threads} threads`,
      method: `from the request to the first token; replies of ${plan.replyTokens} tokens; no common prefix; alternately`,
      figures,
    }
  })
