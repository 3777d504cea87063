// Expressions of strings and numbers under the keywords of a branch.

import type { Automaton, Expression } from "../Expression.ts"
import type { JsonObject } from "../Json.ts"
import { allExcept, without } from "../Without.ts"
import { anyInteger, anyNumber, anyString, marked, stringCharacter } from "./AnyJson.ts"
import { anyText, both, isEmpty, TooManyStates, withLength } from "./automata/Automata.ts"
import { formatAutomaton, isKnownFormat } from "./automata/Formats.ts"
import { type Bound, numbers } from "./automata/Numbers.ts"
import { PatternProblem, searchAutomaton } from "./automata/Pattern.ts"
import { longestText } from "./automata/Texts.ts"
import { maxCount } from "./document/Contradictions.ts"
import { keyword, named } from "./document/Keywords.ts"
import { at, SchemaProblem } from "./document/Problem.ts"
import type { SchemaDocument } from "./document/SchemaDocument.ts"
import { type Notation, quoted, sequence, text } from "./JsonText.ts"

const numberOf = (schema: JsonObject, name: string): number | undefined => {
  const value = keyword(schema, name)
  return typeof value === "number" ? value : undefined
}

/** The largest value of a keyword in all members, 0 without it. */
export const least = (members: ReadonlyArray<JsonObject>, name: string): number =>
  Math.max(0, ...members.map((schema) => numberOf(schema, name) ?? 0))

/** The smallest value of a keyword in all members. */
export const most = (members: ReadonlyArray<JsonObject>, name: string): number | undefined => {
  const all = members.flatMap((schema) => numberOf(schema, name) ?? [])
  return all.length === 0 ? undefined : Math.min(maxCount, ...all)
}

/**
 * Most characters that are counted in a string between markers in which any character may stand. Longer ones are counted
 * without the first character of the marker, because that needs no states of its own for each character: a string of up to 400
 * characters took 40 ms to compile, and a schema may have many.
 */
const mostCounted = 64

export class Leaves {
  readonly #document: SchemaDocument
  readonly #notation: Notation
  readonly #patterns = new Map<string, Automaton>()

  constructor(document: SchemaDocument, notation: Notation) {
    this.#document = document
    this.#notation = notation
  }

