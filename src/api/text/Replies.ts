// How many replies a request may have, and what else of a request its other fields decide. Pure.
import { InvalidRequest } from "#domain/wire/Errors.ts"
import type { GenerateRequest } from "#engines/protocol/Text.ts"

interface Fields {
  readonly min_tokens?: number | null
}

/**
 * The refusal of numbers that do not fit to each other or to the model.
 * @param slots replies that the model decodes side by side; undefined before it has loaded, then its engine refuses
 */
export const replyProblem = (
  { min_tokens }: Fields,
  { bestOf, maxTokens, replies = 1 }: GenerateRequest,
  slots: number | undefined,
): InvalidRequest | undefined => {
  if ((min_tokens ?? 0) > maxTokens) {
    return new InvalidRequest({ field: "min_tokens", problem: `must be at most max_tokens: ${maxTokens}` })
  }
  const [field, count] = bestOf === undefined ? (["n", replies] as const) : (["best_of", bestOf] as const)
  if (slots === undefined || count <= slots) return undefined
  return new InvalidRequest({ field, problem: `must be at most ${slots} for this model` })
}
