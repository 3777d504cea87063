// The parameters of both text endpoints, with the ranges and defaults of protocol 7.1. `null` counts as absent, as
// OpenAI's clients send it for "not set".
import { Schema } from "effect"

const range = (minimum: number, maximum: number) =>
  Schema.isBetween({ minimum, maximum }, { message: `must be between ${minimum} and ${maximum}` })

const int = Schema.Int.annotate({ message: "must be an integer" })
const finite = Schema.Finite.annotate({ message: "must be a number" })

const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const stopSequence = Schema.String.annotate({ message: "must be a text" }).check(
  Schema.isMinLength(1, { message: "must not be empty" }),
  Schema.isMaxLength(1_000, { message: "must be at most 1000 characters" }),
)

const stopList = Schema.Array(stopSequence).check(
  Schema.isMaxLength(4, { message: "must be at most 4 stop sequences" }),
)

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
  stream: optional(Schema.Boolean.annotate({ message: "must be true or false" })),
  stream_options: optional(
    Schema.Struct({
      include_usage: Schema.optionalKey(Schema.Unknown),
      /** Not OpenAI's: adds `timing` to the last chunk. */
      include_timing: Schema.optionalKey(Schema.Unknown),
    }),
  ),
  user: optional(Schema.String.annotate({ message: "must be a text" })),
  /** Never a reason to refuse (protocol 7.1). */
  seed: Schema.optionalKey(Schema.Unknown),
  n: optional(int.check(Schema.isBetween({ minimum: 1, maximum: 1 }, { message: "must be 1" }))),
}
