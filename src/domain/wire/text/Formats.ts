// `response_format` of a chat request (protocol 7.8). Schema.
import { Schema } from "effect"
import { flag, isObject, name, optional, text } from "./Fields.ts"

/** Any JSON Schema; its size is measured later. */
export const anySchema = Schema.Unknown.check(
  Schema.makeFilter(
    (value: unknown) => isObject(value) || typeof value === "boolean" || "must be a JSON Schema: an object",
  ),
)

export const ResponseFormat = Schema.Struct({
  type: Schema.Literals(["text", "json_object", "json_schema"]).annotate({
    message: "must be text, json_object or json_schema",
  }),
  json_schema: optional(
    Schema.Struct({
      name: optional(name),
      description: optional(text),
      schema: optional(anySchema),
      strict: optional(flag),
    }),
  ),
})
export type ResponseFormat = typeof ResponseFormat.Type
