// A conjunction of schemas without references and alternatives: each branch is a list of schemas that hold together.

import type { Json, JsonObject } from "../Json.ts"
import { isList, isObject, keyword } from "./document/Keywords.ts"
import { at, SchemaProblem } from "./document/Problem.ts"
import type { SchemaDocument } from "./document/SchemaDocument.ts"
import { allTypes, typesOf } from "./document/Types.ts"

export interface Branch {
  /** All of them hold. Their `$ref`, `allOf`, `anyOf` and `oneOf` are resolved: the schemas they name are in the list. */
  readonly members: ReadonlyArray<JsonObject>
  /** Bits of the types that are left. */
  readonly types: number
}

/** Most combinations of alternatives for one value. */
const maxBranches = 1_000

export class Branches {
  readonly #document: SchemaDocument
  readonly #checkOneOf: (schema: JsonObject, alternatives: ReadonlyArray<Json>) => void

  /** `checkOneOf` throws if the alternatives of a `oneOf` cannot be treated like those of an `anyOf`. */
  constructor(
    document: SchemaDocument,
    checkOneOf: (schema: JsonObject, alternatives: ReadonlyArray<Json>) => void,
  ) {
    this.#document = document
    this.#checkOneOf = checkOneOf
  }

  /** The branches of a conjunction. None: no value fits. */
  of(schemas: ReadonlyArray<Json>): ReadonlyArray<Branch> {
    let branches: ReadonlyArray<Branch> = [{ members: [], types: allTypes }]
    for (const schema of schemas) branches = this.#with(branches, schema, new Set())
    return branches
  }

  /** `active`: the schemas whose references are being followed. */
  #with(branches: ReadonlyArray<Branch>, schema: Json, active: Set<JsonObject>): ReadonlyArray<Branch> {
    if (schema === true || branches.length === 0) return branches
    if (!isObject(schema)) return []
    const path = this.#document.path(schema)
    if (active.has(schema)) {
      throw new SchemaProblem(path, "the schema refers to itself without end: no value is ever reached")
    }
    const types = typesOf(schema, this.#document.strict)
    let all: ReadonlyArray<Branch> = branches.flatMap((branch): ReadonlyArray<Branch> => {
      if (branch.members.includes(schema)) return [branch]
      const left = branch.types & types
      return left === 0 ? [] : [{ members: [...branch.members, schema], types: left }]
    })
    this.#document.work.spend(branches.length, path)
    active.add(schema)
    const target = this.#document.target(schema)
    if (target !== undefined) all = this.#with(all, target, active)
    const allOf = keyword(schema, "allOf")
    if (isList(allOf)) for (const part of allOf) all = this.#with(all, part, active)
    for (const name of ["anyOf", "oneOf"] as const) {
      const alternatives = keyword(schema, name)
      if (!isList(alternatives)) continue
      if (name === "oneOf") this.#checkOneOf(schema, alternatives)
      all = alternatives.flatMap((alternative) => this.#with(all, alternative, active))
      if (all.length > maxBranches) {
        throw new SchemaProblem(
          at(path, name),
          `there are more than ${maxBranches} combinations of alternatives`,
        )
      }
    }
    active.delete(schema)
    return all
  }
}
