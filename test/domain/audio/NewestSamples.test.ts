// A ring of the newest samples equals a list that is cut, whatever comes in.
import * as fc from "fast-check"
import { expect, it } from "vitest"
import { NewestSamples } from "#domain/audio/NewestSamples.ts"

it("has the newest samples, also after it was cleared", () => {
  const pieces = fc.array(fc.oneof(fc.constant("clear" as const), fc.integer({ min: 0, max: 9_000 })), {
    maxLength: 12,
  })
  fc.assert(
    fc.property(pieces, fc.integer({ min: 1, max: 30_000 }), fc.nat(40_000), (steps, most, wanted) => {
      const ring = new NewestSamples(most)
      let kept: ReadonlyArray<number> = []
      let value = 0
      for (const step of steps) {
        if (step === "clear") {
          ring.clear()
          kept = []
        } else {
          const piece = Array.from({ length: step }, () => value++ % 32_768)
          ring.push(Int16Array.from(piece))
          kept = [...kept, ...piece].slice(-most)
        }
        expect(Buffer.from(ring.newest(wanted).buffer)).toEqual(
          Buffer.from(Int16Array.from(wanted === 0 ? [] : kept.slice(-wanted)).buffer),
        )
      }
    }),
    { numRuns: 60 },
  )
})
