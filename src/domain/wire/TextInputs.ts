// Texts or token ids in a request: one or a list, as `input` of embeddings and `prompt` of text completions have them. Pure.
import { Schema } from "effect"
import { InvalidRequest } from "./Errors.ts"

const tokens = Schema.Array(Schema.Int)

/** As the API declares it. */
export const TextInputs = Schema.Union([
  Schema.String,
  Schema.Array(Schema.String),
  tokens,
  Schema.Array(tokens),
])

/** A text, or the ids of its tokens. */
export type TextInput = string | ReadonlyArray<number>

const isToken = (value: unknown): value is number => Number.isSafeInteger(value)
const isTokens = (value: unknown): value is ReadonlyArray<number> =>
  Array.isArray(value) && value.every(isToken)

const kinds = "must be a text, a list of texts, a list of token ids, or a list of lists of token ids"

interface InputRules {
  readonly field: string
  /** Most elements of a list. */
  readonly most: number
  /** Whether a text may be empty. A list of token ids may not. */
  readonly emptyTexts: boolean
}

/** At least one, or what is wrong with them. In plain code, because a schema would cost a hundred times as much for long lists. */
export const textInputsOf = (
  input: unknown,
  { emptyTexts, field, most }: InputRules,
): ReadonlyArray<TextInput> | InvalidRequest => {
  const refused = (problem: string, index?: number) =>
    new InvalidRequest({ field: index === undefined ? field : `${field}[${index}]`, problem })
  const isEmpty = (one: TextInput) => one.length === 0 && !(emptyTexts && typeof one === "string")
  if (input === undefined || input === null) return refused("is required")
  if (typeof input === "string") return isEmpty(input) ? refused("must not be empty") : [input]
  if (!Array.isArray(input)) return refused(kinds)
  const list: ReadonlyArray<unknown> = input
  const [first] = list
  if (first === undefined) return refused("must not be empty")
  if (typeof first === "number")
    return isTokens(list) ? [list] : refused("must hold token ids only, which are integers")
  if (list.length > most) return refused(`has ${list.length} ${field}s; a request may have at most ${most}`)
  const inputs: Array<TextInput> = []
  for (const [index, one] of list.entries()) {
    if (typeof one !== "string" && !isTokens(one))
      return refused("must be a text or a list of token ids", index)
    if (typeof one !== typeof first)
      return refused(`must be of the same kind as ${field}[0]: all texts, or all lists of token ids`, index)
    if (isEmpty(one)) return refused("must not be empty", index)
    inputs.push(one)
  }
  return inputs
}
