// Which arguments of a tool an XML-like call can hold: each top-level property is written on its own, texts without quotes.
import { isJsonObject, type Json, type JsonObject } from "#domain/wire/Json.ts"
import type { Tool } from "../../../protocol/Text.ts"

export interface Property {
  readonly key: string
  readonly required: boolean
  /** The value is a text, written without quotes. Otherwise it is written as JSON. */
  readonly text: boolean
  /** A schema that stands for itself: its references lead into a copy of the whole schema. */
  readonly schema: () => JsonObject
  /** For texts: the only values, if there are only some. */
  readonly only?: ReadonlyArray<string>
  /** For texts: a keyword that restricts them, as a path below the parameters. */
  readonly restricted?: string
}

/** Keywords that restrict nothing, or that are read here. */
const readable: ReadonlySet<string> = new Set([
  ..."type properties required additionalProperties description title $schema $id $defs definitions".split(
    " ",
  ),
  ..."$comment default examples deprecated readOnly writeOnly".split(" "),
])

/** Keywords of a top-level schema that an XML-like call cannot hold. */
export const notReadable = (tool: Tool): string | undefined =>
  Object.keys(tool.parameters).find((keyword) => !readable.has(keyword))

const copy = "whole"

/** The same schema with its references redirected into a copy of the whole schema. */
const redirected = (schema: Json): Json => {
  if (Array.isArray(schema)) return schema.map(redirected)
  if (!isJsonObject(schema)) return schema
  const members = Object.entries(schema).map(([key, value]): [string, Json] =>
    key === "$ref" && typeof value === "string" && value.startsWith("#")
      ? [key, `#/$defs/${copy}${value.slice(1)}`]
      : [key, redirected(value)],
  )
  return Object.fromEntries(members)
}

const hasReference = (schema: Json): boolean => JSON.stringify(schema).includes('"$ref"')

/** Follows a reference to a definition, at most a few times. */
const resolve = (schema: Json | undefined, whole: JsonObject, most = 8): JsonObject => {
  if (!isJsonObject(schema)) return {}
  const { $ref } = schema
  if (typeof $ref !== "string" || most === 0 || !$ref.startsWith("#/")) return schema
  const steps = $ref
    .slice(2)
    .split("/")
    .map((step) => decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~"))
  let at: Json | undefined = whole
  for (const step of steps) at = isJsonObject(at) ? at[step] : undefined
  return resolve(at, whole, most - 1)
}

const restricting = ["pattern", "format", "minLength", "maxLength", "not", "anyOf", "oneOf", "allOf", "if"]

const isText = (value: Json): value is string => typeof value === "string"

const propertyOf = (
  tool: Tool,
  closer: string,
  [key, schema]: readonly [string, Json],
  whole: () => Json,
): Property => {
  const { parameters } = tool
  const own = isJsonObject(schema) ? schema : {}
  const standalone = (): JsonObject => {
    const copied = redirected(own)
    return isJsonObject(copied) && hasReference(own) ? { ...copied, $defs: { [copy]: whole() } } : own
  }
  const { type, enum: listed, const: fixed, ...others } = resolve(schema, parameters)
  const values = listed ?? (fixed === undefined ? undefined : [fixed])
  const only =
    Array.isArray(values) && values.every(isText)
      ? values.filter((value) => !value.includes(closer))
      : undefined
  const text =
    only !== undefined ? type === undefined || type === "string" : type === "string" && values === undefined
  const keyword = restricting.find((name) => name in others)
  return {
    key,
    required: Array.isArray(parameters.required) && parameters.required.includes(key),
    text,
    schema: standalone,
    ...(text && only !== undefined ? { only } : {}),
    ...(text && keyword !== undefined ? { restricted: `properties.${key}.${keyword}` } : {}),
  }
}

/** The properties in the order of the schema. `closer`: what ends a value. */
export const propertiesOf = (tool: Tool, closer: string): ReadonlyArray<Property> => {
  const { properties } = tool.parameters
  if (!isJsonObject(properties)) return []
  let copied: Json | undefined
  const whole = (): Json => {
    copied ??= redirected(tool.parameters)
    return copied
  }
  return Object.entries(properties).map((property) => propertyOf(tool, closer, property, whole))
}

/** A name between `<parameter=` and `>`. */
export const isWritable = (key: string): boolean => key !== "" && !/[<>\n\r]/.test(key)
