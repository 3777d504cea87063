// The parameters of both text endpoints, with the ranges and defaults of protocol 7.1.
import { Schema } from "effect"
import { finite, flag, int, isObject, optional, range, text } from "./text/Fields.ts"

/** Replies of one request. They hold a slot of the model each. */
export const maxReplies = 8
/** Most likely tokens beside each token. OpenAI's limit. */
export const maxTopLogprobs = 20
/** Entries of `logit_bias`. OpenAI's limit. */
export const maxBiases = 300

const stopSequence = text.check(
  Schema.isMinLength(1, { message: "must not be empty" }),
  Schema.isMaxLength(1_000, { message: "must be at most 1000 characters" }),
)

const stopList = Schema.Array(stopSequence).check(
  Schema.isMaxLength(4, { message: "must be at most 4 stop sequences" }),
)

/** `{"50256": -100}`. Not a Record: decoding one costs by its entries before their number is checked. */
const logitBias = Schema.Unknown.check(
  Schema.makeFilter((value: unknown) => {
    if (!isObject(value)) return "must be an object of token ids and numbers"
    const entries = Object.entries(value)
    if (entries.length > maxBiases) return `must have at most ${maxBiases} tokens`
    for (const [token, bias] of entries) {
      if (!/^\d{1,9}$/.test(token)) return "must have token ids as keys"
      if (typeof bias !== "number" || !(bias >= -100 && bias <= 100)) return "must have values of -100 to 100"
    }
    return true
  }),
)

/** The entries of a checked `logit_bias`. */
export const biasesOf = (value: unknown): ReadonlyArray<readonly [token: number, bias: number]> =>
  isObject(value) ? Object.entries(value).map(([token, bias]) => [Number(token), Number(bias)]) : []

/** Fields of a request body, to be spread into the endpoint's struct. */
export const samplingFields = {
  /** OpenAI's newer name for `max_tokens`, which wins if both are given. */
  max_completion_tokens: optional(int.check(range(1, 4096))),
  max_tokens: optional(int.check(range(1, 4096))),
  temperature: optional(finite.check(range(0, 2))),
  top_p: optional(finite.check(range(0, 1))),
  /** 0 or -1 means the whole vocabulary. The upper bound is far above any vocabulary. */
  top_k: optional(int.check(range(-1, 1_000_000))),
  frequency_penalty: optional(finite.check(range(-2, 2))),
  presence_penalty: optional(finite.check(range(-2, 2))),
  stop: optional(Schema.Union([stopSequence, stopList])),
  stream: optional(flag),
  stream_options: optional(
    Schema.Struct({
      include_usage: Schema.optionalKey(Schema.Unknown),
      /** Not OpenAI's: adds `timing` to the last chunk. */
      include_timing: Schema.optionalKey(Schema.Unknown),
    }),
  ),
  user: optional(text),
  /** Never a reason to refuse (protocol 7.1). */
  seed: Schema.optionalKey(Schema.Unknown),
  n: optional(int.check(range(1, maxReplies))),
  logit_bias: optional(logitBias),
  min_tokens: optional(int.check(range(0, 4096))),
}
