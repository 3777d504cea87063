// Whether a value is valid under a schema. Used for the values of `enum` and `const`, so that all keywords are held there.

import type { Json, JsonObject } from "../Json.ts"
import { accepts } from "./automata/Automata.ts"
import { magnitudeOf } from "./automata/Decimal.ts"
import { formatAutomaton } from "./automata/Formats.ts"
import { isList, isObject, keyword } from "./document/Keywords.ts"
import { at, SchemaProblem } from "./document/Problem.ts"
import type { SchemaDocument } from "./document/SchemaDocument.ts"
import { typeOfValue, typesOf } from "./document/Types.ts"
import type { Leaves } from "./Leaves.ts"

/** Whether two JSON values are equal; the order of keys does not count. */
const equal = (a: Json, b: Json): boolean => {
  if (isList(a)) return isList(b) && a.length === b.length && a.every((item, i) => equal(item, b[i]!))
  if (!isObject(a)) return a === b
  if (!isObject(b)) return false
  const keys = Object.keys(a)
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && equal(a[key]!, b[key]!))
  )
}

const isMultiple = (value: number, of: number): boolean => {
  const a = magnitudeOf(value)
  const b = magnitudeOf(of)
  const scale = Math.max(a.fraction.length, b.fraction.length)
  const units = (size: typeof a) => BigInt(size.whole + size.fraction.padEnd(scale, "0"))
  return units(a) % units(b) === 0n
}

const within = (schema: JsonObject, low: string, high: string, value: number): boolean => {
  const least = keyword(schema, low)
  const most = keyword(schema, high)
  return !(typeof least === "number" && value < least) && !(typeof most === "number" && value > most)
}

export class Evaluator {
  readonly #document: SchemaDocument
  readonly #leaves: Leaves
  readonly #scalars = new Map<ReadonlyArray<Json>, ReadonlySet<Json>>()

  constructor(document: SchemaDocument, leaves: Leaves) {
    this.#document = document
    this.#leaves = leaves
  }

