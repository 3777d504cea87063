// Every running reply is in exactly one group, and the groups have the least total cost.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { CostCurve } from "#engines/llama/steps/CostCurve.ts"
import { groupsMs, replyGroups } from "#engines/llama/steps/ReplyGroups.ts"

const filled = (largest: number, cost: (size: number) => number): CostCurve => {
  const curve = new CostCurve(largest)
  for (const size of curve.sizes) curve.observe(size, cost(size))
  return curve
}

it("one call for neighbours, where each further reply costs little", () => {
  const costs = filled(16, (replies) => 10 + replies)
  expect(replyGroups([0, 1, 2, 3], costs)).toEqual([[0, 1, 2, 3]])
  expect(replyGroups([0, 1, 3, 7, 8], costs)).toEqual([[0, 1], [3], [7, 8]])
  expect(replyGroups([], costs)).toEqual([])
})

it("one call each, where two replies in one call cost more than in two", () => {
  // Measured: 0.2 B parameters, Q8_0, one thread.
  const measured = new Map([
    [1, 9.3],
    [2, 40],
    [4, 55],
    [8, 64],
    [16, 76],
  ])
  const costs = filled(16, (replies) => measured.get(replies)!)
  const ids = Array.from({ length: 16 }, (_, id) => id)
  expect(replyGroups(ids.slice(0, 4), costs)).toEqual([[0], [1], [2], [3]])
  expect(replyGroups(ids.slice(0, 8), costs)).toEqual([ids.slice(0, 8)])
  expect(replyGroups(ids, costs)).toEqual([ids])
})

it("every reply once, in order, in groups of neighbours, at no more than the cost of one call a run", () => {
  const costs = fc.array(fc.double({ min: 0.1, max: 100, noNaN: true }), { minLength: 8, maxLength: 8 })
  const ids = fc.uniqueArray(fc.nat(99), { maxLength: 40 }).map((drawn) => drawn.sort((a, b) => a - b))
  fc.assert(
    fc.property(ids, costs, (running, durations) => {
      const curve = filled(100, (size) => durations[Math.floor(Math.log2(size))]!)
      const groups = replyGroups(running, curve)
      expect(groups.flat()).toEqual(running)
      for (const group of groups) expect(group.at(-1)! - group[0]!).toBe(group.length - 1)
      const runs = running.reduce<Array<Array<number>>>((found, id) => {
        if (found.at(-1)?.at(-1) === id - 1) found.at(-1)!.push(id)
        else found.push([id])
        return found
      }, [])
      const callMs = (size: number) => curve.expectedMs(size)
      expect(groupsMs(groups, callMs)).toBeLessThanOrEqual(groupsMs(runs, callMs) * (1 + 1e-9))
    }),
  )
})
