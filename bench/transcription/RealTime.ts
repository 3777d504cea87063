// The weights' speed through the node: a file, beside the engine's native calls alone.
import { Effect } from "effect"
import { atLeast, figureOf, type Part, readingsOf, speedOver } from "#harness/report/Figure.ts"
import type { ChildFailed } from "../support/Child.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import type { Stage } from "./Stage.ts"

export interface RealTimePlan extends RoundsPlan {
  readonly seconds: number
}

export const realTime = (stage: Stage, plan: RealTimePlan): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const { seconds } = plan
    const count = yield* stage.bare.ask("prepare", seconds)
    yield* stage.bare.ask("calls", seconds)
    const { target } = stage.gateway
    const rounds = yield* repeatRounds(plan, () =>
      Effect.gen(function* () {
        const bare = yield* stage.bare.ask("calls", seconds)
        const engine = yield* stage.bare.ask("engine", seconds)
        const beforeUs = yield* stage.gateway.engineCpuUs
        const [answer] = yield* stage.speakers.ask("hear", { target, seconds, count: 1 })
        const engineCpu = ((yield* stage.gateway.engineCpuUs) - beforeUs) / 1000
        const four = (yield* stage.speakers.ask("together", { target, seconds, count: 4 })) / 4
        return { bare, engine, engineCpu, four, node: answer?.status === 200 ? answer.elapsedMs : Number.NaN }
      }),
    )
    const of = (part: keyof (typeof rounds)[number]) => rounds.map((round) => round[part])
    const rate = (name: string, part: keyof (typeof rounds)[number]) =>
      readingsOf(
        name,
        "s/s",
        of(part).map((ms) => ms / 1000 / seconds),
      )
    const calls = rate("native calls alone", "bare")
    const engine = rate("engine alone", "engine")
    const node = rate("through the node", "node")
    return {
      title: `Real-time factor, a file of ${seconds} s, ${count} native calls`,
      method:
        "wall time alternately: the recogniser's native calls alone (a decoder call a token, the same feeds, ONNX " +
        "Runtime's own settings, one thread), the engine without a gateway, and a synchronous request with upload, " +
        "decoding and answer",
      figures: [
        figureOf(calls),
        figureOf(engine),
        figureOf(node),
        speedOver(node, engine),
        speedOver(node, calls, atLeast(0.95)),
        figureOf(rate("processor time of engine and decoder processes", "engineCpu")),
        figureOf(rate("through the node, four files at once, each", "four")),
      ],
    }
  })
