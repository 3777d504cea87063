// The subset construction: of each automaton one that has at most one edge for each byte. Calls are edges of their own:
// equal calls of one state become one.
import type { Checkpoint } from "../Checkpoint.ts"
import { type Call, type Edge, GrammarProblem, mostStates, type Networks } from "./Networks.ts"

interface DeterministicState {
  readonly accepts: boolean
  readonly free: boolean
  edges: ReadonlyArray<Edge>
  calls: ReadonlyArray<Call>
}

export interface Deterministic {
  readonly states: ReadonlyArray<DeterministicState>
  /** First state of each automaton. */
  readonly starts: ReadonlyArray<number>
}

/** `watch` is called with the name of each automaton before it is made deterministic. */
export const determinize = (
  networks: Networks,
  watch: (name: string) => void,
  checkpoint: Checkpoint,
): Deterministic => {
  const states: Array<DeterministicState> = []
  const starts: Array<number> = []
  /** When each state was last added to a set. */
  const stamps = new Int32Array(networks.edges.length)
  let stamp = 0

  /** All states that the targets lead to without a byte. */
  const closed = (targets: ReadonlyArray<number>): Array<number> => {
    stamp++
    const set: Array<number> = []
    const add = (state: number) => {
      if (stamps[state] === stamp) return
      stamps[state] = stamp
      set.push(state)
    }
    targets.forEach(add)
    for (const state of set) networks.epsilons[state]!.forEach(add)
    return set
  }

  for (const { start, final, name } of networks.networks) {
    watch(name)
    const sets: Array<ReadonlyArray<number>> = []
    const numbers = new Map<string, number>()
    const first = states.length

    /** Numbers of the sets of a single target: most of them are. */
    const single = new Map<number, number>()

    const numberOf = (targets: ReadonlyArray<number>): number => {
      const [target] = targets
      if (targets.length !== 1 || target === undefined) return numberOfSet(targets)
      const known = single.get(target)
      if (known !== undefined) return known
      const number = numberOfSet(targets)
      single.set(target, number)
      return number
    }

    const numberOfSet = (targets: ReadonlyArray<number>): number => {
      // States with nothing but epsilons say nothing about what follows; without them more sets are equal.
      const reached = closed(targets)
      checkpoint(reached.length)
      const set = reached
        .filter(
          (state) =>
            state === final ||
            networks.free.has(state) ||
            networks.edges[state]!.length > 0 ||
            networks.calls[state]!.length > 0,
        )
        .sort((a, b) => a - b)
      const key = set.join()
      const known = numbers.get(key)
      if (known !== undefined) return known
      if (states.length >= mostStates) throw new GrammarProblem(`needs more than ${mostStates} states`)
      const number = states.push({
        accepts: set.includes(final),
        free: networks.free.size > 0 && set.some((state) => networks.free.has(state)),
        edges: [],
        calls: [],
      })
      sets.push(set)
      numbers.set(key, number - 1)
      return number - 1
    }

    starts.push(numberOf([start]))
    for (let at = 0; at < sets.length; at++) {
      checkpoint(sets[at]!.length)
      const state = states[first + at]!
      state.edges = joined(together(sets[at]!, networks.edges), numberOf)
      state.calls = joinedCalls(
        sets[at]!.flatMap((member) => networks.calls[member]!),
        numberOf,
      )
    }
  }
  return { states, starts }
}

const together = <A>(set: ReadonlyArray<number>, lists: ReadonlyArray<ReadonlyArray<A>>): ReadonlyArray<A> =>
  set.length === 1 ? lists[set[0]!]! : set.flatMap((member) => lists[member]!)

/** Adds an edge; one that continues the last edge becomes part of it. */
const append = (edges: Array<Edge>, low: number, high: number, to: number): void => {
  const last = edges.at(-1)
  if (last !== undefined && last.to === to && last.high === low - 1)
    edges[edges.length - 1] = { low: last.low, high, to }
  else edges.push({ low, high, to })
}

/** Edges without overlaps. */
const joined = (
  edges: ReadonlyArray<Edge>,
  numberOf: (targets: ReadonlyArray<number>) => number,
): Array<Edge> => {
  if (edges.length === 0) return []
  const sorted = edges.length === 1 ? edges : [...edges].sort((a, b) => a.low - b.low)
  if (sorted.every(({ high }, at) => high < (sorted[at + 1]?.low ?? 256))) {
    const found: Array<Edge> = []
    for (const { high, low, to } of sorted) append(found, low, high, numberOf([to]))
    return found
  }
  const begins = new Uint8Array(257)
  for (const { high, low } of edges) {
    begins[low] = 1
    begins[high + 1] = 1
  }
  /** Number of the interval of each byte. */
  const intervals = new Uint16Array(257)
  for (let byte = 1; byte <= 256; byte++) intervals[byte] = intervals[byte - 1]! + begins[byte]!
  const targets: Array<Array<number>> = Array.from({ length: intervals[256]! + 1 }, () => [])
  for (const { high, low, to } of edges)
    for (let at = intervals[low]!; at <= intervals[high]!; at++) targets[at]!.push(to)
  const found: Array<Edge> = []
  for (let low = 0; low < 256; ) {
    let high = low
    while (high < 255 && intervals[high + 1] === intervals[low]) high++
    const of = targets[intervals[low]!]!
    if (of.length > 0) append(found, low, high, numberOf(of))
    low = high + 1
  }
  return found
}

const joinedCalls = (
  calls: ReadonlyArray<Call>,
  numberOf: (targets: ReadonlyArray<number>) => number,
): ReadonlyArray<Call> => {
  if (calls.length === 0) return calls
  const equal = new Map<string, Array<Call>>()
  for (const call of calls) {
    const key = `${call.network},${call.least},${call.most}`
    const others = equal.get(key)
    if (others === undefined) equal.set(key, [call])
    else others.push(call)
  }
  return [...equal.values()].map((same) => ({ ...same[0]!, to: numberOf(same.map(({ to }) => to)) }))
}
