// Removes from rules what can never become a sentence: alternatives that are empty or whose recursion never ends.

import { noCheckpoint } from "../Checkpoint.ts"
import type { Expression, Rules } from "../Expression.ts"
import { isEmpty } from "./automata/Automata.ts"

/** The rules whose sentences end. `refersTo` is asked for each reference. */
const ends = (expression: Expression, ending: ReadonlySet<string>): boolean => {
  switch (expression.kind) {
    case "text":
      return true
    case "characters":
      return expression.ranges.length > 0
    case "automaton":
      return !isEmpty(expression.automaton)
    case "sequence":
      return expression.of.every((part) => ends(part, ending))
    case "choice":
      return expression.of.some((part) => ends(part, ending))
    case "repeat":
      return expression.least === 0 || ends(expression.of, ending)
    case "rule":
      return ending.has(expression.name)
  }
}

/** Calls `visit` with the name of every rule that an expression refers to. */
export const references = (expression: Expression, visit: (name: string) => void): void => {
  if (expression.kind === "rule") visit(expression.name)
  else if (expression.kind === "sequence" || expression.kind === "choice") {
    for (const part of expression.of) references(part, visit)
  } else if (expression.kind === "repeat") references(expression.of, visit)
}

/** Names of the rules that have at least one finite sentence. */
export const endingRules = (rules: Rules["rules"], checkpoint = noCheckpoint): ReadonlySet<string> => {
  const users = new Map<string, Array<string>>()
  for (const [name, expression] of rules) {
    references(expression, (used) => {
      const list = users.get(used)
      if (list === undefined) users.set(used, [name])
      else list.push(name)
    })
  }
  const ending = new Set<string>()
  // A rule that is added while it waits is looked at once, so that one of many members is not looked at for each of them.
  const queue = new Set(rules.keys())
  for (const name of queue) {
    queue.delete(name)
    checkpoint(1)
    if (ending.has(name) || !ends(rules.get(name)!, ending)) continue
    ending.add(name)
    for (const user of users.get(name) ?? []) queue.add(user)
  }
  return ending
}

const empty: Expression = { kind: "text", text: "" }

/** The expression without dead parts. It must have a sentence. */
const pruned = (expression: Expression, ending: ReadonlySet<string>): Expression => {
  switch (expression.kind) {
    case "sequence": {
      const of = expression.of.map((part) => pruned(part, ending)).filter((part) => part !== empty)
      return of.length === 1 ? of[0]! : { kind: "sequence", of }
    }
    case "choice": {
      const of = expression.of.filter((part) => ends(part, ending)).map((part) => pruned(part, ending))
      return of.length === 1 ? of[0]! : { kind: "choice", of }
    }
    case "repeat":
      if (expression.most === 0 || !ends(expression.of, ending)) return empty
      return { ...expression, of: pruned(expression.of, ending) }
    default:
      return expression
  }
}

/** The rules that the root needs, without dead parts. The root must have a sentence. */
export const prune = ({ root, rules }: Rules, ending: ReadonlySet<string>): Rules => {
  const kept = new Map<string, Expression>()
  const prunedRoot = pruned(root, ending)
  const queue: Array<string> = []
  references(prunedRoot, (name) => queue.push(name))
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (kept.has(name)) continue
    const expression = pruned(rules.get(name)!, ending)
    kept.set(name, expression)
    references(expression, (used) => queue.push(used))
  }
  return { root: prunedRoot, rules: kept }
}
