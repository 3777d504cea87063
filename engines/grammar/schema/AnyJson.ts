// Rules for values that no schema describes.

import type { Automaton, CodePoints, Expression, Rules } from "../Expression.ts"
import { plainKeyCharacters } from "../PlainKeys.ts"
import { without } from "../Without.ts"
import { anyText, withLength } from "./automata/Automata.ts"
import { numbers } from "./automata/Numbers.ts"
import {
  choice,
  colon,
  comma,
  type Notation,
  optional,
  quoted,
  rule,
  sequence,
  text,
  unescaped,
  unquoted,
} from "./JsonText.ts"

const repeat = (of: Expression): Expression => ({ kind: "repeat", of, least: 0, most: undefined })

const anyJsonString: Expression = { kind: "automaton", automaton: quoted(anyText) }

/** A string of any length. */
export const anyString = (notation: Notation): Expression =>
  typeof notation === "string" ? anyJsonString : marked(without(notation.marker), notation.marker)

/** A string between markers, whose values an automaton accepts. None of them has the marker inside. */
export const marked = (automaton: Automaton, marker: string): Expression =>
  sequence(text(marker), { kind: "automaton", automaton }, text(marker))

/** One character of a JSON string: the states between the quotes of a string of one character. */
export const stringCharacter: Expression = {
  kind: "automaton",
  automaton: unquoted(withLength(anyText, 1, 1)),
}

const atLeastOne = (characters: ReadonlyArray<CodePoints>): Automaton => ({
  states: [
    { accepts: false, edges: characters.map(([from, to]) => [from, to, 1] as const) },
    { accepts: true, edges: characters.map(([from, to]) => [from, to, 1] as const) },
  ],
})

const freeQuotedKeys = atLeastOne(unescaped)
const freePlainKeys = atLeastOne(plainKeyCharacters)

/** The keys of members that a schema does not name: at least one character, no escapes. */
export const freeKeyValues = (notation: Notation): Automaton =>
  typeof notation === "string" ? freeQuotedKeys : freePlainKeys

const freeQuotedKey: Expression = { kind: "automaton", automaton: quoted(freeQuotedKeys) }
const freePlainKey: Expression = { kind: "automaton", automaton: freePlainKeys }

const numberLimits = { integer: false, least: undefined, most: undefined, multiplesOf: [] }

/** Any number, in at most 19 digits, or 15 if it has a fraction. */
export const anyNumber: Expression = numbers(numberLimits)!
export const anyInteger: Expression = numbers({ ...numberLimits, integer: true })!

/** Members separated by commas, perhaps none, between brackets. */
const list = (opening: string, item: Expression, closing: string, notation: Notation): Expression =>
  sequence(
    text(opening),
    optional(sequence(item, repeat(sequence(text(comma(notation)), item)))),
    text(closing),
  )

const anyArray = (value: Expression, notation: Notation): Expression => list("[", value, "]", notation)

const anyObject = (value: Expression, notation: Notation): Expression =>
  list(
    "{",
    sequence(typeof notation === "string" ? freeQuotedKey : freePlainKey, text(colon(notation)), value),
    "}",
    notation,
  )

export const anyRuleName = (prefix: string): string => `${prefix}any`

/** The rule of any JSON value, for the name that `anyRuleName` gives. */
export const anyRule = (prefix: string, notation: Notation): Expression => {
  const value = rule(anyRuleName(prefix))
  return choice([
    anyString(notation),
    anyNumber,
    text("true"),
    text("false"),
    text("null"),
    anyArray(value, notation),
    anyObject(value, notation),
  ])
}

interface JsonOptions {
  readonly notation: Notation
  /** Begins the names of all rules. */
  readonly prefix: string
}

/** Any JSON object. */
export const jsonObjectRules = ({ notation, prefix }: JsonOptions): Rules => ({
  root: anyObject(rule(anyRuleName(prefix)), notation),
  rules: new Map([[anyRuleName(prefix), anyRule(prefix, notation)]]),
})
