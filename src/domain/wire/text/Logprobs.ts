// Log probabilities in replies: the form of chat, and the older one of text completions (protocol 7.9). Schemas.
import { Schema } from "effect"

const token = { token: Schema.String, logprob: Schema.Finite, bytes: Schema.Array(Schema.Int) }

export const ChatLogprobs = Schema.Struct({
  content: Schema.Array(Schema.Struct({ ...token, top_logprobs: Schema.Array(Schema.Struct(token)) })),
  refusal: Schema.Null,
})

/** Lists with an element for each token. */
export const CompletionLogprobs = Schema.Struct({
  tokens: Schema.Array(Schema.String),
  /** `null` for the first token of a prompt, which nothing precedes. */
  token_logprobs: Schema.Array(Schema.NullOr(Schema.Finite)),
  top_logprobs: Schema.NullOr(Schema.Array(Schema.NullOr(Schema.Record(Schema.String, Schema.Finite)))),
  /** Where the token begins in the choice's text, in UTF-16 units. */
  text_offset: Schema.Array(Schema.Int),
})
