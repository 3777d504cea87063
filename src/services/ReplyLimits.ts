// How many replies, tokens and log probabilities a request may have. Pure.
import { InvalidRequest } from "#domain/wire/Errors.ts"
import { textPromptsOf } from "#engines/protocol/Contents.ts"
import type { GenerateRequest, TextPrompt } from "#engines/protocol/Text.ts"

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

/**
 * Log probabilities of one request: 7 MB of JSON. Those of 4,096 tokens with 20 alternatives each are fewer. A guess.
 */
export const maxLogprobs = 100_000

/** Bytes of a prompt for each of its tokens, to bound those of `echo` before the prompt is tokenized. A guess. */
const bytesPerToken = 3

/** The refusal of a request for more log probabilities than fit in a reply. */
export const tooManyLogprobs = (request: GenerateRequest, field: string): InvalidRequest | undefined => {
  const { echo = false, logprobs, maxTokens, prompt, replies = 1 } = request
  if (logprobs === undefined) return undefined
  const echoed = (text: TextPrompt) =>
    typeof text === "string" ? Buffer.byteLength(text) / bytesPerToken : text.length
  const prompts = textPromptsOf(prompt)
  const echoedTokens = echo ? prompts.reduce((sum, text) => sum + echoed(text), 0) : 0
  const count = replies * (Math.max(1, prompts.length) * maxTokens + echoedTokens) * (1 + logprobs)
  if (count <= maxLogprobs) return undefined
  const problem = `at most ${maxLogprobs} log probabilities a request: fewer prompts, replies, tokens or alternatives`
  return new InvalidRequest({ field, problem })
}
