// Patterns of JSON Schema (ECMA-262 regular expressions with the flag `u`) to automata over code points.

import { type AST, RegExpParser } from "@eslint-community/regexpp"
import { type Checkpoint, noCheckpoint } from "../../Checkpoint.ts"
import type { Automaton } from "../../Expression.ts"
import { both, not, TooManyStates } from "./Automata.ts"
import {
  allCodePoints,
  complement,
  digits,
  normalize,
  notLineBreaks,
  propertyRanges,
  type Ranges,
  whiteSpace,
  wordCharacters,
} from "./CodePointRanges.ts"
import { Nfa } from "./Nfa.ts"

/** Why a pattern has no automaton, as a sentence for callers. */
export class PatternProblem extends Error {
  /** It is no regular expression at all. */
  readonly invalid: boolean

  constructor(message: string, invalid = false) {
    super(message)
    this.invalid = invalid
  }
}

/** Longest pattern in characters. */
const maxPattern = 4_000
/** Each lookahead is an automaton of its own. */
const maxLookaheads = 4

const setRanges = (node: AST.CharacterSet): Ranges => {
  switch (node.kind) {
    case "any":
      return notLineBreaks
    case "digit":
      return node.negate ? complement(digits) : digits
    case "space":
      return node.negate ? complement(whiteSpace) : whiteSpace
    case "word":
      return node.negate ? complement(wordCharacters) : wordCharacters
    case "property":
      try {
        return propertyRanges(node.raw)
      } catch {
        throw new PatternProblem(`the property ${node.raw.slice(0, 60)} is not known`)
      }
  }
}

const classRanges = (node: AST.CharacterClass): Ranges => {
  const ranges = node.elements.flatMap((element): Ranges => {
    if (element.type === "Character") return [[element.value, element.value]]
    if (element.type === "CharacterClassRange") return [[element.min.value, element.max.value]]
    if (element.type === "CharacterSet") return setRanges(element)
    throw new PatternProblem(`${element.raw.slice(0, 60)} is not supported in a class`)
  })
  return node.negate ? complement(ranges) : normalize(ranges)
}

class Builder {
  readonly nfa = new Nfa()
  /** Sets of characters, also those of copies that repeats make. */
  readonly #sets = new Map<AST.Element, Ranges>()

  #set(element: AST.Character | AST.CharacterSet | AST.CharacterClass): Ranges {
    let ranges = this.#sets.get(element)
    if (ranges === undefined) {
      if (element.type === "Character") ranges = normalize([[element.value, element.value]])
      else ranges = element.type === "CharacterSet" ? setRanges(element) : classRanges(element)
      this.#sets.set(element, ranges)
    }
    return ranges
  }

  alternatives(of: ReadonlyArray<AST.Alternative>, from: number, to: number): void {
    for (const alternative of of) {
      let state = from
      for (const element of alternative.elements) {
        const next = this.nfa.state()
        this.element(element, state, next)
        state = next
      }
      this.nfa.step(state, to)
    }
  }

  element(element: AST.Element, from: number, to: number): void {
    switch (element.type) {
      case "Character":
      case "CharacterSet":
      case "CharacterClass":
        return this.nfa.edge(from, this.#set(element), to)
      case "Group":
        if (element.modifiers !== null) throw new PatternProblem("modifiers of a group are not supported")
        return this.alternatives(element.alternatives, from, to)
      case "CapturingGroup":
        return this.alternatives(element.alternatives, from, to)
      case "Quantifier":
        return this.quantifier(element, from, to)
      case "Assertion":
        return this.assertion(element, from, to)
      case "Backreference":
        throw new PatternProblem(`backreferences (${element.raw.slice(0, 60)}) are not supported`)
      default:
        throw new PatternProblem(`${element.raw.slice(0, 60)} is not supported`)
    }
  }

  quantifier({ element, min, max }: AST.Quantifier, from: number, to: number): void {
    let state = from
    for (let i = 0; i < min; i++) {
      const next = this.nfa.state()
      this.element(element, state, next)
      state = next
    }
    if (max === Number.POSITIVE_INFINITY) {
      const loop = this.nfa.state()
      const next = this.nfa.state()
      this.nfa.step(state, loop)
      this.element(element, loop, next)
      this.nfa.step(next, loop)
      return this.nfa.step(loop, to)
    }
    for (let i = min; i < max; i++) {
      const next = this.nfa.state()
      this.element(element, state, next)
      this.nfa.step(state, to)
      state = next
    }
    this.nfa.step(state, to)
  }

  assertion(assertion: AST.Assertion, from: number, to: number): void {
    switch (assertion.kind) {
      case "start":
      case "end":
        return this.nfa.step(from, to, assertion.kind)
      case "word":
        return this.nfa.step(from, to, assertion.negate ? "noBoundary" : "boundary")
      default:
        throw new PatternProblem(`lookaround (${assertion.raw.slice(0, 60)}) is not supported`)
    }
  }
}

