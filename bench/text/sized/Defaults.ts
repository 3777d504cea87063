// A node whose catalog names no number of threads, against nodes whose catalog names 1, 2, …. Each number has its own
// node, because the models of one node share its threads; one node works at a time.
import { Effect, type Scope } from "effect"
import { median, pairedRatios } from "#harness/figures/Statistics.ts"
import { type Figure, figure, type Part } from "#harness/report/Figure.ts"
import type { ChildFailed } from "../../support/Child.ts"
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

/** All numbers up to four; beyond, powers of two and the maximum, because each is a node with its own context. */
const threadCounts = (most: number): ReadonlyArray<number> =>
  Array.from({ length: most }, (_, at) => at + 1).filter(
    (count) => count <= 4 || count === most || Number.isInteger(Math.log2(count)),
  )

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
    for (const count of threadCounts(threads)) {
      const served =
        count === threads ? stage : yield* startServed(client, serials, { weights, threads: count })
      others.push({ threads: count, served })
    }
    const rounds = yield* repeatRounds(plan, () =>
      Effect.forEach([byDefault, ...others.map(({ served }) => served)], (served) =>
        read(stage, served, plan),
      ),
    )
    const figures: Array<Figure> = []
    const compare = (name: string, part: keyof Reading) => {
      const valuesOf = (at: number) => rounds.map((readings) => readings[at]?.[part] ?? Number.NaN)
      const subject = valuesOf(0)
      const handSet = others.map(({ threads: count }, at) => ({ count, values: valuesOf(at + 1) }))
      const best = handSet.toSorted((a, b) => median(b.values) - median(a.values))[0]
      figures.push(
        ...handSet.map(({ count, values }) => figure(`${name}: threads ${count}`, "tokens/s", values)),
        figure(`${name}: catalog without threads`, "tokens/s", subject),
        figure(
          `  over the best, threads ${best?.count ?? 0}`,
          "x",
          pairedRatios(subject, best?.values ?? []),
          { is: "at least", value: 0.95 },
        ),
      )
    }
    compare("prompt", "prompt")
    compare("1 reply", "one")
    compare(`${plan.streams} replies`, "several")
    return {
      title: "The default number of threads",
      method: `a node each, alternately: a prompt of ${plan.promptTokens} tokens, then replies for ${plan.windowMs} ms`,
      figures,
    }
  })
