// The cost of a second of speech: computing time of the engine, and encoding in the gateway as a share of a core.
import { Effect } from "effect"
import { atMost, figure, type Part } from "#harness/report/Figure.ts"
import type { ChildFailed } from "../support/Child.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { scripted, sentence, spoken, textOf } from "./Models.ts"
import { hearAll, type Stage } from "./Stage.ts"

export interface CostPlan extends RoundsPlan {
  readonly seconds: number
}

/** Milliseconds of CPU time of the gateway process, all its threads, for one request. */
const gatewayCpuMs = (stage: Stage, work: Effect.Effect<unknown, ChildFailed>) =>
  Effect.gen(function* () {
    const before = yield* stage.gateway.child.ask("cpu")
    yield* work
    const after = yield* stage.gateway.child.ask("cpu")
    return (after.cpuUs - before.cpuUs) / 1000
  })

export const cost = (stage: Stage, plan: CostPlan): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const script = { pieces: plan.seconds, samples: 24_000, pieceMs: 0 }
    const stream = (format: "pcm" | "opus") =>
      hearAll(stage, format, [scripted(script, { stream: true, response_format: format })])
    const batch = (format: string) => {
      const ask = {
        target: stage.gateway.target,
        format: "pcm",
        body: scripted(script, { response_format: format }),
      } as const
      return stage.players.ask("hear", [ask])
    }
    const rounds = yield* repeatRounds(plan, () =>
      Effect.gen(function* () {
        const share = (cpuMs: number) => (cpuMs / (plan.seconds * 1000)) * 100
        const pcm = share(yield* gatewayCpuMs(stage, stream("pcm")))
        const opus = share(yield* gatewayCpuMs(stage, stream("opus")))
        const mp3 = share(yield* gatewayCpuMs(stage, batch("mp3")))
        const bare = yield* stage.bare.ask("once", textOf(1_000))
        const short = yield* stage.bare.ask("once", sentence)
        const engineBefore = yield* stage.gateway.engineCpuUs
        const [played] = yield* hearAll(stage, "pcm", [spoken(textOf(1_000), "pcm")])
        const engineUs = (yield* stage.gateway.engineCpuUs) - engineBefore
        return {
          pcm,
          opus,
          mp3,
          long: bare.realTimeFactor,
          short: short.realTimeFactor,
          engine: engineUs / 1000 / (played?.audioMs ?? Number.NaN),
        }
      }),
    )
    const of = (part: keyof (typeof rounds)[number]) => rounds.map((round) => round[part])
    return {
      title: `Cost of a second of speech, replies of ${plan.seconds} s (encoding), 1,000 characters (computing)`,
      method:
        "user and system time of the gateway process with its codec threads over one reply of the scripted engine, " +
        "divided by the reply's length: the share of a core that one listener takes; the real-time factor is the " +
        "bare engine's computing time over the speech, beside it the processor time of the node's engine processes",
      figures: [
        figure("pcm stream", "% of a core", of("pcm")),
        figure("opus stream", "% of a core", of("opus"), atMost(5)),
        figure("mp3 batch", "% of a core", of("mp3"), atMost(5)),
        figure("real-time factor, 1,000 characters", "s/s", of("long")),
        figure("real-time factor, one sentence", "s/s", of("short")),
        figure("engine processes, processor time", "s/s", of("engine")),
      ],
    }
  })
