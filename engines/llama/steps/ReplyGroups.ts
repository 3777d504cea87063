// Decides which running replies get their next token from the same native call. Pure.
//
// Usually all of them. But llama.cpp evaluates only neighbouring sequences in one pass, and its kernels for a few
// rows can cost more than as many calls with one row (0.2 B parameters, Q8_0, one thread: two replies in one call
// 40 ms, in two calls 19 ms; 16 replies in one call 82 ms, in 16 calls 150 ms). So the measured costs decide.
import type { CostCurve } from "./CostCurve.ts"

/** Smaller calls are chosen if they take less than this share of one call for all. A guess: beyond measurement error. */
const worth = 0.9

/** Replies of each call for `length` neighbouring sequences: all of them, or an equal size with a remainder. */
const groupSize = (length: number, costs: CostCurve): number => {
  let best = length
  let least = costs.latelyMs(length) * worth
  for (let size = 1; size < length; size *= 2) {
    const rest = length % size
    const total = Math.floor(length / size) * costs.latelyMs(size) + (rest > 0 ? costs.latelyMs(rest) : 0)
    if (total >= least) continue
    least = total
    best = size
  }
  return best
}

/** `ids`: sequence ids, ascending. One group for each row of neighbours. */
export const neighbours = (ids: ReadonlyArray<number>): Array<ReadonlyArray<number>> => {
  const groups: Array<ReadonlyArray<number>> = []
  for (let from = 0; from < ids.length; ) {
    let to = from + 1
    while (to < ids.length && ids[to] === ids[to - 1]! + 1) to++
    groups.push(ids.slice(from, to))
    from = to
  }
  return groups
}

/** `ids`: sequence ids, ascending. Each group is one native call. */
export const replyGroups = (ids: ReadonlyArray<number>, costs: CostCurve): Array<ReadonlyArray<number>> =>
  neighbours(ids).flatMap((row) => {
    const size = groupSize(row.length, costs)
    return Array.from({ length: Math.ceil(row.length / size) }, (_, at) =>
      row.slice(at * size, (at + 1) * size),
    )
  })

/** Milliseconds of all groups, one after the other. `callMs`: of one with so many replies. */
export const groupsMs = (
  groups: ReadonlyArray<ReadonlyArray<number>>,
  callMs: (replies: number) => number,
): number => groups.reduce((sum, { length }) => sum + callMs(length), 0)
