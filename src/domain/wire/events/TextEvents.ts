// Events of streamed text (protocol 7.3, 7.4) and frames of the completions socket (protocol 7.6). Schemas only.
import { Schema } from "effect"
import { ChatFinish, ChatRequest, TokenUsage } from "../Chat.ts"
import { CompletionBody, CompletionFinish } from "../Completion.ts"
import { ChatLogprobs, CompletionLogprobs } from "../text/Logprobs.ts"
import { FunctionCallDelta, ToolCallDelta } from "../text/Tools.ts"

const milliseconds = Schema.NullOr(Schema.Finite)

/** How long each step took, in the last event where the request asks for it (protocol 1.6). */
export const Timing = Schema.Struct({
  auth_ms: milliseconds,
  queue_ms: milliseconds,
  first_unit_ms: milliseconds,
  total_ms: milliseconds,
})

const head = {
  id: Schema.String,
  created: Schema.Int,
  model: Schema.String,
  /** In chunks with a `finish_reason`. */
  system_fingerprint: Schema.optionalKey(Schema.String),
}
const last = { usage: Schema.optionalKey(TokenUsage), timing: Schema.optionalKey(Timing) }

const chatChunk = {
  ...head,
  object: Schema.Literal("chat.completion.chunk"),
  /** One element; none in the chunk with `usage`. */
  choices: Schema.Array(
    Schema.Struct({
      index: Schema.Int,
      delta: Schema.Struct({
        role: Schema.optionalKey(Schema.Literal("assistant")),
        /** `null` in the first delta of a reply that begins with a call. */
        content: Schema.optionalKey(Schema.NullOr(Schema.String)),
        reasoning_content: Schema.optionalKey(Schema.String),
        tool_calls: Schema.optionalKey(Schema.Array(ToolCallDelta)),
        function_call: Schema.optionalKey(FunctionCallDelta),
      }),
      /** Those of this delta's tokens, if the request has `logprobs`. */
      logprobs: Schema.optionalKey(Schema.NullOr(ChatLogprobs)),
      finish_reason: Schema.NullOr(ChatFinish),
    }),
  ),
}

const ChatChunk = Schema.Struct({ ...chatChunk, ...last })

const completionChunk = {
  ...head,
  object: Schema.Literal("text_completion"),
  /** One element; none in the chunk with `usage`. */
  choices: Schema.Array(
    Schema.Struct({
      text: Schema.String,
      index: Schema.Int,
      logprobs: Schema.NullOr(CompletionLogprobs),
      finish_reason: Schema.NullOr(CompletionFinish),
    }),
  ),
}

const CompletionChunk = Schema.Struct({ ...completionChunk, ...last })

/** The last event of a stream that failed (protocol 3.5). */
const StreamFailure = Schema.Struct({
  error: Schema.Struct({
    message: Schema.String,
    type: Schema.Literals(["invalid_request_error", "server_error"]),
  }),
})

export const ChatEvent = Schema.Union([ChatChunk, StreamFailure])
export const CompletionEvent = Schema.Union([CompletionChunk, StreamFailure])

// ---------------------------------------------------------------- the completions socket

/** A text of at most 128 characters, or a number. */
export const GenerationId = Schema.Union([Schema.String.check(Schema.isMaxLength(128)), Schema.Finite])
export type GenerationId = typeof GenerationId.Type

export const CancelFrame = Schema.Struct({ type: Schema.Literal("cancel"), request_id: GenerationId })
/** Starts a text completion. */
export const StartFrame = Schema.Struct({
  ...CompletionBody.fields,
  request_id: Schema.optionalKey(GenerationId),
})

/** Starts a chat. */
export const ChatStartFrame = Schema.Struct({
  ...ChatRequest.fields,
  request_id: Schema.optionalKey(GenerationId),
})

export const CompletionClientFrame = Schema.Union([CancelFrame, StartFrame, ChatStartFrame])

/** An id that the server repeats may be longer than one that it accepts: the error about it names it. */
const repeatedId = Schema.Union([Schema.String, Schema.Finite])

export const CompletionServerFrame = Schema.Union([
  Schema.Struct({ ...completionChunk, request_id: repeatedId }),
  Schema.Struct({ ...chatChunk, request_id: repeatedId }),
  Schema.Struct({ type: Schema.Literal("done"), request_id: repeatedId, usage: TokenUsage }),
  Schema.Struct({
    type: Schema.Literal("error"),
    error: Schema.String,
    request_id: Schema.optionalKey(repeatedId),
  }),
])
