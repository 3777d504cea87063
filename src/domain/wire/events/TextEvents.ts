// Events of streamed text (protocol 7.3, 7.4) and frames of the completions socket (protocol 7.6). Schemas only.
import { Schema } from "effect"
import { FinishReason, TokenUsage } from "../Chat.ts"
import { CompletionRequest } from "../Completion.ts"

const milliseconds = Schema.NullOr(Schema.Finite)

/** How long each step took, in the last event where the request asks for it (protocol 1.6). */
export const Timing = Schema.Struct({
  auth_ms: milliseconds,
  queue_ms: milliseconds,
  first_unit_ms: milliseconds,
  total_ms: milliseconds,
})

const head = { id: Schema.String, created: Schema.Int, model: Schema.String }
const last = { usage: Schema.optionalKey(TokenUsage), timing: Schema.optionalKey(Timing) }

export const ChatChunk = Schema.Struct({
  ...head,
  object: Schema.Literal("chat.completion.chunk"),
  /** One element; none in the chunk with `usage`. */
  choices: Schema.Array(
    Schema.Struct({
      index: Schema.Literal(0),
      delta: Schema.Struct({
        role: Schema.optionalKey(Schema.Literal("assistant")),
        content: Schema.optionalKey(Schema.String),
      }),
      finish_reason: Schema.NullOr(FinishReason),
    }),
  ),
  ...last,
})

const completionChunk = {
  ...head,
  object: Schema.Literal("text_completion"),
  /** One element; none in the chunk with `usage`. */
  choices: Schema.Array(
    Schema.Struct({
      text: Schema.String,
      index: Schema.Literal(0),
      logprobs: Schema.Null,
      finish_reason: Schema.NullOr(FinishReason),
    }),
  ),
}

export const CompletionChunk = Schema.Struct({ ...completionChunk, ...last })

/** The last event of a stream that failed (protocol 3.5). */
export const StreamFailure = Schema.Struct({
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
export const StartFrame = Schema.Struct({
  ...CompletionRequest.fields,
  request_id: Schema.optionalKey(GenerationId),
})

export const CompletionClientFrame = Schema.Union([CancelFrame, StartFrame])

/** An id that the server repeats may be longer than one that it accepts: the error about it names it. */
const repeatedId = Schema.Union([Schema.String, Schema.Finite])

export const CompletionServerFrame = Schema.Union([
  Schema.Struct({ ...completionChunk, request_id: repeatedId }),
  Schema.Struct({ type: Schema.Literal("done"), request_id: repeatedId, usage: TokenUsage }),
  Schema.Struct({
    type: Schema.Literal("error"),
    error: Schema.String,
    request_id: Schema.optionalKey(repeatedId),
  }),
])
