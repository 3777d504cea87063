// The weights' speed through the node: a file, beside the engine's native calls alone.
import { Effect } from "effect"
import { pairedRatios } from "#harness/figures/Statistics.ts"
import { figure, type Part } from "#harness/report/Figure.ts"
import type { ChildFailed } from "../support/Child.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import type { Stage } from "./Stage.ts"

export interface RealTimePlan extends RoundsPlan {
  readonly seconds: number
}

export const realTime = (stage: Stage, plan: RealTimePlan): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const { seconds } = plan
    const calls = yield* stage.bare.ask("prepare", seconds)
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
    const rate = (part: keyof (typeof rounds)[number]) => of(part).map((ms) => ms / 1000 / seconds)
    return {
      title: `Real-time factor, a file of ${seconds} s, ${calls} native calls`,
      method:
        "wall time alternately: the recogniser's native calls alone (a decoder call a token, the same feeds, ONNX " +
        "Runtime's own settings, one thread), the engine without a gateway, and a synchronous request with upload, " +
        "decoding and answer",
      figures: [
        figure("native calls alone", "s/s", rate("bare")),
        figure("engine alone", "s/s", rate("engine")),
        figure("through the node", "s/s", rate("node")),
        figure("  processor time of engine and decoder processes", "s/s", rate("engineCpu")),
        figure("through the node, four files at once, each", "s/s", rate("four")),
        figure("speed of the node over the engine alone", "times", pairedRatios(of("engine"), of("node"))),
        figure(
          "speed of the node over the native calls alone",
          "times",
          pairedRatios(of("bare"), of("node")),
          {
            is: "at least",
            value: 0.95,
          },
        ),
      ],
    }
  })
