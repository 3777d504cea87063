// Size and depth of a JSON Schema, checked before anything else reads it. The walk has its own stack, so that no depth
// overflows the stack of the thread, and it ends at the first limit that is exceeded. Pure.
import { isObject } from "./Fields.ts"

/** Limits of one schema. Guesses: the largest tool of public tool lists has 40 KB and 12 levels. */
export const schemaLimits = { bytes: 256 * 1024, levels: 64, subschemas: 5_000 } as const

/** Bytes of all schemas of a request together: copying them to an engine holds the event loop for about 5 ms. */
export const maxSchemaBytesTogether = 512 * 1024

/** Lists, objects, texts, numbers and so on of all schemas of a request: counting and copying them takes 1 µs each (measured). */
export const maxSchemaValuesTogether = 16_000

interface SchemaSize {
  /** Of its JSON text. */
  readonly bytes: number
  readonly values: number
}

/** Keywords whose value is data and not a schema. */
const dataKeywords = new Set(["const", "default", "enum", "examples"])
/** Keywords whose value maps names to schemas. */
const mapKeywords = new Set(["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"])

type Kind = "schema" | "map" | "data"

interface Frame {
  readonly value: unknown
  readonly kind: Kind
  readonly level: number
  /** The key of this value in its parent. */
  readonly key: string | number
  readonly parent: Frame | undefined
}

interface SchemaProblem {
  /** From the schema's root, like `properties.age.minimum`; empty for the root. */
  readonly path: string
  readonly detail: string
}

/** Longest path that an error names. */
const maxPathChars = 120

export const clippedPath = (path: string): string =>
  path.length > maxPathChars ? `${path.slice(0, maxPathChars)}…` : path

const pathOf = (frame: Frame): string => {
  const keys: Array<string | number> = []
  for (let at: Frame = frame; at.parent !== undefined; at = at.parent) keys.push(at.key)
  const path = keys
    .toReversed()
    .reduce<string>(
      (text, key) => (typeof key === "number" ? `${text}[${key}]` : text === "" ? key : `${text}.${key}`),
      "",
    )
  return clippedPath(path)
}

const kindOf = (parent: Frame, key: string): Kind => {
  if (parent.kind === "data") return "data"
  if (parent.kind === "map") return "schema"
  return dataKeywords.has(key) ? "data" : mapKeywords.has(key) ? "map" : "schema"
}

/** Bytes of a value's JSON text without what is inside it. Escapes in texts are not counted. */
const ownBytes = (value: unknown): number => {
  if (typeof value === "string") return Buffer.byteLength(value) + 3
  return typeof value === "object" && value !== null ? 3 : String(value).length + 1
}

/** The size of the schema, or the first limit that it exceeds. `valuesLeft`: by the other schemas of the request. */
export const measureSchema = (
  schema: unknown,
  valuesLeft = maxSchemaValuesTogether,
): SchemaSize | SchemaProblem => {
  const tooMany = {
    path: "",
    detail: `all schemas together must have at most ${maxSchemaValuesTogether} values`,
  }
  let bytes = 0
  let values = 1
  let subschemas = 0
  const stack: Array<Frame> = [{ value: schema, kind: "schema", level: 1, key: "", parent: undefined }]
  for (let frame = stack.pop(); frame !== undefined; frame = stack.pop()) {
    const { kind, level, value } = frame
    bytes += ownBytes(value) + (typeof frame.key === "string" ? frame.key.length + 3 : 0)
    if (bytes > schemaLimits.bytes) {
      return { path: "", detail: `must be at most ${schemaLimits.bytes} bytes of JSON` }
    }
    if (typeof value !== "object" || value === null) continue
    if (level > schemaLimits.levels) {
      return { path: pathOf(frame), detail: `is nested more than ${schemaLimits.levels} levels deep` }
    }
    if (kind === "schema" && !Array.isArray(value) && ++subschemas > schemaLimits.subschemas) {
      return { path: "", detail: `must have at most ${schemaLimits.subschemas} subschemas` }
    }
    const keys = Array.isArray(value) ? undefined : Object.keys(value)
    values += keys?.length ?? (Array.isArray(value) ? value.length : 0)
    if (values > valuesLeft) return tooMany
    if (Array.isArray(value)) {
      for (const [key, item] of value.entries()) {
        stack.push({ value: item, kind, level: level + 1, key, parent: frame })
      }
    } else if (isObject(value)) {
      for (const key of keys ?? []) {
        stack.push({ value: value[key], kind: kindOf(frame, key), level: level + 1, key, parent: frame })
      }
    }
  }
  return { bytes, values }
}
