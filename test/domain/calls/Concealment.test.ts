// What stands for a lost packet: as long as it was, without a step, and soon silent.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { concealed } from "#domain/calls/Concealment.ts"

it("has the length of the loss, goes on from the sample before, is never louder, and ends", () => {
  const samples = fc.int16Array({ maxLength: 960 })
  fc.assert(
    fc.property(samples, fc.nat({ max: 5_000 }), (before, length) => {
      const out = concealed(before, length)
      expect(out.length).toBe(length)
      if (before.length > 0 && length > 0) expect(out[0]).toBe(before.at(-1))
      const loudest = before.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0)
      expect(out.every((sample) => Math.abs(sample) <= loudest)).toBe(true)
      expect(out.subarray(3 * 480).every((sample) => sample === 0)).toBe(true)
    }),
  )
})
