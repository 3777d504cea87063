// The effect of a long prompt on running replies, and of the replies on the prompt.
import { Effect } from "effect"
import { figure, type Part } from "#harness/report/Figure.ts"
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
    type Round = (typeof rounds)[number]
    const of = (what: string, unit: string, part: (round: Round) => number) =>
      figure(what, unit, rounds.map(part))
    const ratio = (what: string, value: number, part: (round: Round) => number) =>
      figure(what, "x", rounds.map(part), { is: "at most", value })
    return {
      title: `A long prompt beside ${plan.streams} running replies, ${stage.threads} threads`,
      method:
        `gaps between arrivals on the running replies, ${plan.quietMs} ms without the prompt and then with it; ` +
        "another prompt of the same length alone before",
      figures: [
        of("prompt", "tokens", ({ tokens }) => tokens),
        of("quiet gap p99", "ms", ({ quietMs }) => quietMs),
        of("gap while the prompt enters, p50", "ms", ({ gapP50Ms }) => gapP50Ms),
        of("gap while the prompt enters, longest", "ms", ({ longestMs }) => longestMs),
        ratio("  longest over quiet p99", 3, ({ longestMs, quietMs }) => longestMs / quietMs),
        of("first token of the prompt alone", "ms", ({ aloneMs }) => aloneMs),
        of("first token of the prompt beside the replies", "ms", ({ besideMs }) => besideMs),
        ratio("  over its time alone", 1.5, ({ aloneMs, besideMs }) => besideMs / aloneMs),
      ],
    }
  })
