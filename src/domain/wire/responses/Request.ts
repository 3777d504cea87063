// A request of OpenAI's Responses API (protocol 7.12). Schemas.
import { Schema } from "effect"
import { reasoningEffort } from "../Chat.ts"
import { maxTopLogprobs, samplingFields } from "../Sampling.ts"
import { anyObject, flag, int, isObject, name, optional, range, text } from "../text/Fields.ts"
import { anySchema } from "../text/Formats.ts"
import { PictureUrl } from "../text/Pictures.ts"
import { maxTools } from "../text/Tools.ts"

/** A part of a message, of a reasoning item or of a call's result. What parts of other types hold is not read. */
const Part = Schema.Struct({
  type: text,
  text: optional(text),
  refusal: optional(text),
  /** Pictures. */
  image_url: optional(PictureUrl),
  detail: Schema.optionalKey(Schema.Unknown),
  file_id: Schema.optionalKey(Schema.Unknown),
})
export type Part = typeof Part.Type

const parts = Schema.Array(Part)
const content = Schema.Union([text, parts, Schema.Null]).annotate({
  message: "must be a text or a list of parts",
})

/**
 * An item of the input. One struct for all types, because an item without a type is a message; ResponsesInput reads the
 * fields that its type has.
 */
export const InputItem = Schema.Struct({
  type: optional(text),
  role: optional(
    Schema.Literals(["user", "assistant", "system", "developer"]).annotate({
      message: "must be user, assistant, system or developer",
    }),
  ),
  content: Schema.optionalKey(content),
  /** Calls and their results. */
  call_id: optional(text),
  name: optional(text),
  arguments: optional(text),
  output: Schema.optionalKey(content),
  /** Reasoning items. */
  summary: optional(parts),
})
export type InputItem = typeof InputItem.Type

/** In contrast to chat the function's fields stand in the tool itself. */
const FunctionTool = Schema.Struct({
  type: Schema.Literal("function").annotate({ message: "must be function: this node runs no tools itself" }),
  name,
  description: optional(text),
  /** JSON Schema of the arguments. Absent: the function takes none. */
  parameters: optional(anyObject),
  strict: optional(flag),
})

const atMost = Schema.isMaxLength(maxTools, { message: `must be at most ${maxTools} tools` })
const named = Schema.Struct({ type: Schema.Literal("function"), name: Schema.String })

const ToolChoice = Schema.Union([
  Schema.Literals(["auto", "none", "required"]),
  named,
  Schema.Struct({
    type: Schema.Literal("allowed_tools"),
    mode: Schema.Literals(["auto", "required"]),
    tools: Schema.Array(named).check(atMost),
  }),
]).annotate({ message: "must be auto, none, required, a function by its name, or allowed_tools" })

const Format = Schema.Struct({
  type: Schema.Literals(["text", "json_object", "json_schema"]).annotate({
    message: "must be text, json_object or json_schema",
  }),
  name: optional(name),
  description: optional(text),
  schema: optional(anySchema),
  strict: optional(flag),
})

/** OpenAI's limits. */
export const metadataLimits = { pairs: 16, keyChars: 64, valueChars: 512 } as const

/** Not a Record: decoding one costs by its entries before their number is checked. */
const metadata = Schema.Unknown.check(
  Schema.makeFilter((value: unknown) => {
    const { keyChars, pairs, valueChars } = metadataLimits
    if (!isObject(value)) return "must be an object of texts"
    const entries = Object.entries(value)
    if (entries.length > pairs) return `must have at most ${pairs} keys`
    for (const [key, one] of entries) {
      if (key.length > keyChars) return `must have keys of at most ${keyChars} characters`
      if (typeof one !== "string" || one.length > valueChars) {
        return `must have texts of at most ${valueChars} characters as values`
      }
    }
    return true
  }),
)

/** A field of which only `null` is accepted, because it needs something that this node does not have. */
const absent = (message: string) => Schema.optionalKey(Schema.Null.annotate({ message }))

export const ResponsesRequest = Schema.Struct({
  model: Schema.NonEmptyString,
  input: Schema.Union([text, Schema.Array(InputItem)]).annotate({
    message: "must be a text or a list of items",
  }),
  instructions: optional(text),
  max_output_tokens: optional(int.check(range(1, 4096))),
  temperature: samplingFields.temperature,
  top_p: samplingFields.top_p,
  tools: optional(Schema.Array(FunctionTool).check(atMost)),
  tool_choice: optional(ToolChoice),
  parallel_tool_calls: optional(flag),
  text: optional(Schema.Struct({ format: optional(Format) })),
  reasoning: optional(
    Schema.Struct({
      effort: optional(reasoningEffort),
      summary: optional(
        Schema.Literals(["auto", "concise", "detailed"]).annotate({
          message: "must be auto, concise or detailed",
        }),
      ),
    }),
  ),
  include: optional(Schema.Array(text)),
  /** Ignored unless `include` names the log probabilities. */
  top_logprobs: optional(int.check(range(0, maxTopLogprobs))),
  metadata: optional(metadata),
  stream: optional(flag),
  stream_options: samplingFields.stream_options,
  truncation: optional(
    Schema.Literals(["auto", "disabled"]).annotate({ message: "must be auto or disabled" }),
  ),
  user: optional(text),
  /** Nothing is ever stored, whatever this says. */
  store: optional(flag),
  previous_response_id: absent("must be absent: nothing is stored, send the earlier items in input"),
  conversation: absent("must be absent: nothing is stored, send the earlier items in input"),
  prompt: absent("must be absent: nothing is stored, send the prompt's text in instructions"),
  background: Schema.optionalKey(
    Schema.NullOr(Schema.Literal(false)).annotate({
      message: "must be false: nothing is stored, so the reply is sent on this request only",
    }),
  ),
})
export type ResponsesRequest = typeof ResponsesRequest.Type

/** The checked `metadata` as texts. */
export const metadataOf = (value: unknown): Readonly<Record<string, string>> =>
  isObject(value) ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, String(one)])) : {}
