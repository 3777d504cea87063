// The schema that a call's arguments are held to. It accepts objects only, whatever the tool's own schema says. Pure.
import type { Json, JsonObject } from "#domain/wire/Json.ts"
import type { Tool } from "../../protocol/Text.ts"
import { Refused } from "../compiler/GrammarThread.ts"

/** Keywords beside which `properties: {}` means that there are no arguments. */
const plain: ReadonlySet<string> = new Set([
  "type",
  "properties",
  "required",
  "title",
  "description",
  "$schema",
])

const otherTypes: ReadonlySet<string> = new Set(["null", "boolean", "integer", "number", "string", "array"])

const isEmptyObject = (value: Json | undefined): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 0

const objectsOnly = (whole: JsonObject, path: string): JsonObject => {
  // OpenAPI's `nullable` would add null to any type.
  const schema = Object.fromEntries(Object.entries(whole).filter(([keyword]) => keyword !== "nullable"))
  const { type } = schema
  if (type === undefined || (Array.isArray(type) && type.includes("object"))) {
    return { ...schema, type: "object" }
  }
  const types = Array.isArray(type) ? type : [type]
  // A name that is no type is refused for that reason when the schema is compiled.
  if (types.length > 0 && types.every((name) => typeof name === "string" && otherTypes.has(name))) {
    throw new Refused(`${path}.type`, "must be object, because the arguments of a call are an object")
  }
  return schema
}

/**
 * The tool with the schema of its arguments. `index`: of the tool in its request.
 * @throws Refused if no object fits the schema's type
 */
export const withObjectArguments = (tool: Tool, index: number): Tool => {
  const parameters = objectsOnly(tool.parameters, `tools[${index}]`)
  const none =
    isEmptyObject(parameters.properties) && Object.keys(parameters).every((keyword) => plain.has(keyword))
  return { ...tool, parameters: none ? { ...parameters, additionalProperties: false } : parameters }
}
