// Short names for the expressions that call syntax is made of.
import type { Automaton, Expression, ReplyShape, Rules } from "../../../grammar/Expression.ts"
import { allExcept } from "../../../grammar/Without.ts"

export const text = (value: string): Expression => ({ kind: "text", text: value })
export const sequence = (...of: ReadonlyArray<Expression>): Expression => ({ kind: "sequence", of })
export const choice = (of: ReadonlyArray<Expression>): Expression => ({ kind: "choice", of })
const rule = (name: string): Expression => ({ kind: "rule", name })
export const automaton = (of: Automaton): Expression => ({ kind: "automaton", automaton: of })
export const optional = (of: Expression): Expression => ({ kind: "repeat", of, least: 0, most: 1 })
export const any = (of: Expression): Expression => ({ kind: "repeat", of, least: 0, most: undefined })

type Edge = readonly [from: number, to: number, state: number]

/** Any text that does not begin with one of these. Their characters are ASCII. */
const notBeginning = (beginnings: ReadonlyArray<string>): Expression => {
  const prefixes = [...new Set(beginnings.flatMap((text) => [...text].map((_, at) => text.slice(0, at))))]
  const free = prefixes.length
  const states = prefixes.map((prefix) => {
    const next = [
      ...new Set(
        beginnings.filter((text) => text.startsWith(prefix)).map((text) => text.charAt(prefix.length)),
      ),
    ]
    const edges: Array<Edge> = allExcept(next).map(([from, to]) => [from, to, free])
    for (const character of next) {
      const state = prefixes.indexOf(prefix + character)
      const code = character.charCodeAt(0)
      if (state >= 0) edges.push([code, code, state])
    }
    return { accepts: true, edges }
  })
  const everything = allExcept([]).map(([from, to]): Edge => [from, to, free])
  return { kind: "automaton", automaton: { states: [...states, { accepts: true, edges: everything }] } }
}

/** Collects the rules of several tools under names of their own. */
export class RuleBook {
  readonly #rules = new Map<string, Expression>()

  /** Takes over the rules and gives their root. */
  include({ root, rules }: Rules): Expression {
    for (const [name, expression] of rules) this.#rules.set(name, expression)
    return root
  }

  define(name: string, expression: Expression): Expression {
    this.#rules.set(name, expression)
    return rule(name)
  }

  rules(root: Expression): Rules {
    return { root, rules: this.#rules }
  }
}

/**
 * A reply whose calls are `opener` and then `rest`. Where the model decides, calls may follow text, or be the first thing in
 * the reply (`atStart`) with text as the alternative.
 */
export const shapeOf = (
  book: RuleBook,
  { openers, atStart, auto }: { openers: ReadonlyArray<string>; atStart: boolean; auto: boolean },
  rest: Expression,
): ReplyShape => {
  const first = text(openers[0] ?? "")
  if (!auto) return { stages: [], rules: book.rules(sequence(first, rest)) }
  if (!atStart) return { stages: [{ until: openers, mayEnd: true }], rules: book.rules(rest) }
  const begun = choice(openers.map(text))
  return { stages: [], rules: book.rules(choice([sequence(begun, rest), notBeginning(openers)])) }
}

/** The tools of which one may be called, with their indexes. */
export const callable = <T extends { readonly name: string }>(use: {
  readonly tools: ReadonlyArray<T>
  readonly choice: "auto" | "required" | { readonly name: string }
}): ReadonlyArray<readonly [index: number, tool: T]> => {
  const { choice: wanted } = use
  const all = use.tools.map((tool, index): readonly [number, T] => [index, tool])
  return typeof wanted === "string" ? all : all.filter(([, { name }]) => name === wanted.name)
}
