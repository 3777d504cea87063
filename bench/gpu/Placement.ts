// A model on the card: what it claims, what the driver counts for it, and what is left when it is unloaded.

import { Effect } from "effect"
import { atMost, figure } from "#harness/report/Figure.ts"
import { asked } from "../support/Ask.ts"
import { startGateway } from "../support/Gateway.ts"
import { promptOf } from "../text/sized/Models.ts"
import { untilUsedAtMost, usedByMib, usedMib } from "./Card.ts"
import {
  answerSeconds,
  type CardSize,
  engineOf,
  type Measure,
  onDemand,
  operatorIn,
  settingsOf,
  weightsOf,
} from "./Stage.ts"

export interface PlacementPlan {
  readonly size: CardSize
  readonly rounds: number
}

const model = "placed"

/** MiB that may be in use after an unload beyond what was before the first load. A guess. */
const slackMib = 64

export const placement: Measure<PlacementPlan> = (stage, { rounds, size }) =>
  Effect.gen(function* () {
    const madeMs = performance.now()
    const weights = yield* weightsOf(size)
    const generatedSeconds = (performance.now() - madeMs) / 1_000
    const gateway = yield* startGateway({
      models: [onDemand(model, weights, stage)],
      settings: settingsOf(stage),
    })
    const operator = yield* operatorIn(gateway)
    const before = yield* usedMib
    const readings = yield* Effect.forEach(Array.from({ length: rounds }).keys(), (round) =>
      Effect.gen(function* () {
        const startedMs = performance.now()
        yield* asked(() => operator.load(model))
        const loadSeconds = (performance.now() - startedMs) / 1_000
        const firstAnswer = yield* answerSeconds(gateway, model, promptOf(round * 2 + 1, 8))
        const nextAnswer = yield* answerSeconds(gateway, model, promptOf(round * 2 + 2, 8))
        const used = (yield* usedMib) - before
        const listed = yield* usedByMib(yield* engineOf(gateway))
        const unloadingMs = performance.now()
        yield* asked(() => operator.unload(model))
        const unloadSeconds = (performance.now() - unloadingMs) / 1_000
        const back = yield* untilUsedAtMost(before + slackMib)
        const left = (yield* usedMib) - before
        return { loadSeconds, firstAnswer, nextAnswer, used, listed, unloadSeconds, back, left }
      }),
    )
    type Reading = (typeof readings)[number]
    const of = (part: keyof Reading) => readings.map((reading) => reading[part])
    return [
      {
        title: `A ${size} text model on the card, loaded and unloaded`,
        method:
          "an operator loads it, two replies of four tokens follow, an operator unloads it; the driver's memory before, with the " +
          "model, and after",
        figures: [
          figure("weights generated or found", "s", [generatedSeconds]),
          figure("claim: the weights", "MiB", [weights.mib]),
          figure("load", "s", of("loadSeconds")),
          figure("  first reply", "s", of("firstAnswer")),
          figure("  next reply", "s", of("nextAnswer")),
          figure("the driver counts more than before", "MiB", of("used")),
          figure("  for the engine's process", "MiB", of("listed")),
          figure("unload", "s", of("unloadSeconds")),
          figure("  until the driver counts it as free", "ms", of("back")),
          figure("  left in use", "MiB", of("left"), atMost(slackMib)),
        ],
      },
    ]
  })
