// The effect of a long prompt on running replies, and of the replies on the prompt.
import { Effect } from "effect"
import { atMost, besideFloor, figureOf, ofEach, type Part } from "#harness/report/Figure.ts"
import type { ChildFailed } from "../../support/Child.ts"
import { type RoundsPlan, repeatRounds } from "../../support/Rounds.ts"
import { besideReplies, closeWindow, promptOnce, type SizedStage } from "./Stage.ts"

export interface LongPromptPlan extends RoundsPlan {
  readonly streams: number
  readonly promptTokens: number
  readonly quietMs: number
}

const replyPromptTokens = 8

/** Time after the prompt's first token, in multiples of the quiet p99, so that the gap which it interrupted has ended too. */
const tail = 3

const takeRound = (stage: SizedStage, plan: LongPromptPlan) =>
  Effect.gen(function* () {
    const [alonePrompt = "", prompt = ""] = stage.serials.prompts(2, plan.promptTokens)
    const alone = yield* promptOnce(stage, alonePrompt)
    const replies = stage.serials.prompts(plan.streams, replyPromptTokens)
    const { entered, entering, quiet } = yield* besideReplies(
      stage,
      replies,
      Effect.gen(function* () {
        yield* Effect.sleep(plan.quietMs)
        const quiet = yield* closeWindow(stage)
        const entered = yield* promptOnce(stage, prompt)
        yield* Effect.sleep(tail * quiet.gaps.p99)
        return { quiet, entered, entering: yield* closeWindow(stage) }
      }),
    )
    return {
      tokens: entered.tokens,
      quietMs: quiet.gaps.p99,
      gapP50Ms: entering.gaps.p50,
      longestMs: entering.gaps.max,
      aloneMs: alone.firstTokenMs,
      besideMs: entered.firstTokenMs,
    }
  })

export const longPrompt = (stage: SizedStage, plan: LongPromptPlan): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const rounds = yield* repeatRounds(plan, () => takeRound(stage, plan))
    const of = (name: string, part: keyof (typeof rounds)[number]) =>
      ofEach(rounds, name, part === "tokens" ? "tokens" : "ms", (round) => round[part])
    const quiet = of("quiet gap p99", "quietMs")
    const longest = of("gap while the prompt enters, longest", "longestMs")
    const alone = of("first token of the prompt alone", "aloneMs")
    return {
      title: `A long prompt beside ${plan.streams} running replies, ${stage.threads} threads`,
      method:
        `gaps between arrivals on the running replies, ${plan.quietMs} ms without the prompt and then with it; ` +
        "another prompt of the same length alone before",
      figures: [
        figureOf(of("prompt", "tokens")),
        figureOf(of("gap while the prompt enters, p50", "gapP50Ms")),
        ...besideFloor(quiet, longest, atMost(3)),
        ...besideFloor(alone, of("first token of the prompt beside the replies", "besideMs"), atMost(1.5)),
      ],
    }
  })
