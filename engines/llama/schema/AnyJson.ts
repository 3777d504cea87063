// Rules for values that no schema describes.

import type { CodePoints, Expression, Rules } from "../grammar/Expression.ts"
import { anyText, withLength } from "./automata/Automata.ts"
import { numbers } from "./automata/Numbers.ts"
import {
  choice,
  colon,
  comma,
  optional,
  quoted,
  rule,
  type Separators,
  sequence,
  text,
  unquoted,
} from "./JsonText.ts"

const repeat = (of: Expression): Expression => ({ kind: "repeat", of, least: 0, most: undefined })

/** A string of any length. */
export const anyString: Expression = { kind: "automaton", automaton: quoted(anyText) }

/** One character of a JSON string: the states between the quotes of a string of one character. */
export const stringCharacter: Expression = {
  kind: "automaton",
  automaton: unquoted(withLength(anyText, 1, 1)),
}

const unescaped: ReadonlyArray<CodePoints> = [
  [0x20, 0x21],
  [0x23, 0x5b],
  [0x5d, 0xd7ff],
  [0xe000, 0x10ffff],
]

/** The keys of members that a schema does not name: at least one character, no escapes. */
export const freeKeyValues = {
  states: [
    { accepts: false, edges: unescaped.map(([from, to]) => [from, to, 1] as const) },
    { accepts: true, edges: unescaped.map(([from, to]) => [from, to, 1] as const) },
  ],
}

const freeKey: Expression = { kind: "automaton", automaton: quoted(freeKeyValues) }

const numberLimits = { integer: false, least: undefined, most: undefined, multiplesOf: [] }

/** Any number, in at most 19 digits, or 15 if it has a fraction. */
export const anyNumber: Expression = numbers(numberLimits)!
export const anyInteger: Expression = numbers({ ...numberLimits, integer: true })!

/** Members separated by commas, perhaps none, between brackets. */
const list = (opening: string, item: Expression, closing: string, separators: Separators): Expression =>
  sequence(
    text(opening),
    optional(sequence(item, repeat(sequence(text(comma(separators)), item)))),
    text(closing),
  )

export const anyArray = (value: Expression, separators: Separators): Expression =>
  list("[", value, "]", separators)

export const anyObject = (value: Expression, separators: Separators): Expression =>
  list("{", sequence(freeKey, text(colon(separators)), value), "}", separators)

export const anyRuleName = (prefix: string): string => `${prefix}any`

/** The rule of any JSON value, for the name that `anyRuleName` gives. */
export const anyRule = (prefix: string, separators: Separators): Expression => {
  const value = rule(anyRuleName(prefix))
  return choice([
    anyString,
    anyNumber,
    text("true"),
    text("false"),
    text("null"),
    anyArray(value, separators),
    anyObject(value, separators),
  ])
}

export interface JsonOptions {
  readonly separators: Separators
  /** Begins the names of all rules. */
  readonly prefix: string
}

/** Any JSON value, nested to any depth. */
export const jsonValueRules = ({ separators, prefix }: JsonOptions): Rules => ({
  root: rule(anyRuleName(prefix)),
  rules: new Map([[anyRuleName(prefix), anyRule(prefix, separators)]]),
})

/** Any JSON object. */
export const jsonObjectRules = ({ separators, prefix }: JsonOptions): Rules => ({
  root: anyObject(rule(anyRuleName(prefix)), separators),
  rules: new Map([[anyRuleName(prefix), anyRule(prefix, separators)]]),
})
