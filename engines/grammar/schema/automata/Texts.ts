// Automata and lists of texts.

import type { Automaton } from "../../Expression.ts"
import { explore } from "./Automata.ts"

/** Exactly these texts. Texts with lone surrogates are left out. */
export const anyOfTexts = (texts: ReadonlyArray<string>): Automaton => {
  const wanted = [...new Set(texts)].filter((text) => text.isWellFormed()).sort()
  return explore<{ readonly prefix: string; readonly rest: ReadonlyArray<string> }>(
    { prefix: "", rest: wanted },
    (state) => state.prefix,
    function* ({ prefix, rest }) {
      const next = new Map<string, Array<string>>()
      for (const text of rest) {
        const code = text.codePointAt(prefix.length)
        if (code === undefined) continue
        const character = String.fromCodePoint(code)
        const group = next.get(character)
        if (group === undefined) next.set(character, [text])
        else group.push(text)
      }
      for (const [character, group] of next) {
        const code = character.codePointAt(0)!
        yield [code, code, { prefix: prefix + character, rest: group }]
      }
    },
    (state) => state.rest.includes(state.prefix),
    100_000,
  )
}

/** Code points of the longest text, or undefined if there is no limit. */
export const longestText = ({ states }: Automaton): number | undefined => {
  const left = states.map((_) => 0)
  for (const state of states) for (const [, , to] of state.edges) left[to]!++
  const longest = states.map(() => 0)
  const queue = left[0] === 0 ? [0] : []
  let done = 0
  for (let i = queue.pop(); i !== undefined; i = queue.pop()) {
    done++
    for (const [, , to] of states[i]!.edges) {
      longest[to] = Math.max(longest[to]!, longest[i]! + 1)
      left[to]!--
      if (left[to] === 0) queue.push(to)
    }
  }
  return done === states.length ? Math.max(...longest) : undefined
}

/** All texts of an automaton, or undefined if there are more than `most`. */
export const allTexts = (automaton: Automaton, most: number): ReadonlyArray<string> | undefined => {
  const found: Array<string> = []
  const queue: Array<readonly [state: number, text: string]> = [[0, ""]]
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const [state, text] = next
    if (automaton.states[state]!.accepts) found.push(text)
    // Every state leads to an accepting one, so each waiting text stands for at least one other.
    if (text.length > automaton.states.length * 2) return undefined
    for (const [from, to, target] of automaton.states[state]!.edges) {
      if (found.length + queue.length + to - from > most) return undefined
      for (let code = to; code >= from; code--) queue.push([target, text + String.fromCodePoint(code)])
    }
  }
  return found.length > most ? undefined : found
}
