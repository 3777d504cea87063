// Log probabilities of an engine in the two forms of replies (protocol 7.9), and the most that a request gets.
// Pure.
import { InvalidRequest } from "#domain/wire/Errors.ts"
import { textPromptsOf } from "#engines/protocol/Contents.ts"
import type { GenerateRequest, SampledLogprob, TextPrompt, TokenLogprob } from "#engines/protocol/Text.ts"

/** JSON has no infinity. OpenAI's stand-in for a probability of nearly 0. */
const least = -9999

const finite = (logprob: number): number => (Number.isFinite(logprob) ? logprob : least)

const entry = ({ bytes, logprob, token }: TokenLogprob) => ({ token, logprob: finite(logprob), bytes })

/** One element of `logprobs.content` in chat. */
export const chatLogprob = (sampled: SampledLogprob) => ({
  ...entry(sampled),
  top_logprobs: sampled.top.map(entry),
})

/** The lists of `logprobs` in text completions. */
export interface TokenLists {
  readonly tokens: Array<string>
  readonly token_logprobs: Array<number | null>
  readonly top_logprobs: Array<Readonly<Record<string, number>> | null>
  readonly text_offset: Array<number>
}

/** Makes the lists of the tokens of each delta; knows where in the text of its reply a token begins. */
export class TokenOffsets {
  private readonly offsets: Array<number> = []

  listsOf(reply: number, sampled: ReadonlyArray<SampledLogprob>): TokenLists {
    let offset = this.offsets[reply] ?? 0
    const lists: TokenLists = { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] }
    for (const { logprob, token, top, units } of sampled) {
      // The first token of a prompt has no probability.
      const isFirst = Number.isNaN(logprob)
      lists.tokens.push(token)
      lists.token_logprobs.push(isFirst ? null : finite(logprob))
      lists.top_logprobs.push(
        isFirst ? null : Object.fromEntries(top.map((each) => [each.token, finite(each.logprob)])),
      )
      lists.text_offset.push(offset)
      offset += units ?? token.length
    }
    this.offsets[reply] = offset
    return lists
  }
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
