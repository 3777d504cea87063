// JSON Schemas in the form that Gemma's templates can print: every schema has one type with a name, `nullable` stands for null,
// and references are replaced by what they name. Only for the definitions in the prompt: replies are held to the schema itself.
import { isJsonObject, type Json, type JsonObject } from "#domain/wire/Json.ts"
import { mostNested } from "./MarkedText.ts"

/** Most schemas of one tool that are printed. References could repeat them without end. A guess. */
const mostSchemas = 2_000

const isList = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value)

const typeOfValue = (value: Json | undefined): string => {
  if (isList(value)) return "array"
  if (typeof value === "object") return value === null ? "null" : "object"
  return typeof value === "undefined" ? "string" : typeof value
}

const typesOf = (schema: JsonObject): ReadonlyArray<string> => {
  const { type } = schema
  const types = (isList(type) ? type : [type]).filter((name) => typeof name === "string")
  if (types.length > 0) return types
  if (isJsonObject(schema.properties)) return ["object"]
  if (schema.items !== undefined) return ["array"]
  const values = isList(schema.enum) ? schema.enum : schema.const === undefined ? [] : [schema.const]
  return [...new Set(values.map(typeOfValue))]
}

class Reader {
  readonly #whole: JsonObject
  #left = mostSchemas

  constructor(whole: JsonObject) {
    this.#whole = whole
  }

  read(schema: Json, depth: number): JsonObject {
    if (!isJsonObject(schema) || depth >= mostNested || this.#left-- <= 0) return { type: "string" }
    const { $defs: _defs, definitions: _definitions, ...own } = this.#resolved(schema)
    const alternatives = own.anyOf ?? own.oneOf
    const ways = isList(alternatives)
      ? alternatives.filter(isJsonObject).map((way) => this.#resolved(way))
      : []
    const chosen = ways.find((way) => typesOf(way).some((type) => type !== "null")) ?? {}
    const { anyOf: _any, oneOf: _one, ...others } = own
    const merged = typesOf(own).length > 0 ? others : { ...chosen, ...others }
    const types = [...typesOf(merged), ...ways.flatMap(typesOf)]
    const { properties, items } = merged
    return {
      ...merged,
      type: types.find((type) => type !== "null") ?? types[0] ?? "string",
      ...(types.includes("null") ? { nullable: true } : {}),
      ...(isJsonObject(properties) ? { properties: this.#properties(properties, depth) } : {}),
      ...(isJsonObject(items) ? { items: this.read(items, depth + 1) } : {}),
    }
  }

  #properties(properties: JsonObject, depth: number): JsonObject {
    const entries = Object.entries(properties).map(([key, value]): [string, Json] => [
      key,
      this.read(value, depth + 1),
    ])
    return Object.fromEntries(entries)
  }

  /** Follows a reference to a definition, at most a few times. */
  #resolved(schema: JsonObject, most = 8): JsonObject {
    const { $ref, ...others } = schema
    if (typeof $ref !== "string" || !$ref.startsWith("#") || most === 0) return others
    let target: Json | undefined = this.#whole
    for (const step of $ref.slice(1).split("/").slice(1)) {
      target = isJsonObject(target) ? target[step.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined
    }
    return isJsonObject(target) ? { ...this.#resolved(target, most - 1), ...others } : others
  }
}

export const typedParameters = (schema: JsonObject): JsonObject => new Reader(schema).read(schema, 0)
