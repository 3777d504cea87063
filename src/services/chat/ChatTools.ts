// Tools and response format of a chat request as an engine takes them, and the engine's errors in the request's own
// names. Pure.
import type { ChatRequest } from "#domain/wire/Chat.ts"
import { InvalidRequest, RateLimited } from "#domain/wire/Errors.ts"
import { isJsonObject, type JsonObject } from "#domain/wire/Json.ts"
import {
  clippedPath,
  maxSchemaBytesTogether,
  maxSchemaValuesTogether,
  measureSchema,
} from "#domain/wire/text/SchemaBounds.ts"
import type { FunctionDefinition } from "#domain/wire/text/Tools.ts"
import type { ResponseFormat, Tool, ToolUse } from "#engines/protocol/Text.ts"

/** What a request lets the model call, and how the reply must look. */
export interface ChatShape {
  readonly tools?: ToolUse
  readonly format?: ResponseFormat
  /** Calls are answered in the older form: `function_call`. */
  readonly usesFunctions: boolean
  /** Where each of `tools` stands in the request, like `tools[2].function`. */
  readonly paths: ReadonlyArray<string>
}

const noParameters: JsonObject = { type: "object", properties: {} }

const refusal = (field: string, problem: string): InvalidRequest => new InvalidRequest({ field, problem })

const schemaPath = "response_format.json_schema.schema"

const joined = (path: string, rest: string): string => (rest === "" ? path : `${path}.${rest}`)

/** Counts the bytes and values of all schemas of a request. */
class SchemaBudget {
  #bytes = 0
  #valuesLeft = maxSchemaValuesTogether

