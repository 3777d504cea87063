// A request for embeddings and its reply on the wire. Schemas, and the check of the inputs.
import { Schema } from "effect"
import { InvalidRequest } from "./Errors.ts"
import { int, optional } from "./text/Fields.ts"

/** Most inputs of a request, as OpenAI's API has it. */
export const maxInputs = 2_048

const encoding = Schema.Literals(["float", "base64"]).annotate({ message: "must be float or base64" })
const positive = int.check(Schema.isGreaterThanOrEqualTo(1, { message: "must be at least 1" }))

const fields = {
  model: Schema.NonEmptyString,
  encoding_format: optional(encoding),
  dimensions: optional(positive),
  /** Ignored. */
  user: Schema.optionalKey(Schema.Unknown),
}

const tokens = Schema.Array(Schema.Int)

/** As the API declares it. */
export const EmbeddingRequest = Schema.Struct({
  ...fields,
  input: Schema.Union([Schema.String, Schema.Array(Schema.String), tokens, Schema.Array(tokens)]),
})

/** As it is decoded: the lists of `input` are checked by `inputsOf`, which costs a hundredth of what a schema would cost. */
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

export type WireInput = string | ReadonlyArray<number>

const isToken = (value: unknown): value is number => Number.isSafeInteger(value)
const isTokens = (value: unknown): value is ReadonlyArray<number> =>
  Array.isArray(value) && value.every(isToken)

const refused = (problem: string, index?: number) =>
  new InvalidRequest({ field: index === undefined ? "input" : `input[${index}]`, problem })

const kinds = "must be a text, a list of texts, a list of token ids, or a list of lists of token ids"

/** The inputs of a request, at least one and none of them empty, or what is wrong with them. */
export const inputsOf = (input: unknown): ReadonlyArray<WireInput> | InvalidRequest => {
  if (input === undefined || input === null) return refused("is required")
  if (typeof input === "string") return input === "" ? refused("must not be empty") : [input]
  if (!Array.isArray(input)) return refused(kinds)
  const list: ReadonlyArray<unknown> = input
  const [first] = list
  if (first === undefined) return refused("must not be empty")
  if (typeof first === "number")
    return isTokens(list) ? [list] : refused("must hold token ids only, which are integers")
  if (list.length > maxInputs)
    return refused(`has ${list.length} inputs; a request may have at most ${maxInputs}`)
  const inputs: Array<WireInput> = []
  for (const [index, one] of list.entries()) {
    if (typeof one !== "string" && !isTokens(one))
      return refused("must be a text or a list of token ids", index)
    if (typeof one !== typeof first)
      return refused("must be of the same kind as input[0]: all texts, or all lists of token ids", index)
    if (one.length === 0) return refused("must not be empty", index)
    inputs.push(one)
  }
  return inputs
}
