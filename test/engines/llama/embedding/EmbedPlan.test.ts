// Which inputs an evaluation takes: within its bounds, in order, and fair between requests.
import fc from "fast-check"
import { expect, it } from "vitest"
import { planEvaluation, type Waiting } from "#engines/llama/embedding/EmbedPlan.ts"

const tokens = (count: number) => Array.from({ length: count }, () => 0)
const waitingOf = (sizes: ReadonlyArray<number>): { readonly progress: Waiting } => ({
  progress: { inputs: sizes.map(tokens), next: 0 },
})
const bounds = fc.record({
  tokens: fc.integer({ min: 1, max: 60 }),
  sequences: fc.integer({ min: 1, max: 8 }),
})
const requests = fc.array(fc.array(fc.integer({ min: 1, max: 80 }), { minLength: 1, maxLength: 20 }), {
  minLength: 1,
  maxLength: 6,
})

it("every plan keeps its bounds and serves the first request; repeated with rotation, all inputs are evaluated once", () => {
  fc.assert(
    fc.property(requests, bounds, (sizes, within) => {
      let open = sizes.map(waitingOf)
      const total = sizes.flat().length
      let evaluated = 0
      for (let calls = 0; open.length > 0; calls++) {
        expect(calls).toBeLessThanOrEqual(total)
        const shares = planEvaluation(open, within)
        const taken = shares.flatMap(({ count, of: { progress } }) =>
          progress.inputs.slice(progress.next, progress.next + count).map(({ length }) => length),
        )
        expect(shares.find(({ of }) => of === open[0])?.count).toBeGreaterThan(0)
        expect(taken.length).toBeLessThanOrEqual(within.sequences)
        const sum = taken.reduce((a, b) => a + b, 0)
        expect(sum <= within.tokens || taken.length === 1).toBe(true)
        for (const { count, of } of shares) of.progress.next += count
        evaluated += taken.length
        open = [...open.slice(1), ...open.slice(0, 1)].filter(
          ({ progress }) => progress.next < progress.inputs.length,
        )
      }
      expect(evaluated).toBe(total)
    }),
  )
})

it("requests take part one input at a time", () => {
  const [large, small] = [waitingOf(Array(100).fill(4)), waitingOf([4])]
  const shares = planEvaluation([large, small], { tokens: 16, sequences: 8 })
  expect(shares.map(({ count }) => count)).toEqual([3, 1])
})
