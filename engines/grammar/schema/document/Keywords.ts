// The keywords of JSON Schema 2020-12: which values they take, and which of them the rules hold.

import type { Json, JsonObject } from "../../Json.ts"
import { at, SchemaProblem } from "./Problem.ts"

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const isList = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value)

/** A keyword's value; keys that objects inherit do not count. */
export const keyword = (schema: JsonObject, name: string): Json | undefined =>
  Object.hasOwn(schema, name) ? schema[name] : undefined

type Shape =
  | "schema"
  | "schemas"
  | "schemaMap"
  | "count"
  | "number"
  | "string"
  | "strings"
  | "boolean"
  | "any"

/** By keyword, from the keywords of each shape. */
const shapes = (keywords: Readonly<Partial<Record<Shape, string>>>): ReadonlyMap<string, Shape> =>
  new Map(
    Object.entries(keywords).flatMap(([shape, names]) =>
      names.split(" ").map((name) => [name, shape as Shape] as const),
    ),
  )

/** Keywords that the rules hold, in both modes. */
const held = shapes({
  string: "$ref pattern format",
  any: "type enum const",
  schemas: "allOf anyOf oneOf prefixItems",
  schemaMap: "properties patternProperties",
  strings: "required",
  schema: "additionalProperties propertyNames items",
  count: "minProperties maxProperties minItems maxItems minLength maxLength",
  number: "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
})

/** Keywords that narrow a schema and that the rules do not hold, except on values of an `enum` or `const`. */
const notHeld = shapes({
  schema: "not if then else contains unevaluatedItems unevaluatedProperties",
  count: "minContains maxContains",
  boolean: "uniqueItems",
  any: "dependentRequired",
  schemaMap: "dependentSchemas",
  string: "$dynamicRef",
})

/** Keywords that do not change which values are valid. */
const annotations: ReadonlySet<string> = new Set(
  (
    "$schema $id $anchor $dynamicAnchor $vocabulary $comment $defs definitions title " +
    "description default example examples deprecated readOnly writeOnly contentEncoding contentMediaType contentSchema"
  ).split(" "),
)

const isSchema = (value: Json): boolean => typeof value === "boolean" || isObject(value)

const fits: Readonly<Record<Shape, readonly [check: (value: Json) => boolean, expected: string]>> = {
  any: [() => true, ""],
  schema: [isSchema, "must be a schema: an object or a boolean"],
  schemas: [
    (value) => isList(value) && value.length > 0 && value.every(isSchema),
    "must be a list of at least one schema",
  ],
  schemaMap: [
    (value) => isObject(value) && Object.values(value).every(isSchema),
    "must be an object whose values are schemas",
  ],
  count: [(value) => Number.isSafeInteger(value) && Number(value) >= 0, "must be an integer of at least 0"],
  number: [(value) => typeof value === "number" && Number.isFinite(value), "must be a finite number"],
  string: [(value) => typeof value === "string", "must be a string"],
  strings: [
    (value) => isList(value) && value.every((item) => typeof item === "string"),
    "must be a list of strings",
  ],
  boolean: [(value) => typeof value === "boolean", "must be a boolean"],
}

/** Names in error messages are cut: a caller may send very long ones. */
export const named = (name: string): string =>
  JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name)

/** Checks the keywords of one schema, not of those inside it. */
export const checkKeywords = (schema: JsonObject, path: string, strict: boolean): void => {
  for (const [name, value] of Object.entries(schema)) {
    if (annotations.has(name) || name.startsWith("x-")) continue
    const shape = held.get(name) ?? notHeld.get(name)
    const where = at(path, name.slice(0, 80))
    if (shape === undefined) {
      if (name === "nullable" && !strict) continue
      if (strict) throw new SchemaProblem(where, `the keyword ${named(name)} is not known`)
      continue
    }
    if (name === "items" && isList(value) && !strict) continue
    const [check, expected] = fits[shape]
    if (!check(value)) throw new SchemaProblem(where, expected)
    if (strict && notHeld.has(name) && !harmless(schema, name, value)) {
      throw new SchemaProblem(where, `${named(name)} cannot be held by strict output`)
    }
  }
}

/** Values of keywords that exclude nothing. */
const harmless = (schema: JsonObject, name: string, value: Json): boolean => {
  switch (name) {
    case "uniqueItems":
      return value === false || Number(keyword(schema, "maxItems") ?? 2) <= 1
    case "then":
    case "else":
      return keyword(schema, "if") === undefined
    case "minContains":
    case "maxContains":
      return keyword(schema, "contains") === undefined
    case "unevaluatedItems":
    case "unevaluatedProperties":
      return value === true
    default:
      return false
  }
}

/** Schemas directly inside a schema, except definitions, with their paths. */
export const subschemas = (
  schema: JsonObject,
  path: string,
): ReadonlyArray<readonly [schema: Json, path: string]> =>
  Object.entries(schema).flatMap(([name, value]): ReadonlyArray<readonly [Json, string]> => {
    const shape = held.get(name) ?? notHeld.get(name)
    if (shape === "schema" && !isList(value)) return [[value, at(path, name)]]
    if ((shape === "schemas" || name === "items") && isList(value)) {
      return value.map((item, i) => [item, at(path, name, i)] as const)
    }
    if (shape === "schemaMap" && isObject(value)) {
      return Object.entries(value).map(([key, item]) => [item, at(path, name, key)] as const)
    }
    return []
  })
