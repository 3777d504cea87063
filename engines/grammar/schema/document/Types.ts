// Sets of JSON types as bits. Integers and other numbers have one bit each.

import type { Json, JsonObject } from "../../Json.ts"
import type { TypeName } from "./Contradictions.ts"
import { isList, isObject, keyword } from "./Keywords.ts"

export const typeBits: Readonly<Record<TypeName, number>> = {
  null: 1,
  boolean: 2,
  integer: 4,
  number: 12,
  string: 16,
  array: 32,
  object: 64,
}

export const allTypes = 127

const bitsOf = (name: Json): number =>
  typeof name === "string" && Object.hasOwn(typeBits, name) ? typeBits[name as TypeName] : 0

/** The types that the keyword `type` allows. `nullable` of OpenAPI counts when not strict. */
export const typesOf = (schema: JsonObject, strict: boolean): number => {
  const type = keyword(schema, "type")
  if (type === undefined) return allTypes
  const bits = (isList(type) ? type : [type]).reduce<number>((sum, name) => sum | bitsOf(name), 0)
  return !strict && keyword(schema, "nullable") === true ? bits | typeBits.null : bits
}

export const typeOfValue = (value: Json): number => {
  if (value === null) return typeBits.null
  if (typeof value === "boolean") return typeBits.boolean
  if (typeof value === "number") return Number.isInteger(value) ? typeBits.integer : 8
  if (typeof value === "string") return typeBits.string
  return isObject(value) ? typeBits.object : typeBits.array
}

const concerned: ReadonlyArray<readonly [bits: number, keywords: ReadonlyArray<string>]> = [
  [
    typeBits.object,
    [
      "properties",
      "required",
      "additionalProperties",
      "patternProperties",
      "propertyNames",
      "minProperties",
      "maxProperties",
      "dependentRequired",
      "dependentSchemas",
      "unevaluatedProperties",
    ],
  ],
  [
    typeBits.array,
    ["items", "prefixItems", "minItems", "maxItems", "contains", "uniqueItems", "unevaluatedItems"],
  ],
  [typeBits.string, ["minLength", "maxLength", "pattern", "format"]],
  [typeBits.number, ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]],
]

/**
 * The types for which a model writes values. A schema without `type` is valid for all other types than those that its
 * keywords concern, but a writer of `properties` means objects: only the concerned types are left. All, if no keyword
 * concerns a type.
 */
export const meantTypes = (members: ReadonlyArray<JsonObject>, types: number): number => {
  if (members.some((schema) => keyword(schema, "type") !== undefined)) return types
  const meant = concerned.reduce(
    (sum, [bits, names]) =>
      names.some((name) => members.some((schema) => keyword(schema, name) !== undefined)) ? sum | bits : sum,
    0,
  )
  return (meant & types) === 0 ? types : meant & types
}
