// A text completion request and its replies on the wire (protocol 7.4). Schemas.
import { Schema } from "effect"
import { FinishReason, TokenUsage } from "./Chat.ts"
import { samplingFields } from "./Sampling.ts"

export const CompletionRequest = Schema.Struct({
  model: Schema.NonEmptyString,
  prompt: Schema.String,
  ...samplingFields,
})
export type CompletionRequest = typeof CompletionRequest.Type

export const Completion = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("text_completion"),
  created: Schema.Int,
  model: Schema.String,
  choices: Schema.Array(
    Schema.Struct({
      text: Schema.String,
      index: Schema.Int,
      logprobs: Schema.Null,
      finish_reason: FinishReason,
    }),
  ),
  usage: TokenUsage,
})