interface Part {
  readonly source: string
  readonly negate: boolean
}

/**
 * A pattern that begins with `^` and lookaheads, as patterns that hold together: `^(?!a)b` is `^b` and not `^a`. Undefined for
 * others.
 */
const lookaheads = ({ alternatives }: AST.Pattern): ReadonlyArray<Part> | undefined => {
  const [first, ...elements] = alternatives.length === 1 ? alternatives[0]!.elements : []
  if (first?.type !== "Assertion" || first.kind !== "start") return undefined
  const parts: Array<Part> = []
  for (const element of elements) {
    if (element.type !== "Assertion" || element.kind !== "lookahead") break
    const source = element.alternatives.map((alternative) => alternative.raw).join("|")
    parts.push({ source: `^(?:${source})`, negate: element.negate })
  }
  if (parts.length === 0) return undefined
  const rest = elements.slice(parts.length).map((element) => element.raw)
  return [{ source: `^${rest.join("")}`, negate: false }, ...parts]
}

const partAutomaton = ({ source, negate }: Part, checkpoint: Checkpoint): Automaton =>
  negate ? not(compile(source, true, checkpoint)) : compile(source, true, checkpoint)

const compile = (source: string, search: boolean, checkpoint: Checkpoint): Automaton => {
  if (source.length > maxPattern)
    throw new PatternProblem(`the pattern has more than ${maxPattern} characters`)
  let tree: AST.Pattern
  try {
    tree = new RegExpParser().parsePattern(source, 0, source.length, { unicode: true })
  } catch (cause) {
    if (cause instanceof RangeError) throw new PatternProblem("the pattern is nested too deeply")
    throw new PatternProblem("the pattern is not a regular expression of ECMAScript with the flag u", true)
  }
  const builder = new Builder()
  const start = builder.nfa.state()
  const final = builder.nfa.state()
  try {
    const count = source.match(/\(\?[=!]/g)?.length ?? 0
    const parts = search && count <= maxLookaheads ? lookaheads(tree) : undefined
    if (parts !== undefined)
      return parts.map((part) => partAutomaton(part, checkpoint)).reduce((a, b) => both(a, b))
    builder.alternatives(tree.alternatives, start, final)
    if (!search) return builder.nfa.deterministic(start, final, false, checkpoint)
    const before = builder.nfa.state()
    builder.nfa.edge(before, allCodePoints, before)
    builder.nfa.step(before, start)
    return builder.nfa.deterministic(before, final, true, checkpoint)
  } catch (cause) {
    if (cause instanceof TooManyStates) {
      throw new PatternProblem(`the pattern needs an automaton of more than ${cause.limit} states`)
    }
    if (cause instanceof RangeError) throw new PatternProblem("the pattern is nested too deeply")
    throw cause
  }
}

/** Texts in which the pattern is found, as JSON Schema says: it is not anchored. Throws a `PatternProblem`. */
export const searchAutomaton = (source: string, checkpoint = noCheckpoint): Automaton =>
  compile(source, true, checkpoint)

/** Texts that the pattern matches from beginning to end. */
export const wholeAutomaton = (source: string): Automaton => compile(source, false, noCheckpoint)
