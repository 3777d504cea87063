// The rules of a JSON string without its quotes and escapes: call syntax that writes texts plainly needs the values themselves.
import type { Automaton, Expression, Rules } from "./Expression.ts"

type Edge = readonly [from: number, to: number, state: number]
interface State {
  readonly accepts: boolean
  readonly edges: ReadonlyArray<Edge>
}

/** States of all automata of one text. More would be slow to compile. A guess. */
const mostStates = 20_000

const quote = 0x22
const backslash = 0x5c

const short: ReadonlyMap<string, string> = new Map(
  Object.entries({ b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" }),
)

class NotPlain extends Error {}

const stateOf = ({ states }: Automaton, at: number): State => states[at] ?? { accepts: false, edges: [] }

const step = (automaton: Automaton, at: number, code: number): number | undefined =>
  stateOf(automaton, at).edges.find(([from, to]) => code >= from && code <= to)?.[2]

/** The characters that an escape after this state stands for, with the state behind each. */
const unescaped = (
  automaton: Automaton,
  at: number,
): ReadonlyArray<readonly [code: number, state: number]> => {
  const found: Array<readonly [number, number]> = []
  const digits = (state: number, seen: string): void => {
    if (seen.length === 4) {
      found.push([Number.parseInt(seen, 16), state])
      return
    }
    for (const digit of "0123456789abcdef") {
      const next = step(automaton, state, digit.charCodeAt(0))
      if (next !== undefined) digits(next, seen + digit)
    }
  }
  for (const [from, to, next] of stateOf(automaton, at).edges)
    for (let code = from; code <= Math.min(to, 0x7f); code++) {
      const letter = String.fromCharCode(code)
      if (letter === "u") digits(next, "")
      else found.push([(short.get(letter) ?? letter).charCodeAt(0), next])
    }
  return found
}

/** What stands between the quotes of an automaton of JSON strings, as plain text. */
const plainStates = (automaton: Automaton): Automaton => {
  const start = step(automaton, 0, quote)
  if (start === undefined) throw new NotPlain()
  const numbers = new Map([[start, 0]])
  const order = [start]
  const numberOf = (state: number): number => {
    const known = numbers.get(state)
    if (known !== undefined) return known
    numbers.set(state, order.length)
    return order.push(state) - 1
  }
  const states: Array<State> = []
  for (let at = 0; at < order.length; at++) {
    if (order.length > mostStates) throw new NotPlain()
    const edges: Array<Edge> = []
    let accepts = false
    for (const [from, to, next] of stateOf(automaton, order[at] ?? 0).edges) {
      if (from <= quote && to >= quote) {
        if (from !== to || !stateOf(automaton, next).accepts) throw new NotPlain()
        accepts = true
      } else if (from <= backslash && to >= backslash) {
        if (from !== to) throw new NotPlain()
        for (const [code, state] of unescaped(automaton, next)) {
          const target = numberOf(state)
          if (!edges.some(([low, high]) => code >= low && code <= high)) edges.push([code, code, target])
        }
      } else edges.push([from, to, numberOf(next)])
    }
    states.push({ accepts, edges })
  }
  return { states }
}

/** Texts that both automata accept. */
const intersection = (a: Automaton, b: Automaton): Automaton => {
  const numbers = new Map<string, number>()
  const order: Array<readonly [number, number]> = []
  const numberOf = (left: number, right: number): number => {
    const key = `${left}.${right}`
    const known = numbers.get(key)
    if (known !== undefined) return known
    numbers.set(key, order.length)
    return order.push([left, right]) - 1
  }
  numberOf(0, 0)
  const states: Array<State> = []
  for (let at = 0; at < order.length; at++) {
    if (order.length > mostStates) throw new NotPlain()
    const [left, right] = order[at] ?? [0, 0]
    const edges: Array<Edge> = []
    for (const [from, to, next] of stateOf(a, left).edges)
      for (const [low, high, other] of stateOf(b, right).edges)
        if (Math.max(from, low) <= Math.min(to, high))
          edges.push([Math.max(from, low), Math.min(to, high), numberOf(next, other)])
    states.push({ accepts: stateOf(a, left).accepts && stateOf(b, right).accepts, edges })
  }
  return { states }
}

const isText = (expression: Expression | undefined, text: string): boolean =>
  expression?.kind === "text" && expression.text === text

/** An automaton of the JSON strings that an expression means, if it has one of the forms that schemas of strings give. */
const jsonStrings = (expression: Expression, rules: Rules["rules"], most = 16): Automaton => {
  if (expression.kind === "automaton") return expression.automaton
  const named = expression.kind === "rule" ? rules.get(expression.name) : undefined
  if (named !== undefined && most > 0) return jsonStrings(named, rules, most - 1)
  if (expression.kind === "choice" && expression.of.length === 1 && expression.of[0] !== undefined)
    return jsonStrings(expression.of[0], rules, most)
  if (expression.kind !== "sequence") throw new NotPlain()
  const [open, middle, close] = expression.of
  if (!isText(open, '"') || !isText(close, '"') || expression.of.length !== 3 || middle?.kind !== "repeat")
    throw new NotPlain()
  return quotedTimes(middle)
}

/** A quoted text with a number of characters between two bounds. */
const quotedTimes = ({ of, least, most }: Extract<Expression, { kind: "repeat" }>): Automaton => {
  if (of.kind !== "automaton") throw new NotPlain()
  const { states: inner } = of.automaton
  const count = (most ?? least) + 1
  if (count * inner.length > mostStates) throw new NotPlain()
  // State 0 awaits the opening quote; copy k, from `1 + k * size` on, has seen k characters.
  const size = inner.length
  const end = 1 + count * size
  const states: Array<State> = [{ accepts: false, edges: [[quote, quote, 1]] }]
  for (let copy = 0; copy < count; copy++) {
    const last = copy === count - 1
    const again = last ? (most === undefined ? copy : undefined) : copy + 1
    for (const [at, { edges }] of inner.entries()) {
      const moved: Array<Edge> = []
      for (const [from, to, next] of edges) {
        const done = inner[next]?.accepts === true
        if (again !== undefined) moved.push([from, to, done ? 1 + again * size : 1 + copy * size + next])
      }
      if (at === 0 && copy >= least) moved.push([quote, quote, end])
      states.push({ accepts: false, edges: moved })
    }
  }
  states.push({ accepts: true, edges: [] })
  return { states }
}

/**
 * The plain values of the strings that the rules mean, and that `allowed` accepts too. Undefined if the rules have another
 * form than those that a schema of strings gives, or too many states.
 */
export const plainTexts = ({ root, rules }: Rules, allowed: Automaton): Automaton | undefined => {
  try {
    return intersection(plainStates(jsonStrings(root, rules)), allowed)
  } catch (error) {
    if (error instanceof NotPlain) return undefined
    throw error
  }
}
