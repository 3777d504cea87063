// A text completion request and its replies on the wire (protocol 7.4). Schemas.
import { Schema } from "effect"
import { TokenUsage } from "./Chat.ts"
import { maxReplies, maxTopLogprobs, samplingFields } from "./Sampling.ts"
import { flag, int, optional, range, text } from "./text/Fields.ts"
import { CompletionLogprobs } from "./text/Logprobs.ts"

export const CompletionRequest = Schema.Struct({
  model: Schema.NonEmptyString,
  prompt: Schema.String,
  ...samplingFields,
  /** Number of most likely tokens beside each token. */
  logprobs: optional(int.check(range(0, maxTopLogprobs))),
  echo: optional(flag),
  /** What follows the reply, for models that fill in the middle. */
  suffix: optional(text),
  best_of: optional(int.check(range(1, maxReplies))),
})
export type CompletionRequest = typeof CompletionRequest.Type

export const CompletionFinish = Schema.Literals(["stop", "length", "content_filter"])

export const Completion = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("text_completion"),
  created: Schema.Int,
  model: Schema.String,
  system_fingerprint: Schema.String,
  choices: Schema.Array(
    Schema.Struct({
      text: Schema.String,
      index: Schema.Int,
      logprobs: Schema.NullOr(CompletionLogprobs),
      finish_reason: CompletionFinish,
    }),
  ),
  usage: TokenUsage,
})
