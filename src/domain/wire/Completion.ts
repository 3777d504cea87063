// A text completion request and its replies on the wire (protocol 7.4). Schemas.
import { Schema } from "effect"
import { TokenUsage } from "./Chat.ts"
import type { InvalidRequest } from "./Errors.ts"
import { maxReplies, maxTopLogprobs, samplingFields } from "./Sampling.ts"
import { type TextInput, TextInputs, textInputsOf } from "./TextInputs.ts"
import { flag, int, optional, range, text } from "./text/Fields.ts"
import { CompletionLogprobs } from "./text/Logprobs.ts"

/** Prompts of a request, each with replies of its own. A guess: the largest batch that evaluations send. */
export const maxPrompts = 128

const fields = {
  model: Schema.NonEmptyString,
  ...samplingFields,
  /** 0 only with `echo`. */
  max_tokens: optional(int.check(range(0, 4096))),
  /** Number of most likely tokens beside each token. */
  logprobs: optional(int.check(range(0, maxTopLogprobs))),
  echo: optional(flag),
  /** What follows the reply, for models that fill in the middle. */
  suffix: optional(text),
  best_of: optional(int.check(range(1, maxReplies))),
}

/** As the API declares it. */
export const CompletionRequest = Schema.Struct({ ...fields, prompt: TextInputs })

/** As it is decoded: the lists of `prompt` are checked by `promptsOf`. */
export const CompletionBody = Schema.Struct({ ...fields, prompt: Schema.Unknown })
export type CompletionBody = typeof CompletionBody.Type

/** The prompts of a request, at least one, or what is wrong with them. */
export const promptsOf = ({ prompt }: CompletionBody): ReadonlyArray<TextInput> | InvalidRequest =>
  textInputsOf(prompt, { field: "prompt", most: maxPrompts, emptyTexts: true })

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
