// The full fuzz run: 200,000 inputs in under five minutes. `npm run test:long`.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { fuzz } from "../../bench/hostile/Fuzz.ts"
import { full } from "../../bench/hostile/Suite.ts"

it.live(
  "200,000 mutated inputs: the node stays, no honest request fails, nothing is a defect",
  () =>
    Effect.gen(function* () {
      const seed = Math.floor(Math.random() * 1_000_000)
      const figures = (yield* fuzz({ ...full, seed })).flatMap((part) => part.figures)
      expect([seed, figures.filter(({ met }) => met === false)]).toEqual([seed, []])
    }),
  360_000,
)
