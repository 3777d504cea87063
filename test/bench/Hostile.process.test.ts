// A small fuzz run over a node in its own process: what it counts, and that an input depends on its seed and index alone.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { fuzz } from "../../bench/hostile/Fuzz.ts"
import { inputOf, kinds } from "../../bench/hostile/Inputs.ts"
import { small } from "../../bench/hostile/Suite.ts"

it("an input depends on its seed and its index alone", () => {
  const some = Array.from({ length: 400 }, (_, index) => inputOf(1, index))
  expect(Array.from({ length: 400 }, (_, index) => inputOf(1, 399 - index)).reverse()).toEqual(some)
  expect(new Set(some.map(({ kind }) => kind))).toEqual(new Set(kinds))
  const same = some.filter((input, index) => inputOf(2, index).bytes.equals(input.bytes))
  // At most this many inputs are left unchanged by mutation.
  expect(same.length).toBeLessThan(some.length / 8)
})

it.live(
  "1,500 mutated inputs: the node stays, no honest request fails, nothing is a defect",
  () =>
    Effect.gen(function* () {
      const parts = yield* fuzz({ ...small, seed: 1 })
      const figures = parts.flatMap((part) => part.figures)
      expect(figures.filter(({ met }) => met === false)).toEqual([])
      // Inputs reached handlers, sockets and decoders.
      for (const what of ["json: 200", "request: 200", "chunked: 200", "frames: 101 closed", "audio: 400"]) {
        expect([what, figures.find(({ name }) => name === what)?.median]).toEqual([what, expect.any(Number)])
      }
    }),
  120_000,
)