  /**
   * The automaton of a pattern; `path` is that of the keyword. When not strict, every string for a pattern that is valid
   * but cannot be held.
   */
  pattern(source: string, path: string): Automaton {
    const known = this.#patterns.get(source)
    if (known !== undefined) return known
    let automaton = anyText
    try {
      automaton = searchAutomaton(source, this.#document.work.checkpoint)
    } catch (cause) {
      if (!(cause instanceof PatternProblem)) throw cause
      if (this.#document.strict || cause.invalid) throw new SchemaProblem(path, cause.message)
    }
    this.#document.work.spend(automaton.states.length, path)
    this.#patterns.set(source, automaton)
    return automaton
  }

  /** The values of strings that all members allow, apart from their length. */
  #stringValues(members: ReadonlyArray<JsonObject>): Automaton {
    let values = anyText
    const high = most(members, "maxLength")
    for (const schema of members) {
      const path = this.#document.path(schema)
      const format = keyword(schema, "format")
      if (typeof format === "string") {
        if (!isKnownFormat(format) && this.#document.strict) {
          throw new SchemaProblem(at(path, "format"), `the format ${named(format)} is not supported`)
        }
        values = this.combined(values, formatAutomaton(format, high) ?? anyText, at(path, "format"))
      }
      const pattern = keyword(schema, "pattern")
      if (typeof pattern === "string") {
        const where = at(path, "pattern")
        values = this.combined(values, this.pattern(pattern, where), where)
      }
    }
    return values
  }

  combined(a: Automaton, b: Automaton, path: string, limit?: number): Automaton {
    try {
      const result = both(a, b, limit)
      this.#document.work.spend(result.states.length, path)
      return result
    } catch (cause) {
      throw tooLarge(cause, path)
    }
  }

  /** The values of the strings that all members allow. */
  stringAutomaton(members: ReadonlyArray<JsonObject>): Automaton {
    const low = least(members, "minLength")
    const high = most(members, "maxLength")
    if (high !== undefined && low > high) return { states: [{ accepts: false, edges: [] }] }
    const path = this.#document.path(members[0] ?? true)
    try {
      const values = this.#stringValues(members)
      const longest = longestText(values)
      return withLength(
        values,
        low,
        longest !== undefined && high !== undefined && longest <= high ? undefined : high,
      )
    } catch (cause) {
      throw tooLarge(cause, path)
    }
  }

  /** Undefined: no string fits. */
  string(members: ReadonlyArray<JsonObject>): Expression | undefined {
    const low = least(members, "minLength")
    const high = most(members, "maxLength")
    const free = this.#stringValues(members) === anyText
    if (free && low === 0 && high === undefined) return anyString(this.#notation)
    if (typeof this.#notation === "object")
      return this.#marked(members, this.#notation.marker, { low, high, free })
    if (free) {
      if (high !== undefined && low > high) return undefined
      return sequence(text('"'), { kind: "repeat", of: stringCharacter, least: low, most: high }, text('"'))
    }
    const values = this.stringAutomaton(members)
    for (const control of [false, true]) {
      const automaton = quoted(values, control)
      this.#document.work.spend(automaton.states.length, this.#document.path(members[0] ?? true))
      if (!isEmpty(automaton)) return { kind: "automaton", automaton }
    }
    return undefined
  }

  /** Strings between markers. */
  #marked(
    members: ReadonlyArray<JsonObject>,
    marker: string,
    { free, high, low }: { readonly free: boolean; readonly high: number | undefined; readonly low: number },
  ): Expression | undefined {
    if (high !== undefined && low > high) return undefined
    if (free && (high ?? low) > mostCounted) {
      const character: Expression = { kind: "characters", ranges: allExcept([marker.charAt(0)]) }
      const between: Expression = { kind: "repeat", of: character, least: low, most: high }
      return sequence(text(marker), between, text(marker))
    }
    const path = this.#document.path(members[0] ?? true)
    const values = free
      ? withLength(without(marker), low, high)
      : this.combined(this.stringAutomaton(members), without(marker), path)
    this.#document.work.spend(values.states.length, path)
    return isEmpty(values) ? undefined : marked(values, marker)
  }

  /** Undefined: no number fits. */
  number(members: ReadonlyArray<JsonObject>, integer: boolean): Expression | undefined {
    let low: Bound | undefined
    let high: Bound | undefined
    const raise = (value: number | undefined, exclusive: boolean) => {
      if (value === undefined) return
      if (low === undefined || value > low.value || (value === low.value && exclusive))
        low = { value, exclusive }
    }
    const lower = (value: number | undefined, exclusive: boolean) => {
      if (value === undefined) return
      if (high === undefined || value < high.value || (value === high.value && exclusive))
        high = { value, exclusive }
    }
    const multiplesOf: Array<number> = []
    let whole = integer
    for (const schema of members) {
      raise(numberOf(schema, "minimum"), false)
      raise(numberOf(schema, "exclusiveMinimum"), true)
      lower(numberOf(schema, "maximum"), false)
      lower(numberOf(schema, "exclusiveMaximum"), true)
      const multipleOf = numberOf(schema, "multipleOf")
      if (multipleOf !== undefined) multiplesOf.push(multipleOf)
      const format = keyword(schema, "format")
      if (format !== "int32" && format !== "int64") continue
      whole = true
      raise(format === "int32" ? -(2 ** 31) : -(2 ** 63), false)
      lower(format === "int32" ? 2 ** 31 - 1 : 2 ** 63, format === "int64")
    }
    if (low === undefined && high === undefined && multiplesOf.length === 0)
      return whole ? anyInteger : anyNumber
    try {
      const expression = numbers({ integer: whole, least: low, most: high, multiplesOf })
      if (expression !== undefined) this.#document.work.spend(200, "")
      return expression
    } catch (cause) {
      throw tooLarge(cause, this.#document.path(members[0] ?? true))
    }
  }
}

const tooLarge = (cause: unknown, path: string): unknown =>
  cause instanceof TooManyStates
    ? new SchemaProblem(path, `the combination needs an automaton of more than ${cause.limit} states`)
    : cause
