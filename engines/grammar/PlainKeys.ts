// Keys that are written without quotes, as in `{city:<|"|>Rome<|"|>,days:2}`.
import type { CodePoints } from "./Expression.ts"

/** A key that the syntax around it cannot be mistaken for. Quotes, brackets and control characters are left out too. */
export const plainKey = /^[^\p{Cc}"'<>[\\\]{}:,]+$/u

/** The same characters, except that a key which no schema names has no spaces. */
export const plainKeyCharacters: ReadonlyArray<CodePoints> = [
  [0x21, 0x21],
  [0x23, 0x26],
  [0x28, 0x2b],
  [0x2d, 0x39],
  [0x3b, 0x3b],
  [0x3d, 0x3d],
  [0x3f, 0x5a],
  [0x5e, 0x7a],
  [0x7c, 0x7c],
  [0x7e, 0x7e],
  [0xa1, 0xd7ff],
  [0xe000, 0x10ffff],
]

const compared = (a: string, b: string): number => {
  const left = [...a]
  const right = [...b]
  for (const [at, character] of left.entries()) {
    const other = right[at]
    if (other === undefined) return 1
    if (character !== other) return (character.codePointAt(0) ?? 0) - (other.codePointAt(0) ?? 0)
  }
  return left.length - right.length
}

/** Keys in the order in which the templates of these models print them (Python's `dictsort`): upper and lower case are the same. */
export const sortedKeys = (keys: ReadonlyArray<string>): ReadonlyArray<string> =>
  keys.toSorted((a, b) => compared(a.toLowerCase(), b.toLowerCase()))