  /** The schema's problem with its path in the request. */
  spend(schema: unknown, path: string): InvalidRequest | undefined {
    const measured = measureSchema(schema, this.#valuesLeft)
    if ("detail" in measured) return refusal(joined(path, measured.path), measured.detail)
    this.#bytes += measured.bytes
    this.#valuesLeft -= measured.values
    if (this.#bytes <= maxSchemaBytesTogether) return undefined
    return refusal(path, `all schemas together must be at most ${maxSchemaBytesTogether} bytes of JSON`)
  }
}

interface Placed {
  readonly definition: FunctionDefinition
  readonly path: string
}

/** The functions of a request with their places: those of `tools`, or else those of `functions`. */
const placedFunctions = ({ functions, tools }: ChatRequest): ReadonlyArray<Placed> | InvalidRequest => {
  const placed: Array<Placed> = []
  for (const [index, tool] of (tools ?? []).entries()) {
    // Tools of other types are of other servers, for example web search: a request never fails because it has them.
    if (tool.type !== undefined && tool.type !== "function") continue
    const path = `tools[${index}].function`
    if (tool.function === undefined) return refusal(path, "is required")
    placed.push({ definition: tool.function, path })
  }
  if (placed.length > 0) return placed
  return (functions ?? []).map((definition, index) => ({ definition, path: `functions[${index}]` }))
}

interface Choice {
  readonly choice: ToolUse["choice"] | "none"
  /** Absent: all tools. */
  readonly allowed?: ReadonlySet<string>
}

const choiceOf = ({ function_call, tool_choice }: ChatRequest, usesFunctions: boolean): Choice => {
  if (usesFunctions) return { choice: function_call ?? "auto" }
  if (tool_choice === undefined || tool_choice === null) return { choice: "auto" }
  if (typeof tool_choice === "string") return { choice: tool_choice }
  if (tool_choice.type === "function") return { choice: { name: tool_choice.function.name } }
  const { mode, tools } = tool_choice.allowed_tools
  return { choice: mode, allowed: new Set(tools.map((tool) => tool.function.name)) }
}

const choiceProblem = (
  { allowed, choice }: Choice,
  names: ReadonlySet<string>,
  usesFunctions: boolean,
): InvalidRequest | undefined => {
  const unknown = "no tool of the request has this name"
  if (typeof choice === "object" && !names.has(choice.name)) {
    return refusal(usesFunctions ? "function_call.name" : "tool_choice.function.name", unknown)
  }
  const stranger = [...(allowed ?? [])].findIndex((name) => !names.has(name))
  if (stranger < 0) return undefined
  return refusal(`tool_choice.allowed_tools.tools[${stranger}].function.name`, unknown)
}

const formatOf = (
  request: ChatRequest,
  budget: SchemaBudget,
): ResponseFormat | InvalidRequest | undefined => {
  const format = request.response_format
  if (format === undefined || format === null || format.type === "text") return undefined
  if (format.type === "json_object") return { kind: "json" }
  const { schema, strict } = format.json_schema ?? {}
  if (typeof schema !== "boolean" && !isJsonObject(schema)) return refusal(schemaPath, "is required")
  const problem = budget.spend(schema, schemaPath)
  return problem ?? { kind: "schema", schema, strict: strict ?? false }
}

/** Of requests for plain text. */
const noShape: ChatShape = { usesFunctions: false, paths: [] }

/** The request's tools and format, or what is wrong with them. */
export const shapeOf = (request: ChatRequest): ChatShape | InvalidRequest =>
  (request.tools ?? request.functions ?? request.response_format ?? null) === null
    ? noShape
    : requestedShape(request)

const requestedShape = (request: ChatRequest): ChatShape | InvalidRequest => {
  const budget = new SchemaBudget()
  const format = formatOf(request, budget)
  if (format instanceof InvalidRequest) return format
  const placed = placedFunctions(request)
  if (placed instanceof InvalidRequest) return placed
  const usesFunctions = placed[0]?.path.startsWith("functions") ?? false
  const names = new Set<string>()
  for (const { definition, path } of placed) {
    if (names.has(definition.name)) return refusal(`${path}.name`, "is the name of an earlier tool")
    names.add(definition.name)
    const problem = budget.spend(definition.parameters ?? noParameters, `${path}.parameters`)
    if (problem !== undefined) return problem
  }
  const plain = { ...(format === undefined ? {} : { format }), usesFunctions, paths: [] }
  const chosen = choiceOf(request, usesFunctions)
  const { allowed, choice } = chosen
  if (placed.length === 0 || choice === "none") return plain
  const problem = choiceProblem(chosen, names, usesFunctions)
  if (problem !== undefined) return problem
  const offered = placed.filter(({ definition }) => allowed?.has(definition.name) ?? true)
  if (offered.length === 0) return plain
  const tools = offered.map(
    ({ definition: { description, name, parameters, strict } }): Tool => ({
      name,
      ...(description ? { description } : {}),
      parameters: isJsonObject(parameters) ? parameters : noParameters,
      strict: strict ?? false,
    }),
  )
  const parallel = !usesFunctions && (request.parallel_tool_calls ?? true)
  return { ...plain, tools: { tools, choice, parallel }, paths: offered.map(({ path }) => path) }
}

/** Fields of the engine's request that have another name in the body. */
const otherNames: Readonly<Record<string, string>> = {
  replies: "n",
  bestOf: "best_of",
  minTokens: "min_tokens",
  logitBias: "logit_bias",
  thinkingTokens: "reasoning_effort",
}

/** A field of the engine's request as the body names it: `tools[2].properties.x` → `tools[3].function.parameters.properties.x`. */
const bodyField = (field: string, { format, paths }: Partial<ChatShape>): string => {
  const [, name = "", index, rest = ""] = /^([A-Za-z]+)(?:\[(\d+)\])?(.*)$/s.exec(field) ?? []
  if (name === "format")
    return (format?.kind === "schema" ? schemaPath : "response_format") + clippedPath(rest)
  const path = name === "tools" && index !== undefined ? paths?.[Number(index)] : undefined
  if (path !== undefined) return `${path}.parameters${clippedPath(rest)}`
  return otherNames[field] ?? field
}

/** An engine's refusal with the names of the request. */
export const renamed = (error: InvalidRequest, shape: Partial<ChatShape> = {}): InvalidRequest =>
  refusal(bodyField(error.field, shape), error.problem)

/** The same of a refusal for now. */
export const renamedLimit = (error: RateLimited, shape: Partial<ChatShape>): RateLimited =>
  error.field === undefined ? error : new RateLimited({ ...error, field: bodyField(error.field, shape) })
