// Which runs share a native call: neighbours with equally many tokens, at no more than the cost of calls of their own.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { CostCurve } from "#engines/llama/steps/CostCurve.ts"
import { groupsMs, replyGroups } from "#engines/llama/steps/ReplyGroups.ts"
import { groupsWithRuns, type Run, runGroups } from "#engines/llama/steps/RunGroups.ts"

const slots = 16
const batchTokens = 128

const filled = (largest: number, cost: (size: number) => number): CostCurve => {
  const curve = new CostCurve(largest)
  for (const size of curve.sizes) curve.observe(size, cost(size))
  return curve
}

/** Milliseconds a call, and a token of a run or of a common call. */
const machine = fc.record({
  perCall: fc.double({ min: 0.1, max: 80, noNaN: true }),
  perToken: fc.double({ min: 0.1, max: 10, noNaN: true }),
  perReply: fc.double({ min: 0.1, max: 30, noNaN: true }),
})
const costsOf = ({
  perCall,
  perReply,
  perToken,
}: {
  perCall: number
  perToken: number
  perReply: number
}) => ({
  prompt: filled(batchTokens, (tokens) => perCall + perToken * tokens),
  replies: filled(slots, (replies) => (replies === 1 ? perCall / 3 : perCall) + perReply * replies),
})

const ids = fc
  .uniqueArray(fc.nat(slots - 1), { maxLength: slots })
  .map((drawn) => drawn.sort((a, b) => a - b))
const pending = fc.array(fc.integer({ min: 4, max: 200 }), { minLength: slots, maxLength: slots })
const runsOf = (chosen: ReadonlyArray<number>, lengths: ReadonlyArray<number>): ReadonlyArray<Run> =>
  chosen.map((id) => ({ id, pending: lengths[id]! }))

it("each run is in one group of neighbours, which takes no more than the shortest of them has", () => {
  fc.assert(
    fc.property(ids, pending, machine, (chosen, lengths, prices) => {
      const costs = costsOf(prices)
      const groups = runGroups(runsOf(chosen, lengths), slots, costs)
      expect(groups.flatMap((group) => group.ids)).toEqual(chosen)
      for (const { ids: members, take } of groups) {
        expect(members.at(-1)! - members[0]!).toBe(members.length - 1)
        const least = Math.min(...members.map((id) => lengths[id]!))
        expect(take).toBe(Math.min(least, batchTokens))
        expect(take * members.length).toBeLessThanOrEqual(batchTokens)
        if (members.length === 1) continue
        // A cancel waits for it.
        const ms = costs.prompt.expectedMs(take * members.length)
        expect(ms).toBeLessThanOrEqual(Math.max(100, costs.replies.expectedMs(slots)))
      }
    }),
  )
})

it("they cost no more than calls of their own, what is left of them included", () => {
  fc.assert(
    fc.property(ids, pending, machine, (chosen, lengths, prices) => {
      const costs = costsOf(prices)
      const runs = runsOf(chosen, lengths)
      const apart = runs.reduce(
        (sum, run) => sum + costs.prompt.expectedMs(Math.min(run.pending, batchTokens)),
        0,
      )
      const later = costs.replies.expectedMs(slots) / slots
      const together = runGroups(runs, slots, costs).reduce((sum, { ids: members, take }) => {
        const left = members.reduce((all, id) => all + Math.min(lengths[id]!, batchTokens) - take, 0)
        return sum + costs.prompt.expectedMs(take * members.length) + left * later
      }, 0)
      expect(together).toBeLessThanOrEqual(apart * (1 + 1e-9))
    }),
  )
})

it("equal runs of neighbours share a call where a call costs much, and do not where a token does", () => {
  const runs = [0, 1, 2, 5, 6].map((id) => ({ id, pending: 8 }))
  const dearCalls = costsOf({ perCall: 40, perToken: 1, perReply: 4 })
  expect(runGroups(runs, 7, dearCalls)).toEqual([
    { ids: [0, 1, 2], take: 8 },
    { ids: [5, 6], take: 8 },
  ])
  const dearTokens = costsOf({ perCall: 0.1, perToken: 10, perReply: 4 })
  expect(runGroups(runs, 7, dearTokens).every(({ ids: members }) => members.length === 1)).toBe(true)
})

it("a common call has every reply that is due, and runs only all together and where that costs less", () => {
  fc.assert(
    fc.property(ids, ids, pending, machine, (due, others, lengths, prices) => {
      const costs = costsOf(prices)
      const runs = runsOf(
        others.filter((id) => !due.includes(id)),
        lengths,
      )
      const groups = groupsWithRuns(due, runs, costs)
      const members = groups.flat()
      const callMs = (size: number) => costs.replies.expectedMs(size)
      const apart = groupsMs(replyGroups(due, costs.replies), callMs)
      if (members.length === due.length) {
        expect(members).toEqual(due)
        expect(groupsMs(groups, callMs)).toBe(apart)
      } else {
        expect(members).toEqual([...due, ...runs.map(({ id }) => id)].sort((a, b) => a - b))
        // A token costs `perToken`; past the largest size the curve goes on in proportion, with its share of the call.
        const perToken = prices.perToken + prices.perCall / batchTokens
        const spared = runs.length * perToken * (1 + 1e-9)
        expect(groupsMs(groups, callMs) - spared).toBeLessThanOrEqual(apart)
      }
    }),
  )
})

it("a common call is not made for runs alone", () => {
  const costs = {
    prompt: filled(batchTokens, (tokens) => 40 + tokens),
    replies: filled(slots, (count) => 40 + count),
  }
  expect(groupsWithRuns([], [{ id: 0, pending: 9 }], costs)).toEqual([])
  expect(groupsWithRuns([0, 2], [{ id: 1, pending: 9 }], costs)).toEqual([[0, 1, 2]])
})
