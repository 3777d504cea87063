// The fuzz runs over a node in its own process: a small one with one seed, and 200,000 inputs in under five minutes.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { fuzz } from "../../bench/hostile/Fuzz.ts"
import { full, small } from "../../bench/hostile/Suite.ts"

it.live("1,500 mutated inputs reach handlers, sockets and decoders, and nothing is a defect", () =>
  Effect.gen(function* () {
    const parts = yield* fuzz({ ...small, seed: 1 })
    const figures = parts.flatMap((part) => part.figures)
    expect(figures.filter(({ met }) => met === false)).toEqual([])
    for (const what of ["json: 200", "request: 200", "chunked: 200", "frames: 101 closed", "audio: 400"]) {
      expect([what, figures.find(({ name }) => name === what)?.median]).toEqual([what, expect.any(Number)])
    }
  }),
)

it.live("200,000 mutated inputs: the node stays, no honest request fails, nothing is a defect", () =>
  Effect.gen(function* () {
    const seed = Math.floor(Math.random() * 1_000_000)
    const figures = (yield* fuzz({ ...full, seed })).flatMap((part) => part.figures)
    expect([seed, figures.filter(({ met }) => met === false)]).toEqual([seed, []])
  }),
)