  valid(value: Json, schema: Json, depth = 0): boolean {
    if (typeof schema === "boolean" || !isObject(schema)) return schema === true
    const path = this.#document.path(schema)
    this.#document.work.spend(1, path)
    if (depth > 500) throw new SchemaProblem(path, "the schema refers to itself without end")
    const inner = (part: Json, other: Json = value): boolean => this.valid(other, part, depth + 1)
    if ((typesOf(schema, this.#document.strict) & typeOfValue(value)) === 0) return false
    const values = keyword(schema, "enum")
    if (isList(values) && !this.#includes(values, value)) return false
    const constant = keyword(schema, "const")
    if (constant !== undefined && !equal(constant, value)) return false
    return (
      this.#applied(schema, inner) &&
      (typeof value !== "number" || this.#number(schema, value)) &&
      (typeof value !== "string" || this.#string(schema, value, path)) &&
      (!isList(value) || this.#array(schema, value, inner)) &&
      (!isObject(value) || this.#object(schema, value, inner, path))
    )
  }

  /** Whether a list has a value equal to this one. */
  #includes(values: ReadonlyArray<Json>, value: Json): boolean {
    let known = this.#scalars.get(values)
    if (known === undefined) {
      known = new Set(values.filter((item) => typeof item !== "object"))
      this.#scalars.set(values, known)
    }
    if (typeof value !== "object") return known.has(value)
    return values.some((item) => equal(item, value))
  }

  #applied(schema: JsonObject, inner: (part: Json) => boolean): boolean {
    const target = this.#document.target(schema)
    if (target !== undefined && !inner(target)) return false
    const list = (name: string): ReadonlyArray<Json> | undefined => {
      const parts = keyword(schema, name)
      return isList(parts) ? parts : undefined
    }
    if (list("allOf")?.every((part) => inner(part)) === false) return false
    if (list("anyOf")?.some((part) => inner(part)) === false) return false
    const oneOf = list("oneOf")
    if (oneOf !== undefined && oneOf.filter((part) => inner(part)).length !== 1) return false
    const not = keyword(schema, "not")
    if (not !== undefined && inner(not)) return false
    const condition = keyword(schema, "if")
    if (condition === undefined) return true
    return inner(keyword(schema, inner(condition) ? "then" : "else") ?? true)
  }

  #number(schema: JsonObject, value: number): boolean {
    const above = keyword(schema, "exclusiveMinimum")
    const below = keyword(schema, "exclusiveMaximum")
    const multipleOf = keyword(schema, "multipleOf")
    const format = keyword(schema, "format")
    if ((format === "int32" || format === "int64") && !Number.isInteger(value)) return false
    if (format === "int32" && (value | 0) !== value) return false
    return (
      within(schema, "minimum", "maximum", value) &&
      !(typeof above === "number" && value <= above) &&
      !(typeof below === "number" && value >= below) &&
      !(typeof multipleOf === "number" && !isMultiple(value, multipleOf))
    )
  }

  #string(schema: JsonObject, value: string, path: string): boolean {
    if (!within(schema, "minLength", "maxLength", [...value].length)) return false
    const pattern = keyword(schema, "pattern")
    if (typeof pattern === "string" && !accepts(this.#leaves.pattern(pattern, at(path, "pattern")), value)) {
      return false
    }
    const format = keyword(schema, "format")
    const automaton = typeof format === "string" ? formatAutomaton(format) : undefined
    return automaton === undefined || accepts(automaton, value)
  }

  #array(
    schema: JsonObject,
    value: ReadonlyArray<Json>,
    inner: (part: Json, other: Json) => boolean,
  ): boolean {
    if (!within(schema, "minItems", "maxItems", value.length)) return false
    const items = keyword(schema, "items")
    const prefix = keyword(schema, "prefixItems") ?? (isList(items) ? items : [])
    const first = isList(prefix) ? prefix : []
    const others = items === undefined || isList(items) ? true : items
    if (!value.every((item, i) => inner(first[i] ?? others, item))) return false
    const contains = keyword(schema, "contains")
    if (contains !== undefined) {
      const count = value.filter((item) => inner(contains, item)).length
      const least = keyword(schema, "minContains") ?? 1
      const most = keyword(schema, "maxContains")
      if ((typeof least === "number" && count < least) || (typeof most === "number" && count > most))
        return false
    }
    if (keyword(schema, "uniqueItems") !== true) return true
    return value.every((item, i) => value.slice(0, i).every((other) => !equal(item, other)))
  }

  #object(
    schema: JsonObject,
    value: JsonObject,
    inner: (part: Json, other?: Json) => boolean,
    path: string,
  ): boolean {
    const keys = Object.keys(value)
    if (!within(schema, "minProperties", "maxProperties", keys.length)) return false
    const required = keyword(schema, "required")
    const has = (name: Json) => typeof name === "string" && Object.hasOwn(value, name)
    if (isList(required) && !required.every(has)) return false
    const names = keyword(schema, "propertyNames")
    if (names !== undefined && !keys.every((key) => inner(names, key))) return false
    const dependentRequired = keyword(schema, "dependentRequired")
    if (isObject(dependentRequired)) {
      for (const [key, others] of Object.entries(dependentRequired)) {
        if (has(key) && isList(others) && !others.every(has)) return false
      }
    }
    const dependentSchemas = keyword(schema, "dependentSchemas")
    if (isObject(dependentSchemas)) {
      for (const [key, part] of Object.entries(dependentSchemas)) if (has(key) && !inner(part)) return false
    }
    const properties = keyword(schema, "properties")
    const patterns = keyword(schema, "patternProperties")
    return keys.every((key) => {
      const own = isObject(properties) ? keyword(properties, key) : undefined
      const matched = Object.entries(isObject(patterns) ? patterns : {}).filter(([source]) =>
        accepts(this.#leaves.pattern(source, at(path, "patternProperties", source)), key),
      )
      if (own === undefined && matched.length === 0) {
        return inner(keyword(schema, "additionalProperties") ?? true, value[key]!)
      }
      return (
        (own === undefined || inner(own, value[key]!)) &&
        matched.every(([, part]: readonly [string, Json]) => inner(part, value[key]!))
      )
    })
  }
}
