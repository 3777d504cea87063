// Decides which replies evaluate runs, tokens that follow for certain, in the same native call, and which of them give a token
// to a common call of others. Pure.
//
// A call takes the same number of tokens of each of its replies, because llama.cpp evaluates a batch in passes in which every
// sequence has equally many, and only neighbouring sequences share a pass (0.5 B parameters, Q8_0, two threads: 8 tokens of
// each of 4 replies 153 ms in one call and 240 ms in four; 8, 1, 8, 1, 8, 1, 8 and 1 tokens in one call 322 ms). What is left
// of the longer runs follows later.
import type { CostCurve } from "./CostCurve.ts"
import { cancelMs } from "./PromptPace.ts"
import { groupsMs, replyGroups } from "./ReplyGroups.ts"

export interface Run {
  /** Sequence id. */
  readonly id: number
  /** Tokens waiting to be evaluated. */
  readonly pending: number
}

export interface RunGroup {
  /** Neighbours, ascending. */
  readonly ids: ReadonlyArray<number>
  /** Tokens of each of them. */
  readonly take: number
}

interface Costs {
  readonly prompt: CostCurve
  readonly replies: CostCurve
}

/**
 * Groups of neighbouring runs, each one native call. `runs` ascend by id; `replies` is how many replies run altogether.
 * A run joins its neighbours if that costs less than a call of its own. A call for several replies is not interrupted when one
 * of them is cancelled, so it takes at most the time of a cancel, or that of a common call.
 */
export const runGroups = (runs: ReadonlyArray<Run>, replies: number, costs: Costs): Array<RunGroup> => {
  const { largest } = costs.prompt
  const commonMs = costs.replies.expectedMs(replies)
  /** What is left of a run goes through common calls. */
  const laterMs = commonMs / replies
  const mostMs = Math.max(cancelMs, commonMs)
  const groups: Array<RunGroup> = []
  for (const { id, pending } of runs) {
    const alone: RunGroup = { ids: [id], take: Math.min(pending, largest) }
    const last = groups.at(-1)
    if (last === undefined || last.ids.at(-1) !== id - 1) {
      groups.push(alone)
      continue
    }
    const take = Math.min(last.take, pending)
    const joined: RunGroup = { ids: [...last.ids, id], take }
    const size = take * joined.ids.length
    const left = (last.take - take) * last.ids.length + alone.take - take
    const joinedMs = costs.prompt.expectedMs(size)
    const apartMs = costs.prompt.expectedMs(last.take * last.ids.length) + costs.prompt.expectedMs(alone.take)
    const joins = size <= largest && joinedMs <= mostMs && joinedMs + left * laterMs < apartMs
    if (joins) groups[groups.length - 1] = joined
    else groups.push(alone)
  }
  return groups
}

/** What a run gets cheaper if one of its tokens is evaluated elsewhere. */
const sparedMs = ({ pending }: Run, { prompt }: Costs): number =>
  Math.max(0, prompt.expectedMs(pending) - prompt.expectedMs(pending - 1))

/**
 * Groups of the replies `ids`, which are due a token each, and of all `runs` too if that costs less: a common call of
 * neighbours can be cheaper than several calls between which the runs lie. Each group is one native call with one token of
 * each of its replies.
 */
export const groupsWithRuns = (
  ids: ReadonlyArray<number>,
  runs: ReadonlyArray<Run>,
  costs: Costs,
): Array<ReadonlyArray<number>> => {
  const apart = replyGroups(ids, costs.replies)
  if (ids.length === 0 || runs.length === 0) return apart
  const all = [...ids, ...runs.map(({ id }) => id)].sort((a, b) => a - b)
  const together = replyGroups(all, costs.replies)
  const spared = runs.reduce((sum, run) => sum + sparedMs(run, costs), 0)
  const callMs = (size: number): number => costs.replies.expectedMs(size)
  return groupsMs(together, callMs) - spared < groupsMs(apart, callMs) ? together : apart
}
