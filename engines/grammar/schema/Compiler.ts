// Translates conjunctions of schemas to rules. Each set of schemas that hold together has one rule, so recursion ends.

import type { Automaton, Expression } from "../Expression.ts"
import type { Json, JsonObject } from "../Json.ts"
import { anyRule, anyRuleName } from "./AnyJson.ts"
import { arrayOf } from "./Arrays.ts"
import { not } from "./automata/Automata.ts"
import { anyOfTexts } from "./automata/Texts.ts"
import { Branches } from "./Branches.ts"
import type { CompilationContext } from "./CompilationContext.ts"
import { Disjointness, listedValues } from "./Disjoint.ts"
import { isObject } from "./document/Keywords.ts"
import { at, type Problem, SchemaProblem } from "./document/Problem.ts"
import type { SchemaDocument } from "./document/SchemaDocument.ts"
import { meantTypes, typeBits } from "./document/Types.ts"
import { Evaluator } from "./Evaluate.ts"
import { choice, isPrintable, type Notation, printed, rule, text } from "./JsonText.ts"
import { Leaves } from "./Leaves.ts"
import { objectOf } from "./Objects.ts"

export class Compiler implements CompilationContext {
  readonly document: SchemaDocument
  readonly leaves: Leaves
  readonly notation: Notation
  readonly rules = new Map<string, Expression>()
  /** Why a rule may have no sentence. */
  readonly notes = new Map<string, Problem>()
  readonly #prefix: string
  readonly #branches: Branches
  readonly #evaluator: Evaluator
  readonly #disjointness: Disjointness
  readonly #names = new Map<string, string>()
  readonly #queue: Array<readonly [name: string, schemas: ReadonlyArray<Json>]> = []
  readonly #checkedOneOf = new Set<JsonObject>()
  #count = 0
  #current = ""

  constructor(document: SchemaDocument, notation: Notation, prefix: string) {
    this.document = document
    this.notation = notation
    this.#prefix = prefix
    this.leaves = new Leaves(document, notation)
    this.#branches = new Branches(document, (schema, alternatives) => this.#checkOneOf(schema, alternatives))
    this.#evaluator = new Evaluator(document, this.leaves)
    this.#disjointness = new Disjointness(this.#branches, this.#evaluator, this.leaves)
  }

  /** Translates a schema and all that its rules refer to. */
  compile(root: Json): Expression {
    const start = this.rule([root])
    for (let next = this.#queue.pop(); next !== undefined; next = this.#queue.pop()) {
      const [name, schemas] = next
      this.#current = name
      this.define(name, this.#value(schemas))
    }
    return start
  }

  rule(schemas: ReadonlyArray<Json>): Expression {
    if (schemas.includes(false)) return choice([])
    const objects = [...new Set(schemas.filter(isObject))]
    objects.sort((a, b) => this.document.number(a) - this.document.number(b))
    if (objects.length === 0) return this.#any()
    const key = objects.map((schema) => this.document.number(schema)).join(",")
    let name = this.#names.get(key)
    if (name === undefined) {
      name = this.freshName()
      this.#names.set(key, name)
      this.#queue.push([name, objects])
      this.notes.set(name, { path: this.document.path(objects[0]!), detail: "no value fits the schema" })
    }
    return rule(name)
  }

  freshName(): string {
    return `${this.#prefix}${this.#count++}`
  }

  define(name: string, expression: Expression): void {
    this.document.work.spend(sizeOf(expression), this.notes.get(name)?.path ?? "")
    this.rules.set(name, expression)
  }

  note(path: string, detail: string): void {
    this.notes.set(this.#current, { path, detail })
  }

  strings(schemas: ReadonlyArray<Json>): Automaton {
    const path = this.document.path(schemas[0] ?? true)
    const parts = this.#branches
      .of(schemas)
      .filter((branch) => (branch.types & typeBits.string) !== 0)
      .map(({ members }) => {
        const values = this.#listed(members)
        return values === undefined
          ? this.leaves.stringAutomaton(members)
          : anyOfTexts(values.filter((value) => typeof value === "string"))
      })
    return parts.length === 1
      ? parts[0]!
      : not(parts.map(not).reduce((a, b) => this.leaves.combined(a, b, path), not(anyOfTexts([]))))
  }

  values(schemas: ReadonlyArray<Json>): ReadonlyArray<Json> | undefined {
    const found: Array<Json> = []
    for (const { members } of this.#branches.of(schemas)) {
      const values = this.#listed(members)
      if (values === undefined) return undefined
      found.push(...values)
    }
    return found
  }

  #listed(members: ReadonlyArray<JsonObject>): ReadonlyArray<Json> | undefined {
    return listedValues(members)?.filter((value) =>
      members.every((schema) => this.#evaluator.valid(value, schema)),
    )
  }

  #any(): Expression {
    const name = anyRuleName(this.#prefix)
    if (!this.rules.has(name)) this.define(name, anyRule(this.#prefix, this.notation))
    return rule(name)
  }

  #value(schemas: ReadonlyArray<Json>): Expression {
    const texts = new Set<string>()
    const others: Array<Expression> = []
    for (const { members, types } of this.#branches.of(schemas)) {
      const values = this.#listed(members)
      if (values === undefined) others.push(...this.#typed(members, meantTypes(members, types)))
      else
        for (const value of values)
          if (isPrintable(value, this.notation)) texts.add(printed(value, this.notation))
    }
    return choice([...[...texts].filter((value) => value.isWellFormed()).map(text), ...others])
  }

  #typed(members: ReadonlyArray<JsonObject>, types: number): ReadonlyArray<Expression> {
    const ways: Array<Expression | undefined> = []
    if ((types & typeBits.object) !== 0) ways.push(objectOf(this, members))
    if ((types & typeBits.array) !== 0) ways.push(arrayOf(this, members))
    if ((types & typeBits.string) !== 0) ways.push(this.leaves.string(members))
    if ((types & typeBits.integer) !== 0) ways.push(this.leaves.number(members, (types & 8) === 0))
    if ((types & typeBits.boolean) !== 0) ways.push(text("true"), text("false"))
    if ((types & typeBits.null) !== 0) ways.push(text("null"))
    return ways.filter((way) => way !== undefined)
  }

  /** A `oneOf` is held like an `anyOf` if no value fits two alternatives. When not strict, in any case. */
  #checkOneOf(schema: JsonObject, alternatives: ReadonlyArray<Json>): void {
    if (!this.document.strict || this.#checkedOneOf.has(schema)) return
    this.#checkedOneOf.add(schema)
    const path = this.document.path(schema)
    alternatives.forEach((alternative, i) => {
      for (let j = 0; j < i; j++) {
        this.document.work.spend(20, path)
        if (this.#disjointness.schemas([alternatives[j]!], [alternative])) continue
        throw new SchemaProblem(
          at(path, "oneOf", i),
          `a value may fit this alternative and alternative ${j} too: use anyOf, or tell them apart by a constant`,
        )
      }
    })
  }
}

const sizeOf = (expression: Expression): number => {
  switch (expression.kind) {
    case "sequence":
    case "choice":
      return 1 + expression.of.reduce((sum, part) => sum + sizeOf(part), 0)
    case "repeat":
      return 1 + sizeOf(expression.of)
    case "automaton":
      return expression.automaton.states.length
    default:
      return 1
  }
}
