// A node whose catalog names no number of threads, against nodes whose catalog names 1, 2, …. Each number has its own
// node, because the models of one node share its threads; one node works at a time.

import { Effect, type Scope } from "effect"
import type { Part } from "#harness/report/Figure.ts"
import type { ChildFailed } from "../../support/Child.ts"
import { besideCounts, countsTo } from "../../support/DefaultThreads.ts"
import { measuringMs } from "../../support/ModelLoads.ts"
import { type RoundsPlan, repeatRounds } from "../../support/Rounds.ts"
import { promptOnce, replyRate, type Served, type SizedStage, startServed } from "./Stage.ts"

export interface DefaultsPlan extends RoundsPlan {
  readonly promptTokens: number
  readonly streams: number
  readonly windowMs: number
}

interface Reading {
  readonly prompt: number
  readonly one: number
  readonly several: number
}

const read = (stage: SizedStage, served: Served, plan: DefaultsPlan): Effect.Effect<Reading, ChildFailed> =>
  Effect.gen(function* () {
    const { serials } = stage
    const { firstTokenMs, tokens } = yield* promptOnce(served, serials.prompts(1, plan.promptTokens)[0] ?? "")
    const one = yield* replyRate(served, serials.prompts(1, 8), plan.windowMs)
    const several = yield* replyRate(served, serials.prompts(plan.streams, 8), plan.windowMs)
    return { prompt: (tokens / firstTokenMs) * 1000, one, several }
  })

export const defaults = (
  stage: SizedStage,
  plan: DefaultsPlan,
): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const { client, serials, threads, weights } = stage
    const byDefault = yield* startServed(client, serials, { weights })
    const others: Array<{ readonly threads: number; readonly served: Served }> = []
    for (const count of countsTo(threads)) {
      const served =
        count === threads ? stage : yield* startServed(client, serials, { weights, threads: count })
      others.push({ threads: count, served })
    }
    // A node that measures in the middle of another's reading disturbs it, and its own choice would be that of a busy machine.
    yield* Effect.sleep(measuringMs)
    const rounds = yield* repeatRounds(plan, () =>
      Effect.forEach([byDefault, ...others.map(({ served }) => served)], (served) =>
        read(stage, served, plan),
      ),
    )
    const counts = others.map((each) => each.threads)
    const compared = (name: string, part: keyof Reading) =>
      besideCounts(
        `${name}: `,
        "tokens/s",
        counts,
        rounds.map((readings) => readings.map((reading) => reading[part])),
      )
    return {
      title: "The default number of threads",
      method: `a node each, alternately: a prompt of ${plan.promptTokens} tokens, then replies for ${plan.windowMs} ms`,
      figures: [
        ...compared("prompt", "prompt"),
        ...compared("1 reply", "one"),
        ...compared(`${plan.streams} replies`, "several"),
      ],
    }
  })
