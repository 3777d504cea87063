// JSON as text that a reply may have: printed values, strings of an automaton, and any value at all.

import type { Automaton, CodePoints, Expression } from "../Expression.ts"
import type { Json, JsonObject } from "../Json.ts"
import { plainKey, sortedKeys } from "../PlainKeys.ts"
import { trimmed } from "./automata/Automata.ts"

/**
 * How values are written. `compact` is `{"a":1,"b":["x"]}`, `spaced` is `{"a": 1, "b": ["x"]}`; with the marker `<m>` it is
 * `{a:1,b:[<m>x<m>]}`.
 */
export type Notation = "compact" | "spaced" | { readonly marker: string }

export const comma = (notation: Notation): string => (notation === "spaced" ? ", " : ",")
export const colon = (notation: Notation): string => (notation === "spaced" ? ": " : ":")

export const text = (value: string): Expression => ({ kind: "text", text: value })
export const sequence = (...of: ReadonlyArray<Expression>): Expression => ({ kind: "sequence", of })
export const choice = (of: ReadonlyArray<Expression>): Expression =>
  of.length === 1 ? of[0]! : { kind: "choice", of }
export const optional = (of: Expression): Expression => ({ kind: "repeat", of, least: 0, most: 1 })
export const rule = (name: string): Expression => ({ kind: "rule", name })

/** The key of a member and what separates it from the value. */
export const printedKey = (key: string, notation: Notation): string =>
  (typeof notation === "object" ? key : JSON.stringify(key)) + colon(notation)

/** Whether a value can be written in this notation, so that it is read as the same value. */
export const isPrintable = (value: Json, notation: Notation): boolean => {
  if (typeof notation === "string") return true
  if (typeof value === "string") return !value.includes(notation.marker)
  if (typeof value !== "object" || value === null) return true
  if (Array.isArray(value)) return value.every((item: Json) => isPrintable(item, notation))
  return Object.entries(value).every(
    ([key, item]: [string, Json]) => plainKey.test(key) && isPrintable(item, notation),
  )
}

/** A value as `JSON.stringify` prints it, but in this notation. */
export const printed = (value: Json, notation: Notation): string => {
  if (Array.isArray(value)) {
    return `[${value.map((item: Json) => printed(item, notation)).join(comma(notation))}]`
  }
  if (typeof value === "string" && typeof notation === "object")
    return notation.marker + value + notation.marker
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const object = value as JsonObject
  const keys = typeof notation === "object" ? sortedKeys(Object.keys(object)) : Object.keys(object)
  const members = keys.map((key) => printedKey(key, notation) + printed(object[key]!, notation))
  return `{${members.join(comma(notation))}}`
}

const QUOTE = 0x22
const backslash = 0x5c
const escapes: ReadonlyMap<number, number> = new Map([
  [QUOTE, QUOTE],
  [backslash, backslash],
  [0x08, 0x62],
  [0x0c, 0x66],
  [0x0a, 0x6e],
  [0x0d, 0x72],
  [0x09, 0x74],
])
/** What a JSON string may hold without an escape. */
export const unescaped: ReadonlyArray<CodePoints> = [
  [0x20, 0x21],
  [0x23, 0x5b],
  [0x5d, 0xd7ff],
  [0xe000, 0x10ffff],
]

interface State {
  readonly accepts: boolean
  readonly edges: Array<readonly [from: number, to: number, state: number]>
}

/**
 * The JSON strings, with their quotes, whose values an automaton accepts. Escapes are the short ones; control characters
 * that have none are left out, unless `control`: then they are printed like `\u001f`.
 */
export const quoted = (values: Automaton, control = false): Automaton => {
  const states: Array<State> = [{ accepts: false, edges: [[QUOTE, QUOTE, 1]] }]
  states.push(...escaped(values, control, 1))
  const end = states.push({ accepts: true, edges: [] }) - 1
  values.states.forEach((state, i) => {
    if (state.accepts) states[1 + i]!.edges.push([QUOTE, QUOTE, end])
  })
  return trimmed(states)
}

/** Like `quoted`, but what stands between the quotes. */
export const unquoted = (values: Automaton): Automaton =>
  trimmed(
    escaped(values, false, 0).map((state, i) => ({
      ...state,
      accepts: values.states[i]?.accepts ?? false,
    })),
  )

/** The states of an automaton, in their order, with escapes; further states behind them. `base` is the number of the first. */
const escaped = (values: Automaton, control: boolean, base: number): ReadonlyArray<State> => {
  const states: Array<State> = values.states.map(() => ({ accepts: false, edges: [] }))
  const add = (): number => states.push({ accepts: false, edges: [] }) - 1
  values.states.forEach((state, i) => {
    const { edges } = states[i]!
    let escape = -1
    const next = (from: number, letter: number): number => {
      const known = states[from]!.edges.find(([first]) => first === letter)
      if (known !== undefined) return known[2] - base
      const to = add()
      states[from]!.edges.push([letter, letter, base + to])
      return to
    }
    for (const [from, to, target] of state.edges) {
      for (const [low, high] of unescaped) {
        if (from <= high && to >= low) edges.push([Math.max(from, low), Math.min(to, high), base + target])
      }
      for (let code = from; code <= Math.min(to, backslash); code++) {
        const letter = escapes.get(code)
        if (letter === undefined && (code >= 0x20 || !control)) continue
        if (escape < 0) {
          escape = add()
          edges.push([backslash, backslash, base + escape])
        }
        if (letter !== undefined) states[escape]!.edges.push([letter, letter, base + target])
        else {
          const digits = code.toString(16).padStart(4, "0")
          let last = escape
          for (const digit of `u${digits.slice(0, 3)}`) last = next(last, digit.charCodeAt(0))
          const digit = digits.charCodeAt(3)
          states[last]!.edges.push([digit, digit, base + target])
        }
      }
    }
  })
  return states
}
