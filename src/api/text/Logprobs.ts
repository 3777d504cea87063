// Log probabilities of an engine in the two forms of replies (protocol 7.9). Pure.
import type { SampledLogprob, TokenLogprob } from "#engines/protocol/Text.ts"

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
  readonly #offsets: Array<number> = []

  listsOf(reply: number, sampled: ReadonlyArray<SampledLogprob>): TokenLists {
    let offset = this.#offsets[reply] ?? 0
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
    this.#offsets[reply] = offset
    return lists
  }
}
