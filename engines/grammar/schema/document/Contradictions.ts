// Schemas that no value fits, as far as one schema alone shows it. A caller who writes one made a mistake.

import type { JsonObject } from "../../Json.ts"
import { isList, isObject, keyword, named } from "./Keywords.ts"
import { at, SchemaProblem } from "./Problem.ts"

const ordered = [
  ["minLength", "maxLength"],
  ["minItems", "maxItems"],
  ["minProperties", "maxProperties"],
  ["minimum", "maximum"],
  ["exclusiveMinimum", "maximum"],
  ["minimum", "exclusiveMaximum"],
  ["exclusiveMinimum", "exclusiveMaximum"],
] as const

/** Largest count of characters, items or members that rules count to. Larger maxima are the same as this. */
export const maxCount = 1_000_000

const typeNames = ["null", "boolean", "integer", "number", "string", "array", "object"] as const
export type TypeName = (typeof typeNames)[number]

const isTypeName = (value: unknown): value is TypeName => typeNames.some((name) => name === value)

export const checkContradictions = (schema: JsonObject, path: string): void => {
  const type = keyword(schema, "type")
  if (type !== undefined) {
    const list = isList(type) ? type : [type]
    if (list.length === 0 || !list.every(isTypeName)) {
      throw new SchemaProblem(at(path, "type"), `must be one or more of ${typeNames.join(", ")}`)
    }
  }
  const values = keyword(schema, "enum")
  if (values !== undefined && !isList(values))
    throw new SchemaProblem(at(path, "enum"), "must be a list of values")
  if (isList(values) && values.length === 0) throw new SchemaProblem(at(path, "enum"), "must not be empty")
  for (const [low, high] of ordered) {
    const least = keyword(schema, low)
    const most = keyword(schema, high)
    if (typeof least !== "number" || typeof most !== "number") continue
    const exclusive = low.startsWith("exclusive") || high.startsWith("exclusive")
    if (least > most || (exclusive && least === most)) {
      throw new SchemaProblem(at(path, low), `${low} ${least} and ${high} ${most} exclude every value`)
    }
  }
  for (const name of ["minLength", "minItems", "minProperties"]) {
    const count = keyword(schema, name)
    if (typeof count === "number" && count > maxCount) {
      throw new SchemaProblem(at(path, name), `no reply is that long: at most ${maxCount} is possible`)
    }
  }
  const multipleOf = keyword(schema, "multipleOf")
  if (typeof multipleOf === "number" && multipleOf <= 0) {
    throw new SchemaProblem(at(path, "multipleOf"), "must be more than 0")
  }
  checkRequired(schema, path)
}

const checkRequired = (schema: JsonObject, path: string): void => {
  const required = keyword(schema, "required")
  if (!isList(required)) return
  const properties = keyword(schema, "properties")
  const patterns = keyword(schema, "patternProperties")
  const closed =
    keyword(schema, "additionalProperties") === false &&
    (!isObject(patterns) || Object.keys(patterns).length === 0)
  for (const name of required) {
    if (typeof name !== "string") continue
    const property = isObject(properties) ? keyword(properties, name) : undefined
    if (property === false || (property === undefined && closed)) {
      throw new SchemaProblem(at(path, "required"), `the key ${named(name)} is required but not allowed`)
    }
  }
  const most = keyword(schema, "maxProperties")
  const count = new Set(required).size
  if (typeof most === "number" && count > most) {
    throw new SchemaProblem(
      at(path, "maxProperties"),
      `${count} keys are required, but at most ${most} allowed`,
    )
  }
}
