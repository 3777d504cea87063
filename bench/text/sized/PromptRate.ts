// A prompt alone: its tokens a second until its first token, through the node and through the bare loop.
import { Effect } from "effect"
import { atLeast, besideFloor, figureOf, ofEach, type Part, readingsOf } from "#harness/report/Figure.ts"
import type { ChildFailed } from "../../support/Child.ts"
import { type RoundsPlan, repeatRounds } from "../../support/Rounds.ts"
import { promptOnce, type SizedStage } from "./Stage.ts"

export interface PromptRatePlan extends RoundsPlan {
  /** At most one batch, so that the bare loop evaluates the prompt in one. */
  readonly tokens: number
}

const perSecond = (tokens: number, firstTokenMs: number): number => (tokens / firstTokenMs) * 1000

export const promptRate = (stage: SizedStage, plan: PromptRatePlan): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const round = Effect.gen(function* () {
      const prompts = stage.serials.prompts(1, plan.tokens)
      const [bareMs = Number.NaN] = yield* stage.bare.ask("firstTokens", { prompts, tokens: 1 })
      const { firstTokenMs, tokens } = yield* promptOnce(stage, prompts[0] ?? "")
      return { tokens, bare: perSecond(tokens, bareMs), node: perSecond(tokens, firstTokenMs) }
    })
    const rounds = yield* repeatRounds(plan, () => round)
    const bare = rounds.map((reading) => reading.bare)
    const node = rounds.map((reading) => reading.node)
    return {
      title: `A prompt alone, ${stage.threads} threads`,
      method:
        "prompt tokens divided by the time from the request to the first token, alternately; the bare loop evaluates " +
        "the prompt in one batch",
      figures: [
        figureOf(ofEach(rounds, "prompt", "tokens", ({ tokens }) => tokens)),
        ...besideFloor(
          readingsOf("bare loop", "tokens/s", bare),
          readingsOf("through HTTP streaming", "tokens/s", node),
          atLeast(0.95),
        ),
      ],
    }
  })
