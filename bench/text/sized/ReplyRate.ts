// Concurrent replies: their tokens a second once each has begun, through the node and through the bare loop.

import { Effect } from "effect"
import { atLeast, besideFloor, type Figure, type Part, readingsOf } from "#harness/report/Figure.ts"
import type { ChildFailed } from "../../support/Child.ts"
import { type RoundsPlan, repeatRounds } from "../../support/Rounds.ts"
import { replyRate, type SizedStage } from "./Stage.ts"

export interface ReplyRatePlan extends RoundsPlan {
  readonly streams: ReadonlyArray<number>
  readonly windowMs: number
}

/** Short, because the measurement begins after the prompts. */
const promptTokens = 8

/** A single stream gains nothing from steps shared by all streams. */
const goalOf = (streams: number) => atLeast(streams === 1 ? 0.95 : 1)

export const replyRates = (stage: SizedStage, plan: ReplyRatePlan): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const figures: Array<Figure> = []
    for (const streams of plan.streams) {
      const rounds = yield* repeatRounds(plan, () =>
        Effect.gen(function* () {
          const prompts = stage.serials.prompts(streams, promptTokens)
          const bare = yield* stage.bare.ask("replies", { prompts, windowMs: plan.windowMs })
          return { bare, node: yield* replyRate(stage, prompts, plan.windowMs) }
        }),
      )
      const bare = rounds.map((reading) => reading.bare)
      const node = rounds.map((reading) => reading.node)
      const name = streams === 1 ? "1 stream" : `${streams} streams`
      figures.push(
        ...besideFloor(
          readingsOf(`${name}: bare loop`, "tokens/s", bare),
          readingsOf(`${name}: through HTTP streaming`, "tokens/s", node),
          goalOf(streams),
        ),
      )
    }
    return {
      title: `Replies, ${stage.threads} threads`,
      method:
        `tokens of all replies in ${plan.windowMs} ms from the moment when each has its first token; ` +
        `prompts of ${promptTokens} tokens; alternately`,
      figures,
    }
  })
