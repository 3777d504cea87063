// JSON Schema 2020-12 to rules: every sentence of the rules is JSON that is valid under the schema. docs/schemas.md says
// what is held, what is refused, and what is left open.

import { type Checkpoint, noCheckpoint } from "../Checkpoint.ts"
import type { Rules } from "../Expression.ts"
import type { Json } from "../Json.ts"
import { TooManyStates } from "./automata/Automata.ts"
import { Compiler } from "./Compiler.ts"
import { type Problem, SchemaProblem, Work } from "./document/Problem.ts"
import { SchemaDocument } from "./document/SchemaDocument.ts"
import type { Notation } from "./JsonText.ts"
import { endingRules, prune, references } from "./Prune.ts"

interface SchemaOptions {
  /** True: what cannot be held exactly is a problem. False: it is left open. */
  readonly strict: boolean
  /** There is no other white space than that of the notation. */
  readonly notation: Notation
  /** Begins the names of all rules. */
  readonly prefix: string
  readonly checkpoint?: Checkpoint
}

/** Units of work for one schema: expressions, states of automata, and comparisons. */
const maxWork = 200_000

export const schemaRules = (
  schema: Json,
  options: SchemaOptions,
): { readonly rules: Rules } | { readonly problem: Problem } => {
  try {
    const document = new SchemaDocument(
      schema,
      options.strict,
      new Work(maxWork, options.checkpoint ?? noCheckpoint),
    )
    const compiler = new Compiler(document, options.notation, options.prefix)
    const rules: Rules = { root: compiler.compile(schema), rules: compiler.rules }
    const ending = endingRules(rules.rules, options.checkpoint)
    const problem = whyEmpty(rules, ending, compiler.notes)
    return problem === undefined ? { rules: prune(rules, ending) } : { problem }
  } catch (cause) {
    if (cause instanceof SchemaProblem) return { problem: cause.problem }
    if (cause instanceof TooManyStates || cause instanceof RangeError) {
      return { problem: { path: "", detail: "the schema is too complex: its rules exceed the limit" } }
    }
    throw cause
  }
}

/** The place to blame if the root has no sentence: a rule that depends on no other empty rule, or a recursion. */
const whyEmpty = (
  { root, rules }: Rules,
  ending: ReadonlySet<string>,
  notes: ReadonlyMap<string, Problem>,
): Problem | undefined => {
  if (root.kind !== "rule")
    return root.kind === "choice" ? { path: "", detail: "no value fits the schema" } : undefined
  if (ending.has(root.name)) return undefined
  let name = root.name
  let problem = notes.get(name)
  const seen = new Set<string>()
  while (!seen.has(name)) {
    seen.add(name)
    problem = notes.get(name) ?? problem
    let next: string | undefined
    references(rules.get(name)!, (used) => {
      if (next === undefined && !ending.has(used)) next = used
    })
    if (next === undefined) return problem
    name = next
  }
  return {
    path: problem?.path ?? "",
    detail: "the schema requires itself without end: no value is ever reached",
  }
}
