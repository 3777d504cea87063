// The reply of OpenAI's Responses API and the items in it (protocol 7.13). Schemas.
import { Schema } from "effect"

const token = { token: Schema.String, logprob: Schema.Finite, bytes: Schema.Array(Schema.Int) }

export const OutputLogprobs = Schema.Array(
  Schema.Struct({ ...token, top_logprobs: Schema.Array(Schema.Struct(token)) }),
)

export const OutputText = Schema.Struct({
  type: Schema.Literal("output_text"),
  text: Schema.String,
  annotations: Schema.Tuple([]),
  logprobs: OutputLogprobs,
})

export const ReasoningText = Schema.Struct({ type: Schema.Literal("reasoning_text"), text: Schema.String })
export const SummaryText = Schema.Struct({ type: Schema.Literal("summary_text"), text: Schema.String })

/** `incomplete`: the last item of a reply that was cut. */
const status = Schema.Literals(["in_progress", "completed", "incomplete"])

export const OutputItem = Schema.Union([
  Schema.Struct({
    id: Schema.String,
    type: Schema.Literal("message"),
    status,
    role: Schema.Literal("assistant"),
    /** One part, or none in the event in which the item begins. */
    content: Schema.Array(OutputText),
  }),
  Schema.Struct({
    id: Schema.String,
    type: Schema.Literal("function_call"),
    status,
    call_id: Schema.String,
    name: Schema.String,
    /** JSON text of an object. */
    arguments: Schema.String,
  }),
  Schema.Struct({
    id: Schema.String,
    type: Schema.Literal("reasoning"),
    status,
    /** The thoughts, where the request asks for a summary. */
    summary: Schema.Array(SummaryText),
    /** The thoughts, where the request asks for no summary. */
    content: Schema.Array(ReasoningText),
  }),
])

export const ResponsesUsage = Schema.Struct({
  input_tokens: Schema.Int,
  input_tokens_details: Schema.Struct({
    cached_tokens: Schema.Int,
    /** Present if the request has pictures. */
    image_tokens: Schema.optionalKey(Schema.Int),
  }),
  output_tokens: Schema.Int,
  output_tokens_details: Schema.Struct({ reasoning_tokens: Schema.Int }),
  total_tokens: Schema.Int,
})
export type ResponsesUsage = typeof ResponsesUsage.Type

const named = Schema.Struct({ type: Schema.Literal("function"), name: Schema.String })

/** Fields that repeat the request or its defaults. */
export const ResponsesEcho = Schema.Struct({
  background: Schema.Literal(false),
  instructions: Schema.NullOr(Schema.String),
  max_output_tokens: Schema.NullOr(Schema.Int),
  metadata: Schema.Record(Schema.String, Schema.String),
  parallel_tool_calls: Schema.Boolean,
  previous_response_id: Schema.Null,
  reasoning: Schema.Struct({
    effort: Schema.NullOr(Schema.String),
    summary: Schema.NullOr(Schema.Literals(["auto", "concise", "detailed"])),
  }),
  service_tier: Schema.Literal("default"),
  /** Whatever the request says. */
  store: Schema.Literal(false),
  temperature: Schema.Finite,
  text: Schema.Struct({
    format: Schema.Union([
      Schema.Struct({ type: Schema.Literals(["text", "json_object"]) }),
      Schema.Struct({
        type: Schema.Literal("json_schema"),
        name: Schema.NullOr(Schema.String),
        description: Schema.NullOr(Schema.String),
        schema: Schema.Json,
        strict: Schema.Boolean,
      }),
    ]),
  }),
  tool_choice: Schema.Union([
    Schema.Literals(["auto", "none", "required"]),
    named,
    Schema.Struct({
      type: Schema.Literal("allowed_tools"),
      mode: Schema.Literals(["auto", "required"]),
      tools: Schema.Array(named),
    }),
  ]),
  tools: Schema.Array(
    Schema.Struct({
      type: Schema.Literal("function"),
      name: Schema.String,
      description: Schema.NullOr(Schema.String),
      parameters: Schema.Json,
      strict: Schema.Boolean,
    }),
  ),
  top_logprobs: Schema.Int,
  top_p: Schema.Finite,
  /** Whatever the request says. */
  truncation: Schema.Literal("disabled"),
  user: Schema.NullOr(Schema.String),
})
export type ResponsesEcho = typeof ResponsesEcho.Type

export const ResponsesReply = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("response"),
  /** Unix time. */
  created_at: Schema.Int,
  completed_at: Schema.NullOr(Schema.Int),
  model: Schema.String,
  status: Schema.Literals(["in_progress", "completed", "incomplete", "failed"]),
  error: Schema.NullOr(
    Schema.Struct({ code: Schema.Literals(["server_error", "invalid_prompt"]), message: Schema.String }),
  ),
  incomplete_details: Schema.NullOr(Schema.Struct({ reason: Schema.Literal("max_output_tokens") })),
  output: Schema.Array(OutputItem),
  /** `null` until the generation has ended. */
  usage: Schema.NullOr(ResponsesUsage),
  ...ResponsesEcho.fields,
})
