// A Responses request as a chat request, its errors in its own names, and the fields that the reply repeats. Pure.
import type { ChatRequest } from "#domain/wire/Chat.ts"
import { InvalidRequest, PromptTooLong, RateLimited } from "#domain/wire/Errors.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { isJsonObject, type Json, type JsonObject } from "#domain/wire/Json.ts"
import type { ResponsesEcho } from "#domain/wire/responses/Reply.ts"
import { metadataOf, type ResponsesRequest } from "#domain/wire/responses/Request.ts"
import type { Sampling } from "#engines/protocol/Text.ts"
import { inputMessages } from "./InputMessages.ts"

/** Whether the request asks for log probabilities. */
const wantsLogprobs = ({ include }: ResponsesRequest): boolean =>
  (include ?? []).includes("message.output_text.logprobs")

const toolChoiceOf = ({ tool_choice }: ResponsesRequest): NonNullable<ChatRequest["tool_choice"]> => {
  if (tool_choice === undefined || tool_choice === null) return "auto"
  if (typeof tool_choice === "string") return tool_choice
  if (tool_choice.type === "function") return { type: "function", function: { name: tool_choice.name } }
  const { mode, tools } = tool_choice
  const allowed_tools = { mode, tools: tools.map(({ name }) => ({ function: { name } })) }
  return { type: "allowed_tools", allowed_tools }
}

const formatOf = ({ text }: ResponsesRequest): NonNullable<ChatRequest["response_format"]> => {
  const { type = "text", ...json_schema } = text?.format ?? {}
  return type === "json_schema" ? { type, json_schema } : { type }
}

/** Beginnings of the chat request's names, and what stands for them in this request. */
const renames: ReadonlyArray<readonly [chat: RegExp, own: string]> = [
  [/^(tools\[\d+\])\.function\b/, "$1"],
  [/^tool_choice\.function\b/, "tool_choice"],
  [/^tool_choice\.allowed_tools\.(tools\[\d+\])\.function\b/, "tool_choice.$1"],
  [/^response_format\.json_schema\b/, "text.format"],
  [/^response_format\b/, "text.format"],
  [/^max_tokens\b/, "max_output_tokens"],
  [/^reasoning_effort\b/, "reasoning.effort"],
]

interface AsChat {
  readonly chat: ChatRequest
  /** An error about the chat request, in the names of the Responses request. */
  readonly renamed: (error: EdgeError) => EdgeError
}

/** The chat request, or what is wrong with an item of the input. */
export const asChat = (body: ResponsesRequest): AsChat | InvalidRequest => {
  const input = inputMessages(body)
  if (input instanceof InvalidRequest) return input
  const chat: ChatRequest = {
    model: body.model,
    messages: input.messages,
    max_tokens: body.max_output_tokens ?? null,
    temperature: body.temperature ?? null,
    top_p: body.top_p ?? null,
    tools: (body.tools ?? []).map(({ type, ...definition }) => ({ type, function: definition })),
    tool_choice: toolChoiceOf(body),
    parallel_tool_calls: body.parallel_tool_calls ?? null,
    response_format: formatOf(body),
    logprobs: wantsLogprobs(body),
    top_logprobs: body.top_logprobs ?? null,
    reasoning_effort: body.reasoning?.effort ?? null,
  }
  const nameOf = (field: string): string => {
    if (field.startsWith("messages")) return input.nameOf(field)
    const [chat, own] = renames.find(([pattern]) => pattern.test(field)) ?? []
    return chat === undefined || own === undefined ? field : field.replace(chat, own)
  }
  const renamed = (error: EdgeError): EdgeError => {
    switch (error._tag) {
      case "InvalidRequest":
        return new InvalidRequest({ field: nameOf(error.field), problem: error.problem })
      case "RateLimited":
        return error.field === undefined ? error : new RateLimited({ ...error, field: nameOf(error.field) })
      case "PromptTooLong":
        return new PromptTooLong({
          field: nameOf(error.field),
          promptTokens: error.promptTokens,
          contextTokens: error.contextTokens,
        })
      default:
        return error
    }
  }
  return { chat, renamed }
}

const noParameters: JsonObject = { type: "object", properties: {} }

const schemaOf = (schema: unknown): Json =>
  typeof schema === "boolean" || isJsonObject(schema) ? schema : null

const echoedFormat = ({ text }: ResponsesRequest): ResponsesEcho["text"]["format"] => {
  const { description, name, schema, strict, type } = text?.format ?? { type: "text" as const }
  if (type !== "json_schema") return { type }
  return {
    type,
    name: name ?? null,
    description: description ?? null,
    schema: schemaOf(schema),
    strict: strict ?? false,
  }
}

/** The fields of the reply that repeat the request, or say what counted instead. */
export const echoOf = (body: ResponsesRequest, sampling: Sampling): ResponsesEcho => ({
  background: false,
  instructions: body.instructions ?? null,
  max_output_tokens: body.max_output_tokens ?? null,
  metadata: metadataOf(body.metadata),
  parallel_tool_calls: body.parallel_tool_calls ?? true,
  previous_response_id: null,
  reasoning: { effort: body.reasoning?.effort ?? null, summary: body.reasoning?.summary ?? null },
  service_tier: "default",
  store: false,
  temperature: sampling.temperature,
  text: { format: echoedFormat(body) },
  tool_choice: body.tool_choice ?? "auto",
  tools: (body.tools ?? []).map(({ description, name, parameters, strict, type }) => ({
    type,
    name,
    description: description ?? null,
    parameters: isJsonObject(parameters) ? parameters : noParameters,
    strict: strict ?? false,
  })),
  top_logprobs: wantsLogprobs(body) ? (body.top_logprobs ?? 0) : 0,
  top_p: sampling.topP,
  truncation: "disabled",
  user: body.user ?? null,
})
