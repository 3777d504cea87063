// Deterministic automata over code points: building, combining, running.

import type { Automaton } from "../../Expression.ts"
import { allCodePoints } from "./CodePointRanges.ts"

type Edge = readonly [from: number, to: number, state: number]

/** An automaton would exceed its limit of states. The caller knows the path and reports it. */
export class TooManyStates extends Error {
  readonly limit: number

  constructor(limit: number) {
    super(`more than ${limit} states`)
    this.limit = limit
  }
}

/** Most states of one automaton. */
export const maxStates = 5_000
/** Most edges of one automaton. */
export const maxEdges = 100_000

/** Most edges of an automaton that counts characters, if a shorter maximum is possible. */
const maxCountedEdges = 20_000

const nothing: Automaton = { states: [{ accepts: false, edges: [] }] }

export const isEmpty = (automaton: Automaton): boolean => automaton.states.every((state) => !state.accepts)

/** Any string. */
export const anyText: Automaton = {
  states: [{ accepts: true, edges: allCodePoints.map(([from, to]) => [from, to, 0]) }],
}

const merged = (edges: ReadonlyArray<Edge>): ReadonlyArray<Edge> => {
  const out: Array<[number, number, number]> = []
  for (const [from, to, state] of [...edges].sort((a, b) => a[0] - b[0])) {
    const last = out.at(-1)
    if (last !== undefined && last[2] === state && last[1] + 1 === from) last[1] = to
    else out.push([from, to, state])
  }
  return out
}

/** Removes states from which no accepting state can be reached, and joins neighbouring edges. */
export const trimmed = (states: Automaton["states"]): Automaton => {
  const sources: Array<Array<number>> = states.map(() => [])
  states.forEach((state, i) => {
    for (const [, , to] of state.edges) sources[to]!.push(i)
  })
  const alive = states.map((state) => state.accepts)
  const queue = alive.flatMap((value, i) => (value ? [i] : []))
  for (let i = queue.pop(); i !== undefined; i = queue.pop()) {
    for (const source of sources[i]!) {
      if (alive[source]) continue
      alive[source] = true
      queue.push(source)
    }
  }
  if (!alive[0]) return nothing
  let count = 0
  const names = alive.map((value) => (value ? count++ : -1))
  return {
    states: states.flatMap((state, i) => {
      if (!alive[i]) return []
      const edges = state.edges.flatMap(
        ([from, to, target]): ReadonlyArray<Edge> => (alive[target] ? [[from, to, names[target]!]] : []),
      )
      return [{ accepts: state.accepts, edges: merged(edges) }]
    }),
  }
}

/**
 * The automaton that a step function describes, explored from its start. `key` tells states apart. The edges that
 * `step` gives for one state must not overlap.
 */
export const explore = <State>(
  start: State,
  key: (state: State) => string | number,
  step: (state: State) => Iterable<readonly [from: number, to: number, next: State]>,
  accepts: (state: State) => boolean,
  limit: number = maxStates,
): Automaton => {
  const numbers = new Map<string | number, number>([[key(start), 0]])
  const found: Array<State> = [start]
  const states: Array<{ accepts: boolean; edges: ReadonlyArray<Edge> }> = []
  let edgeCount = 0
  for (let i = 0; i < found.length; i++) {
    const edges: Array<Edge> = []
    for (const [from, to, next] of step(found[i]!)) {
      const name = key(next)
      let number = numbers.get(name)
      if (number === undefined) {
        number = found.length
        if (number >= limit) throw new TooManyStates(limit)
        numbers.set(name, number)
        found.push(next)
      }
      edges.push([from, to, number])
    }
    edgeCount += edges.length
    if (edgeCount > maxEdges) throw new TooManyStates(limit)
    states.push({ accepts: accepts(found[i]!), edges })
  }
  return trimmed(states)
}

/** The state after a text, or -1 if the automaton refuses it. */
const stateAfter = (automaton: Automaton, text: string): number => {
  let state = 0
  for (const character of text) {
    const code = character.codePointAt(0)!
    const edge = automaton.states[state]!.edges.find(([from, to]) => from <= code && code <= to)
    if (edge === undefined) return -1
    state = edge[2]
  }
  return state
}

export const accepts = (automaton: Automaton, text: string): boolean => {
  const state = stateAfter(automaton, text)
  return state >= 0 && automaton.states[state]!.accepts
}

/** Texts that both accept. */
export const both = (a: Automaton, b: Automaton, limit: number = maxStates): Automaton => {
  if (a === anyText) return b
  if (b === anyText) return a
  return explore<readonly [number, number]>(
    [0, 0],
    ([i, j]) => i * b.states.length + j,
    function* ([i, j]) {
      const left = a.states[i]!.edges
      const right = b.states[j]!.edges
      for (let l = 0, r = 0; l < left.length && r < right.length; ) {
        const [from, to, next] = left[l]!
        const [from2, to2, next2] = right[r]!
        const low = Math.max(from, from2)
        const high = Math.min(to, to2)
        if (low <= high) yield [low, high, [next, next2]]
        if (to < to2) l++
        else r++
      }
    },
    ([i, j]) => a.states[i]!.accepts && b.states[j]!.accepts,
    limit,
  )
}

/** Texts that an automaton refuses. */
export const not = (a: Automaton): Automaton => {
  const rest = a.states.length
  const states = a.states.map((state) => {
    const edges: Array<Edge> = [...state.edges]
    for (const [first, last] of allCodePoints) {
      let next = first
      for (const [from, to] of state.edges) {
        if (to < next || from > last) continue
        if (from > next) edges.push([next, from - 1, rest])
        next = to + 1
      }
      if (next <= last) edges.push([next, last, rest])
    }
    return { accepts: !state.accepts, edges }
  })
  const all = allCodePoints.map(([from, to]): Edge => [from, to, rest])
  return trimmed([...states, { accepts: true, edges: all }])
}

/**
 * The texts of an automaton with at least `least` and at most `most` code points. With fewer at most if `most` would need
 * too many states.
 */
export const withLength = (a: Automaton, least: number, most: number | undefined): Automaton => {
  if (least === 0 && most === undefined) return a
  const edges = a.states.reduce((sum, state) => sum + state.edges.length, 0)
  const fitting = Math.min(Math.floor((maxStates - 1) / a.states.length), Math.floor(maxCountedEdges / edges))
  const possible = Math.max(least, fitting - 1)
  const longest = most === undefined ? undefined : Math.min(most, possible)
  const cap = longest ?? least
  return explore<readonly [number, number]>(
    [0, 0],
    ([state, length]) => state * (cap + 1) + length,
    function* ([state, length]) {
      if (longest !== undefined && length >= longest) return
      for (const [from, to, next] of a.states[state]!.edges)
        yield [from, to, [next, Math.min(length + 1, cap)]]
    },
    ([state, length]) => a.states[state]!.accepts && length >= least,
  )
}
