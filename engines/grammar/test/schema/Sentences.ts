// Random sentences of rules, for tests. The longer a sentence is, the more it tends to end.

import type { Automaton, Expression, Rules } from "../../Expression.ts"

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export const randomNumbers = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const distances = new WeakMap<Automaton, ReadonlyArray<number>>()

/** Characters from each state to the nearest accepting one. */
const distancesOf = (automaton: Automaton): ReadonlyArray<number> => {
  const known = distances.get(automaton)
  if (known !== undefined) return known
  const found = automaton.states.map((state) => (state.accepts ? 0 : Number.POSITIVE_INFINITY))
  for (let changed = true; changed; ) {
    changed = false
    automaton.states.forEach((state, i) => {
      for (const [, , to] of state.edges) {
        if (found[to]! + 1 >= found[i]!) continue
        found[i] = found[to]! + 1
        changed = true
      }
    })
  }
  distances.set(automaton, found)
  return found
}

export class Sentences {
  readonly #rules: Rules
  readonly #shortest: ReadonlyMap<string, number>

  constructor(rules: Rules) {
    this.#rules = rules
    const shortest = new Map<string, number>()
    for (let changed = true; changed; ) {
      changed = false
      for (const [name, expression] of rules.rules) {
        const length = this.#length(expression, shortest)
        if (length >= (shortest.get(name) ?? Number.POSITIVE_INFINITY)) continue
        shortest.set(name, length)
        changed = true
      }
    }
    this.#shortest = shortest
  }

  /** Length of the shortest sentence. Infinite: there is none. */
  get shortest(): number {
    return this.#length(this.#rules.root, this.#shortest)
  }

  #length(expression: Expression, rules: ReadonlyMap<string, number>): number {
    switch (expression.kind) {
      case "text":
        return expression.text.length
      case "characters":
        return 1
      case "automaton":
        return distancesOf(expression.automaton)[0]!
      case "sequence":
        return expression.of.reduce((sum, part) => sum + this.#length(part, rules), 0)
      case "choice":
        return Math.min(...expression.of.map((part) => this.#length(part, rules)))
      case "repeat":
        return expression.least === 0 ? 0 : expression.least * this.#length(expression.of, rules)
      case "rule":
        return rules.get(expression.name) ?? Number.POSITIVE_INFINITY
    }
  }

  /** After `wanted` characters every choice is the shortest one. */
  random(next: () => number, wanted = 60): string {
    let text = ""
    const pick = <A>(of: ReadonlyArray<A>): A => of[Math.floor(next() * of.length)]!
    const write = (expression: Expression): void => {
      const ending = text.length >= wanted
      switch (expression.kind) {
        case "text":
          text += expression.text
          return
        case "characters":
          text += character(pick(expression.ranges), next)
          return
        case "automaton":
          text += this.#walk(expression.automaton, next, wanted - text.length)
          return
        case "sequence":
          for (const part of expression.of) write(part)
          return
        case "choice": {
          if (!ending) return write(pick(expression.of))
          const lengths = expression.of.map((part) => this.#length(part, this.#shortest))
          return write(expression.of[lengths.indexOf(Math.min(...lengths))]!)
        }
        case "repeat":
          for (let i = 0; i < (expression.most ?? Number.POSITIVE_INFINITY); i++) {
            if (i >= expression.least && (text.length >= wanted || next() < 0.4)) return
            write(expression.of)
          }
          return
        case "rule":
          return write(this.#rules.rules.get(expression.name)!)
      }
    }
    write(this.#rules.root)
    return text
  }

  #walk(automaton: Automaton, next: () => number, wanted: number): string {
    const distance = distancesOf(automaton)
    let text = ""
    for (let state = 0; ; ) {
      const { accepts, edges } = automaton.states[state]!
      const ending = text.length >= wanted
      if (accepts && (edges.length === 0 || ending || next() < 0.2)) return text
      const nearest = Math.min(...edges.map(([, , to]) => distance[to]!))
      const ways = ending ? edges.filter(([, , to]) => distance[to] === nearest) : edges
      const [from, to, target] = ways[Math.floor(next() * ways.length)]!
      text += character([from, to], next)
      state = target
    }
  }
}

/** Mostly from the beginning of a range, where the usual characters are. */
const character = ([from, to]: readonly [number, number], next: () => number): string => {
  const width = Math.min(to - from, next() < 0.8 ? 90 : 0x10ffff)
  return String.fromCodePoint(from + Math.floor(next() * (width + 1)))
}
