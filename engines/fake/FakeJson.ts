// A small value for a JSON Schema, for replies that no script describes. Keywords that it does not know are ignored, so
// it is no validator and no replacement for a grammar. Pure.
import { isJsonObject, type Json, type JsonObject } from "#domain/wire/Json.ts"

/** Levels after which a recursive schema gets `null`. */
const maxLevels = 16
/** Most items of an array and characters of a text. */
const most = 64

const numberOr = (value: Json | undefined, fallback: number): number =>
  typeof value === "number" ? value : fallback

/** A number of items or characters, within what is made. */
const countOr = (value: Json | undefined, fallback: number): number =>
  Math.floor(Math.min(most, Math.max(0, numberOr(value, fallback))))

/** The schema that `#/a/b` names. */
const referred = (root: JsonObject, ref: string): Json | undefined =>
  ref
    .split("/")
    .slice(1)
    .reduce<Json | undefined>((at, key) => (isJsonObject(at) ? at[key] : undefined), root)

export const smallValue = (schema: Json | undefined, root: JsonObject, level = 0): Json => {
  if (!isJsonObject(schema) || level > maxLevels) return null
  const next = (inner: Json | undefined) => smallValue(inner, root, level + 1)
  if (schema.const !== undefined) return schema.const
  if (Array.isArray(schema.enum)) return schema.enum[0] ?? null
  if (typeof schema.$ref === "string") return next(referred(root, schema.$ref))
  const branches = schema.anyOf ?? schema.oneOf
  if (Array.isArray(branches)) return next(branches[0])
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
  switch (type) {
    case "array":
      return Array.from({ length: countOr(schema.minItems, 0) }, () => next(schema.items))
    case "string":
      return "x".repeat(countOr(schema.minLength, 1))
    case "integer":
    case "number":
      return numberOr(schema.minimum, 0)
    case "boolean":
      return true
    case "null":
      return null
    default: {
      const { properties, required } = schema
      const names = Array.isArray(required) ? required.filter((name) => typeof name === "string") : []
      return Object.fromEntries(
        names.map((name) => [name, next(isJsonObject(properties) ? properties[name] : undefined)]),
      )
    }
  }
}
