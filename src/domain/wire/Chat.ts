// A chat request and its replies on the wire (protocol 7.2, 7.3). Schemas.
import { Schema } from "effect"
import { maxTopLogprobs, samplingFields } from "./Sampling.ts"
import { flag, int, optional, range } from "./text/Fields.ts"
import { ResponseFormat } from "./text/Formats.ts"
import { ChatLogprobs } from "./text/Logprobs.ts"
import { ChatMessage } from "./text/Messages.ts"
import { FunctionCall, ToolCallReply, toolFields } from "./text/Tools.ts"

/** Tokens that the model may think for each `reasoning_effort` (protocol 7.10). Guesses: doubled twice from step to step. */
export const thinkingTokens = {
  none: 0,
  minimal: 64,
  low: 256,
  medium: 1_024,
  high: 4_096,
  xhigh: 4_096,
  max: 4_096,
} as const

const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const

export const reasoningEffort = Schema.Literals(efforts).annotate({
  message: `must be one of ${efforts.join(", ")}`,
})

export const ChatRequest = Schema.Struct({
  model: Schema.NonEmptyString,
  messages: Schema.Array(ChatMessage).check(Schema.isMinLength(1, { message: "must not be empty" })),
  ...samplingFields,
  ...toolFields,
  response_format: optional(ResponseFormat),
  logprobs: optional(flag),
  /** Ignored unless `logprobs` is true. */
  top_logprobs: optional(int.check(range(0, maxTopLogprobs))),
  reasoning_effort: optional(reasoningEffort),
  /** Not OpenAI's: the exact budget, which wins over `reasoning_effort`. */
  max_thinking_tokens: optional(int.check(range(0, 4096))),
})
export type ChatRequest = typeof ChatRequest.Type

/** `function_call` answers requests in the older form. */
export const ChatFinish = Schema.Literals(["stop", "length", "tool_calls", "function_call", "content_filter"])

export const TokenUsage = Schema.Struct({
  prompt_tokens: Schema.Int,
  completion_tokens: Schema.Int,
  total_tokens: Schema.Int,
  prompt_tokens_details: Schema.Struct({
    cached_tokens: Schema.Int,
    /** Present if the request has pictures. */
    image_tokens: Schema.optionalKey(Schema.Int),
  }),
  completion_tokens_details: Schema.Struct({ reasoning_tokens: Schema.Int }),
})
export type TokenUsage = typeof TokenUsage.Type

export const ChatCompletion = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("chat.completion"),
  created: Schema.Int,
  model: Schema.String,
  system_fingerprint: Schema.String,
  choices: Schema.Array(
    Schema.Struct({
      index: Schema.Int,
      message: Schema.Struct({
        role: Schema.Literal("assistant"),
        /** `null` in a reply that is calls and no text. */
        content: Schema.NullOr(Schema.String),
        reasoning_content: Schema.optionalKey(Schema.String),
        tool_calls: Schema.optionalKey(Schema.Array(ToolCallReply)),
        function_call: Schema.optionalKey(FunctionCall),
      }),
      /** Present if the request has `logprobs`. */
      logprobs: Schema.optionalKey(ChatLogprobs),
      finish_reason: ChatFinish,
    }),
  ),
  usage: TokenUsage,
})
