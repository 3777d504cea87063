// What a request for embeddings may ask of a model of any kind. Pure.
import { maxRequestTokens, maxRequestValues } from "../../protocol/Embedding.ts"
import { type EmbedRequest, EngineError, invalidInput } from "../../protocol/Engine.ts"

/** The refusal of a request by a model whose vectors have `width` values; undefined if it may run. */
export const boundProblem = (
  width: number,
  { dimensions = width, inputs }: EmbedRequest,
): EngineError | undefined => {
  if (dimensions > width)
    return invalidInput("dimensions", `is ${dimensions}; this model's embeddings have ${width}`)
  const values = inputs.length * dimensions
  return values > maxRequestValues
    ? invalidInput(
        "input",
        `has ${inputs.length} inputs of ${dimensions} numbers each; a reply may have at most ${maxRequestValues} numbers`,
      )
    : undefined
}

export const tooManyTokens = (): EngineError =>
  invalidInput("input", `has more than ${maxRequestTokens} tokens; send fewer inputs in one request`)

export const tooLong = (index: number, promptTokens: number, contextTokens: number): EngineError =>
  new EngineError({
    reason: "PromptTooLong",
    field: `input[${index}]`,
    detail: `${promptTokens} tokens do not fit into a context of ${contextTokens}`,
    promptTokens,
    contextTokens,
  })
