// A request for embeddings and its reply on the wire. Schemas, and the check of the inputs.
import { Schema } from "effect"
import type { InvalidRequest } from "./Errors.ts"
import { type TextInput, TextInputs, textInputsOf } from "./TextInputs.ts"
import { int, optional } from "./text/Fields.ts"

/** Most inputs of a request, as OpenAI's API has it. */
const maxInputs = 2_048

const encoding = Schema.Literals(["float", "base64"]).annotate({ message: "must be float or base64" })
const positive = int.check(Schema.isGreaterThanOrEqualTo(1, { message: "must be at least 1" }))

const fields = {
  model: Schema.NonEmptyString,
  encoding_format: optional(encoding),
  dimensions: optional(positive),
  /** Ignored. */
  user: Schema.optionalKey(Schema.Unknown),
}

/** As the API declares it. */
export const EmbeddingRequest = Schema.Struct({
  ...fields,
  input: TextInputs,
})

/** As it is decoded: the lists of `input` are checked by `inputsOf`. */
export const EmbeddingBody = Schema.Struct({ ...fields, input: Schema.Unknown })
export type EmbeddingBody = typeof EmbeddingBody.Type

export const EmbeddingList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(
    Schema.Struct({
      object: Schema.Literal("embedding"),
      index: Schema.Int,
      /** With `base64` the vector's 32-bit floats, little-endian. */
      embedding: Schema.Union([Schema.Array(Schema.Finite), Schema.String]),
    }),
  ),
  model: Schema.String,
  usage: Schema.Struct({ prompt_tokens: Schema.Int, total_tokens: Schema.Int }),
})

/** The inputs of a request, at least one and none of them empty, or what is wrong with them. */
export const inputsOf = (input: unknown): ReadonlyArray<TextInput> | InvalidRequest =>
  textInputsOf(input, { field: "input", most: maxInputs, emptyTexts: false })
