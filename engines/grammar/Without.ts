// Texts that lack certain characters, or another text.
import type { Automaton, CodePoints } from "./Expression.ts"

/** All of Unicode except these characters. */
export const allExcept = (characters: ReadonlyArray<string>): ReadonlyArray<CodePoints> => {
  const codes = characters.map((character) => character.codePointAt(0) ?? 0).toSorted((a, b) => a - b)
  const ranges: Array<CodePoints> = []
  let from = 0
  for (const code of [...codes, 0xd800]) {
    if (code > 0xd800) break
    if (code > from) ranges.push([from, code - 1])
    from = code + 1
  }
  from = 0xe000
  for (const code of [...codes.filter((at) => at >= 0xe000), 0x110000]) {
    if (code > from) ranges.push([from, code - 1])
    from = code + 1
  }
  return ranges
}

type Edge = readonly [from: number, to: number, state: number]

/** Any text in which this text does not occur. Its characters are ASCII. */
export const without = (closer: string): Automaton => {
  const characters = [...new Set(closer)]
  /** Length of the longest beginning of the closer at the end of the text. */
  const after = (seen: string): number => {
    let length = Math.min(closer.length, seen.length)
    while (length > 0 && !seen.endsWith(closer.slice(0, length))) length--
    return length
  }
  const states = [...closer].map((_, at) => {
    const edges: Array<Edge> = allExcept(characters).map(([from, to]) => [from, to, 0])
    for (const character of characters) {
      const state = after(closer.slice(0, at) + character)
      const code = character.charCodeAt(0)
      if (state < closer.length) edges.push([code, code, state])
    }
    return { accepts: true, edges: edges.toSorted(([a], [b]) => a - b) }
  })
  return { states }
}
