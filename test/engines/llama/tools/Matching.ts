// A slow and simple matcher of rules, independent of the decoder's own.
import type { Expression, Rules } from "#engines/grammar/Expression.ts"

type Ends = ReadonlySet<number>

/** Whether the whole text is one that the rules allow. */
export const matches = ({ root, rules }: Rules, text: string): boolean => {
  const characters = [...text]
  const ends = (expression: Expression, from: number): Ends => {
    switch (expression.kind) {
      case "text": {
        const wanted = [...expression.text]
        const fits = wanted.every((character, at) => characters[from + at] === character)
        return new Set(fits ? [from + wanted.length] : [])
      }
      case "characters": {
        const code = characters[from]?.codePointAt(0)
        const fits =
          code !== undefined && expression.ranges.some(([low, high]) => code >= low && code <= high)
        return new Set(fits ? [from + 1] : [])
      }
      case "automaton": {
        const { states } = expression.automaton
        const found = new Set<number>()
        let state: number | undefined = 0
        for (let at = from; state !== undefined; at++) {
          if (states[state]?.accepts) found.add(at)
          const code = characters[at]?.codePointAt(0)
          if (code === undefined) break
          const edges: ReadonlyArray<readonly [number, number, number]> = states[state]?.edges ?? []
          const fitting = edges.filter(([low, high]) => code >= low && code <= high)
          if (fitting.length > 1) throw new Error("the edges of a state overlap")
          state = fitting[0]?.[2]
        }
        return found
      }
      case "sequence": {
        let at: Ends = new Set([from])
        for (const part of expression.of) at = new Set([...at].flatMap((start) => [...ends(part, start)]))
        return at
      }
      case "choice":
        return new Set(expression.of.flatMap((part) => [...ends(part, from)]))
      case "repeat": {
        const found = new Set<number>()
        let at: Ends = new Set([from])
        for (let count = 0; at.size > 0; count++) {
          if (count >= expression.least) for (const end of at) found.add(end)
          if (count === expression.most) break
          const next: Ends = new Set([...at].flatMap((start) => [...ends(expression.of, start)]))
          at = new Set([...next].filter((end) => !found.has(end)))
        }
        return found
      }
      case "rule": {
        const named = rules.get(expression.name)
        if (named === undefined) throw new Error(`no rule ${expression.name}`)
        return ends(named, from)
      }
    }
  }
  return ends(root, 0).has(characters.length)
}
