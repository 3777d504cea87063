// Sets of code points as sorted ranges that do not touch. Surrogates are never part of a set: they cannot stand in UTF-8.

import type { CodePoints } from "../../Expression.ts"

export type Ranges = ReadonlyArray<CodePoints>

export const allCodePoints: Ranges = [
  [0, 0xd7ff],
  [0xe000, 0x10ffff],
]

const lastCodePoint = 0x10ffff

/** Sorts, joins and removes surrogates. */
export const normalize = (ranges: Ranges): Ranges => {
  const sorted = [...ranges].sort((a, b) => a[0] - b[0])
  const joined: Array<[number, number]> = []
  for (const [from, to] of sorted) {
    const last = joined.at(-1)
    if (last !== undefined && from <= last[1] + 1) last[1] = Math.max(last[1], to)
    else joined.push([from, to])
  }
  return joined.flatMap(([from, to]): Ranges => {
    if (to < 0xd800 || from > 0xdfff) return [[from, to]]
    const parts: Array<CodePoints> = []
    if (from < 0xd800) parts.push([from, 0xd7ff])
    if (to > 0xdfff) parts.push([0xe000, to])
    return parts
  })
}

export const complement = (ranges: Ranges): Ranges => {
  const gaps: Array<CodePoints> = []
  let next = 0
  for (const [from, to] of normalize(ranges)) {
    if (from > next) gaps.push([next, from - 1])
    next = to + 1
  }
  if (next <= lastCodePoint) gaps.push([next, lastCodePoint])
  return normalize(gaps)
}

export const digits: Ranges = [[0x30, 0x39]]

export const wordCharacters: Ranges = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
]

/** What `\s` of ECMAScript matches. */
export const whiteSpace: Ranges = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]

/** What `.` matches. */
export const notLineBreaks: Ranges = complement([
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
])

/** Every code point once, in order, without surrogates. Built at first use: 4 MB of UTF-16. */
let everyCodePoint: string | undefined
const allText = (): string => {
  if (everyCodePoint === undefined) {
    const pieces: Array<string> = []
    for (let from = 0; from <= lastCodePoint; from += 0x400) {
      if (from >= 0xd800 && from <= 0xdfff) continue
      pieces.push(String.fromCodePoint(...Array.from({ length: 0x400 }, (_, i) => from + i)))
    }
    everyCodePoint = pieces.join("")
  }
  return everyCodePoint
}

const properties = new Map<string, Ranges>()
/** There are a few hundred properties; the cache keeps the most recent ones. */
const cachedProperties = 64

/** The code points of `\p{…}` or `\P{…}`, by this Node's version of Unicode. Throws a SyntaxError if it does not know it. */
export const propertyRanges = (source: string): Ranges => {
  const known = properties.get(source)
  if (known !== undefined) return known
  const found: Array<CodePoints> = []
  for (const match of allText().matchAll(new RegExp(`${source}+`, "gu"))) {
    const text = match[0]
    const last = text.codePointAt(text.length - (text.codePointAt(text.length - 2)! > 0xffff ? 2 : 1))!
    found.push([text.codePointAt(0)!, last])
  }
  const ranges = normalize(found)
  if (properties.size >= cachedProperties) properties.delete(properties.keys().next().value!)
  properties.set(source, ranges)
  return ranges
}
