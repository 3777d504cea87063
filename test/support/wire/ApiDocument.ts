// The OpenAPI document as a test reads it: operations with their parameters, bodies and documented replies.
import { Ajv2020 } from "ajv/dist/2020.js"
import type { JsonSchema } from "./SchemaValues.ts"

interface Content {
  readonly schema: JsonSchema
}

interface DocumentedReply {
  readonly content?: Readonly<Record<string, Content>>
}

interface Parameter {
  readonly name: string
  readonly in: "query" | "path" | "header"
  readonly schema: JsonSchema
}

interface OperationObject {
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> }
  readonly responses: Readonly<Record<string, DocumentedReply>>
}

export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> }
}

interface Reply {
  readonly status: number
  /** Empty without the header. */
  readonly contentType: string
  readonly body: Buffer
}

export interface Operation {
  readonly name: string
  readonly method: string
  /** With `{name}` for its path parameters. */
  readonly path: string
  readonly parameters: ReadonlyArray<Parameter>
  /** Absent: it takes none. */
  readonly body: { readonly contentType: string; readonly schema: JsonSchema } | undefined
  readonly schemas: Readonly<Record<string, JsonSchema>>
  /** How a reply differs from the documented ones; undefined if it does not. */
  readonly problemOf: (reply: Reply) => string | undefined
}

const jsonProblem = (ajv: Ajv2020, schema: JsonSchema, body: Buffer): string | undefined => {
  let value: unknown
  try {
    value = JSON.parse(body.toString("utf8"))
  } catch {
    return "the body is not JSON"
  }
  return ajv.validate(schema, value) ? undefined : ajv.errorsText()
}

export const operationsOf = ({ components, paths }: ApiDocument): ReadonlyArray<Operation> => {
  // `binary` and the like are formats of OpenAPI, not of JSON Schema.
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  // References in the document begin with `#`, so each compiled schema needs the components beside it.
  const withComponents = (schema: JsonSchema) => ({ ...schema, components })
  const replies = new Map<Content, object>()
  const schemaOf = (content: Content) => {
    const known = replies.get(content) ?? withComponents(content.schema)
    replies.set(content, known)
    return known as JsonSchema
  }
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([verb, { parameters = [], requestBody, responses }]): Operation => {
      const [contentType, content] = Object.entries(requestBody?.content ?? {})[0] ?? []
      const name = `${verb.toUpperCase()} ${path}`
      return {
        name,
        method: verb.toUpperCase(),
        path,
        parameters,
        body:
          contentType === undefined || content === undefined
            ? undefined
            : { contentType, schema: content.schema },
        schemas: components.schemas,
        problemOf: ({ body, contentType: type, status }) => {
          const reply = responses[String(status)]
          if (reply === undefined) return `${name}: ${status} is not documented`
          const documented = reply.content ?? {}
          // A media type stands for all its parameters, such as a charset.
          const found = documented[type] ?? documented[type.split(";")[0] ?? ""]
          if (found === undefined) return `${name}: ${status} with the content type ${type} is not documented`
          const problem = type === "application/json" ? jsonProblem(ajv, schemaOf(found), body) : undefined
          return problem && `${name}: ${status} ${body.toString("utf8").slice(0, 300)}: ${problem}`
        },
      }
    }),
  )
}
