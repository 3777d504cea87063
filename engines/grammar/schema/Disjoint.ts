// Whether no value is valid under both of two schemas. Conservative: true only where it is certain.

import type { Json, JsonObject } from "../Json.ts"
import { both, isEmpty, TooManyStates } from "./automata/Automata.ts"
import type { Branch, Branches } from "./Branches.ts"
import { isList, isObject, keyword } from "./document/Keywords.ts"
import { typeBits } from "./document/Types.ts"
import type { Evaluator } from "./Evaluate.ts"
import { type Leaves, least, most } from "./Leaves.ts"

/** Objects are compared by their required members down to this level. */
const maxLevels = 3

/** The values of the first `enum` or `const` among schemas that hold together. */
export const listedValues = (members: ReadonlyArray<JsonObject>): ReadonlyArray<Json> | undefined => {
  for (const schema of members) {
    const constant = keyword(schema, "const")
    if (constant !== undefined) return [constant]
    const values = keyword(schema, "enum")
    if (isList(values)) return values
  }
  return undefined
}

export class Disjointness {
  readonly #branches: Branches
  readonly #evaluator: Evaluator
  readonly #leaves: Leaves

  constructor(branches: Branches, evaluator: Evaluator, leaves: Leaves) {
    this.#branches = branches
    this.#evaluator = evaluator
    this.#leaves = leaves
  }

  schemas(a: ReadonlyArray<Json>, b: ReadonlyArray<Json>, level = 0): boolean {
    const left = this.#branches.of(a)
    const right = this.#branches.of(b)
    return left.every((one) => right.every((other) => this.#branch(one, other, level)))
  }

  #branch(a: Branch, b: Branch, level: number): boolean {
    const types = a.types & b.types
    if (types === 0) return true
    const valid = (value: Json, members: ReadonlyArray<Json>) =>
      members.every((schema) => this.#evaluator.valid(value, schema))
    const values = listedValues(a.members)
    const others = listedValues(b.members)
    if (values !== undefined) {
      return !values.some((value) => valid(value, a.members) && valid(value, b.members))
    }
    if (others !== undefined) {
      return !others.some((value) => valid(value, a.members) && valid(value, b.members))
    }
    const members = [...a.members, ...b.members]
    if ((types & (typeBits.null | typeBits.boolean)) !== 0) return false
    if ((types & typeBits.number) !== 0 && !noNumber(members)) return false
    if ((types & typeBits.string) !== 0 && !this.#noString(a.members, b.members)) return false
    if ((types & typeBits.array) !== 0 && !counts(members, "Items")) return false
    if ((types & typeBits.object) !== 0 && !this.#noObject(a.members, b.members, level)) return false
    return true
  }

  #noString(a: ReadonlyArray<JsonObject>, b: ReadonlyArray<JsonObject>): boolean {
    const members = [...a, ...b]
    if (counts(members, "Length")) return true
    // The automata of formats leave out rare forms, so they prove nothing.
    if (members.some((schema) => keyword(schema, "format") !== undefined)) return false
    try {
      return isEmpty(both(this.#leaves.stringAutomaton(a), this.#leaves.stringAutomaton(b)))
    } catch (cause) {
      if (cause instanceof TooManyStates) return false
      throw cause
    }
  }

  #noObject(a: ReadonlyArray<JsonObject>, b: ReadonlyArray<JsonObject>, level: number): boolean {
    if (counts([...a, ...b], "Properties")) return true
    const required = (members: ReadonlyArray<JsonObject>) =>
      members.flatMap((schema) => {
        const names = keyword(schema, "required")
        return isList(names) ? names.filter((name) => typeof name === "string") : []
      })
    return [...new Set([...required(a), ...required(b)])].some((name) => {
      const left = valueSchemas(a, name)
      const right = valueSchemas(b, name)
      if (left.includes(false) || right.includes(false)) return true
      return level < maxLevels && this.schemas(left, right, level + 1)
    })
  }
}

/** What the value of a key must fit, as far as it is stated without patterns. */
const valueSchemas = (members: ReadonlyArray<JsonObject>, name: string): ReadonlyArray<Json> =>
  members.map((schema): Json => {
    const properties = keyword(schema, "properties")
    const own = isObject(properties) ? keyword(properties, name) : undefined
    if (own !== undefined) return own
    if (keyword(schema, "patternProperties") !== undefined) return true
    return keyword(schema, "additionalProperties") ?? true
  })

const counts = (members: ReadonlyArray<JsonObject>, of: "Items" | "Length" | "Properties"): boolean =>
  least(members, `min${of}`) > (most(members, `max${of}`) ?? Number.POSITIVE_INFINITY)

const noNumber = (members: ReadonlyArray<JsonObject>): boolean => {
  const bound = (name: string, pick: (...of: ReadonlyArray<number>) => number, otherwise: number) =>
    pick(
      otherwise,
      ...members.flatMap((schema) => {
        const value = keyword(schema, name)
        return typeof value === "number" ? [value] : []
      }),
    )
  const low = bound("minimum", Math.max, Number.NEGATIVE_INFINITY)
  const high = bound("maximum", Math.min, Number.POSITIVE_INFINITY)
  const above = bound("exclusiveMinimum", Math.max, Number.NEGATIVE_INFINITY)
  const below = bound("exclusiveMaximum", Math.min, Number.POSITIVE_INFINITY)
  return low > high || low >= below || above >= high || above >= below
}
