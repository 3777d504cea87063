// Whether concurrent clients get equal shares of the model.
import { Effect } from "effect"
import { atMost, figureOf, ofEach, type Part } from "#harness/report/Figure.ts"
import type { ChildFailed } from "../support/Child.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import type { Stage } from "./Stage.ts"

export interface SharesPlan extends RoundsPlan {
  readonly clients: number
  readonly seconds: number
  readonly forMs: number
}

export const shares = (stage: Stage, plan: SharesPlan): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const { clients, forMs, seconds } = plan
    const { target } = stage.gateway
    const rounds = yield* repeatRounds(plan, () =>
      stage.speakers.ask("share", { target, seconds, clients, forMs }),
    )
    const total = (transcribed: ReadonlyArray<number>) => transcribed.reduce((sum, each) => sum + each, 0)
    return {
      title: `${clients} clients at once, each with files of ${seconds} s one after the other`,
      method: `audio transcribed for each client in ${forMs} ms, the most over the least`,
      figures: [
        figureOf(
          ofEach(
            rounds,
            "largest share over smallest",
            "x",
            (transcribed) => Math.max(...transcribed) / Math.min(...transcribed),
          ),
          atMost(1.3),
        ),
        figureOf(
          ofEach(
            rounds,
            "audio transcribed for all",
            "s/s",
            (transcribed) => total(transcribed) / (forMs / 1000),
          ),
        ),
      ],
    }
  })
