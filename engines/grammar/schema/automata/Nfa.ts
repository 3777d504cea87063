// Nondeterministic automata of patterns, and their translation to deterministic ones (subset construction).

import type { Checkpoint } from "../../Checkpoint.ts"
import type { Automaton } from "../../Expression.ts"
import { maxEdges, maxStates, TooManyStates, trimmed } from "./Automata.ts"
import { allCodePoints, type Ranges, wordCharacters } from "./CodePointRanges.ts"

/** Where a step without a character is possible. */
type Condition = "always" | "start" | "end" | "boundary" | "noBoundary"

/** Most states of a pattern before it is made deterministic; counted repeats are copied. */
const maxNfaStates = 20_000
/** Most visits of states while it is made deterministic. Measured: about 100 ms on two cores of 2024. */
const maxVisits = 600_000

export class Nfa {
  readonly #steps: Array<Array<readonly [to: number, condition: Condition]>> = []
  readonly #edges: Array<Array<readonly [set: number, to: number]>> = []
  readonly #sets: Array<Ranges> = []
  readonly #setNumbers = new Map<Ranges, number>()
  #boundaries = false

  state(): number {
    if (this.#steps.length >= maxNfaStates) throw new TooManyStates(maxNfaStates)
    this.#edges.push([])
    return this.#steps.push([]) - 1
  }

  step(from: number, to: number, condition: Condition = "always"): void {
    if (condition === "boundary" || condition === "noBoundary") this.#boundaries = true
    this.#steps[from]!.push([to, condition])
  }

  edge(from: number, ranges: Ranges, to: number): void {
    let set = this.#setNumbers.get(ranges)
    if (set === undefined) {
      set = this.#sets.push(ranges) - 1
      this.#setNumbers.set(ranges, set)
    }
    this.#edges[from]!.push([set, to])
  }

  /** `final` must have no way on: texts that reach it are accepted, whatever follows if `open`. */
  deterministic(start: number, final: number, open: boolean, checkpoint: Checkpoint): Automaton {
    const alphabet = alphabetOf(this.#boundaries ? [...this.#sets, wordCharacters] : this.#sets)
    const wordSet = this.#sets.length
    const isWord = (letter: number) => this.#boundaries && alphabet.letters[letter]!.has(wordSet)
    let visits = 0

    /** States reachable without a character. `before` and `after`: what stands on both sides. */
    const closure = (states: ReadonlyArray<number>, before: Side, after: Side): ReadonlyArray<number> => {
      const seen = new Set(states)
      const queue = [...states]
      for (let i = queue.pop(); i !== undefined; i = queue.pop()) {
        for (const [to, condition] of this.#steps[i]!) {
          visits++
          if (seen.has(to) || !holds(condition, before, after)) continue
          seen.add(to)
          queue.push(to)
        }
      }
      visits += seen.size
      if (visits > maxVisits) throw new TooManyStates(maxStates)
      return [...seen]
    }

    const numbers = new Map<string, number>()
    const found: Array<{ states: ReadonlyArray<number>; before: Side }> = []
    const numberOf = (states: ReadonlyArray<number>, before: Side): number => {
      const sorted = [...states].sort((a, b) => a - b)
      visits += sorted.length
      const side = this.#boundaries || before === "edge" ? before : "other"
      const key = `${side} ${sorted.join(",")}`
      let number = numbers.get(key)
      if (number === undefined) {
        number = found.push({ states: sorted, before: side }) - 1
        if (number >= maxStates) throw new TooManyStates(maxStates)
        numbers.set(key, number)
      }
      return number
    }

    numberOf([start], "edge")
    const rows: Array<{ accepts: boolean; targets: ReadonlyArray<number> }> = []
    const sides: ReadonlyArray<Side> = this.#boundaries ? ["word", "other"] : ["other"]
    let passed = 0
    for (let i = 0; i < found.length; i++) {
      checkpoint(visits - passed)
      passed = visits
      visits += alphabet.intervals.length >> 2
      const { states, before } = found[i]!
      const ending = closure(states, before, "edge").includes(final)
      const targets: Array<number> = alphabet.letters.map(() => -1)
      for (const side of sides) {
        const all = closure(states, before, side)
        const next = new Map<number, Set<number>>()
        for (const state of all) {
          for (const [set, to] of this.#edges[state]!) {
            for (const letter of alphabet.lettersOf[set]!) {
              if (this.#boundaries && isWord(letter) !== (side === "word")) continue
              visits++
              const group = next.get(letter)
              if (group === undefined) next.set(letter, new Set([to]))
              else group.add(to)
            }
          }
        }
        const done = open && all.includes(final)
        alphabet.letters.forEach((_, letter) => {
          if (this.#boundaries && isWord(letter) !== (side === "word")) return
          const group = next.get(letter)
          if (done) targets[letter] = numberOf([final], this.#boundaries ? side : "other")
          else if (group !== undefined) targets[letter] = numberOf([...group], side)
        })
      }
      rows.push({ accepts: ending, targets })
    }
    let edges = 0
    return trimmed(
      rows.map((row) => {
        const out: Array<[number, number, number]> = []
        for (const [from, to, letter] of alphabet.intervals) {
          const target = row.targets[letter]!
          if (target < 0) continue
          const last = out.at(-1)
          if (last !== undefined && last[2] === target && last[1] + 1 === from) last[1] = to
          else out.push([from, to, target])
        }
        edges += out.length
        if (edges > maxEdges) throw new TooManyStates(maxStates)
        return { accepts: row.accepts, edges: out }
      }),
    )
  }
}

/** What stands on one side of a position: the edge of the text, a word character, or another one. */
type Side = "edge" | "word" | "other"

const holds = (condition: Condition, before: Side, after: Side): boolean => {
  switch (condition) {
    case "always":
      return true
    case "start":
      return before === "edge"
    case "end":
      return after === "edge"
    case "boundary":
      return (before === "word") !== (after === "word")
    case "noBoundary":
      return (before === "word") === (after === "word")
  }
}

interface Alphabet {
  /** For each class of code points that all sets treat alike: the sets that contain it. */
  readonly letters: ReadonlyArray<ReadonlySet<number>>
  readonly lettersOf: ReadonlyArray<ReadonlyArray<number>>
  readonly intervals: ReadonlyArray<readonly [from: number, to: number, letter: number]>
}

const alphabetOf = (sets: ReadonlyArray<Ranges>): Alphabet => {
  const changes = new Map<number, Array<[set: number, enters: boolean]>>()
  const change = (at: number, set: number, enters: boolean) => {
    const list = changes.get(at)
    if (list === undefined) changes.set(at, [[set, enters]])
    else list.push([set, enters])
  }
  sets.forEach((ranges, set) => {
    for (const [from, to] of ranges) {
      change(from, set, true)
      change(to + 1, set, false)
    }
  })
  for (const [from, to] of allCodePoints) {
    if (!changes.has(from)) changes.set(from, [])
    if (!changes.has(to + 1)) changes.set(to + 1, [])
  }
  const bounds = [...changes.keys()].sort((a, b) => a - b)
  const current = new Set<number>()
  const letters: Array<ReadonlySet<number>> = []
  const numbers = new Map<string, number>()
  const intervals: Array<readonly [number, number, number]> = []
  bounds.forEach((from, i) => {
    for (const [set, enters] of changes.get(from)!.sort((a, b) => Number(a[1]) - Number(b[1]))) {
      if (enters) current.add(set)
      else current.delete(set)
    }
    const next = bounds[i + 1]
    if (next === undefined || (from >= 0xd800 && from <= 0xdfff)) return
    const key = [...current].sort((a, b) => a - b).join(",")
    let letter = numbers.get(key)
    if (letter === undefined) {
      letter = letters.push(new Set(current)) - 1
      numbers.set(key, letter)
    }
    intervals.push([from, next - 1, letter])
  })
  return {
    letters,
    lettersOf: sets.map((_, set) => letters.flatMap((letter, i) => (letter.has(set) ? [i] : []))),
    intervals,
  }
}
