// Whether a text is a sentence of rules, for tests. Slow and simple: all ends of each expression at each position.

import type { Automaton, Expression, Rules } from "../../Expression.ts"

export const isSentence = ({ root, rules }: Rules, sentence: string): boolean => {
  const codes = [...sentence].map((character) => character.codePointAt(0)!)
  const known = new Map<Expression, Map<number, ReadonlySet<number>>>()

  const afterText = (text: string, at: number): ReadonlySet<number> => {
    const wanted = [...text]
    const fits = wanted.every((character, i) => character.codePointAt(0) === codes[at + i])
    return new Set(fits ? [at + wanted.length] : [])
  }

  const afterAutomaton = (automaton: Automaton, at: number): ReadonlySet<number> => {
    const ends = new Set<number>()
    for (let state = 0, i = at; ; i++) {
      if (automaton.states[state]!.accepts) ends.add(i)
      const code = codes[i]
      if (code === undefined) return ends
      const edge = automaton.states[state]!.edges.find(([from, to]) => from <= code && code <= to)
      if (edge === undefined) return ends
      state = edge[2]
    }
  }

  const follow = (positions: Iterable<number>, expression: Expression): Set<number> => {
    const ends = new Set<number>()
    for (const position of positions) for (const end of after(expression, position)) ends.add(end)
    return ends
  }

  const find = (expression: Expression, at: number): ReadonlySet<number> => {
    switch (expression.kind) {
      case "text":
        return afterText(expression.text, at)
      case "characters":
        return new Set(expression.ranges.some(([a, b]) => a <= codes[at]! && codes[at]! <= b) ? [at + 1] : [])
      case "automaton":
        return afterAutomaton(expression.automaton, at)
      case "sequence":
        return expression.of.reduce<ReadonlySet<number>>((ends, part) => follow(ends, part), new Set([at]))
      case "choice":
        return new Set(expression.of.flatMap((part) => [...after(part, at)]))
      case "repeat": {
        const ends = new Set<number>()
        let current = new Set([at])
        for (let i = 0; i <= (expression.most ?? Number.POSITIVE_INFINITY) && current.size > 0; i++) {
          if (i >= expression.least) for (const end of current) ends.add(end)
          const next = follow(current, expression.of)
          if (i >= expression.least && [...next].every((end) => ends.has(end))) break
          current = next
        }
        return ends
      }
      case "rule":
        return after(rules.get(expression.name)!, at)
    }
  }

  const after = (expression: Expression, at: number): ReadonlySet<number> => {
    const byPosition = known.get(expression) ?? new Map<number, ReadonlySet<number>>()
    known.set(expression, byPosition)
    const ends = byPosition.get(at) ?? find(expression, at)
    byPosition.set(at, ends)
    return ends
  }

  return after(root, 0).has(codes.length)
}
