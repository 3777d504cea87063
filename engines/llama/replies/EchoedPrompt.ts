// The beginning of the replies of a request with `echo`: the prompt's text, and where it asks for log probabilities those of the
// prompt's tokens, piece by piece as they are evaluated.

import type { Outlet, SampledLogprob } from "../../protocol/Engine.ts"
import { Utf8Holdback } from "../../shared/text/Utf8Holdback.ts"
import type { Vocabulary } from "../output/Vocabulary.ts"
import type { Score } from "../sampling/Scores.ts"
import { shownScore } from "./ShownScore.ts"

interface EchoedPromptTerms {
  readonly tokens: ReadonlyArray<number>
  /** As the caller sent it; undefined for a prompt of token ids, whose text is that of its tokens. */
  readonly text: string | undefined
  readonly replies: number
  /** Log probabilities, each with so many of the most likely tokens; undefined: none. */
  readonly logprobs: number | undefined
  readonly score: (row: number, token: number, top: number) => Score
  readonly out: Outlet<"text">
  readonly vocabulary: Vocabulary
}

export class EchoedPrompt {
  readonly #terms: EchoedPromptTerms
  /** The text, and how many UTF-16 units of it each token adds. */
  readonly #text: string
  readonly #units: ReadonlyArray<number>
  /** Index of the token whose log probability is the next. */
  #next = 1

  constructor(terms: EchoedPromptTerms) {
    this.#terms = terms
    const { text, tokens, vocabulary } = terms
    const utf8 = new Utf8Holdback()
    const texts = tokens.map((token) => utf8.push(vocabulary.piece(token).bytes))
    const spoken = texts.join("")
    this.#text = text ?? spoken
    // Some vocabularies begin every text with a blank, which is not in the caller's.
    let excess = spoken.endsWith(this.#text) ? spoken.length - this.#text.length : 0
    this.#units = texts.map(({ length }) => {
      const left = Math.max(0, length - excess)
      excess -= length - left
      return left
    })
  }

  /** The text, with the first token: nothing precedes it, so its log probability is NaN. */
  begin(): void {
    const { logprobs, tokens, vocabulary } = this.#terms
    const [first] = tokens
    if (logprobs === undefined || first === undefined) return this.#push(this.#text, undefined)
    const shown = { ...vocabulary.shown(first), logprob: Number.NaN, top: [] }
    this.#push(this.#text, [{ ...shown, units: this.#units[0]! }])
  }

  /** The logits behind the next `count` tokens are the rows 0 to `count` - 1. */
  rows(count: number): void {
    const { logprobs = 0, score, tokens, vocabulary } = this.#terms
    const shown: Array<SampledLogprob> = []
    for (let row = 0; row < count && this.#next < tokens.length; row++) {
      const at = this.#next++
      const scored = shownScore(vocabulary, score(row, tokens[at]!, logprobs))
      shown.push({ ...scored, units: this.#units[at]! })
    }
    if (shown.length > 0) this.#push("", shown)
  }

  #push(text: string, logprobs: ReadonlyArray<SampledLogprob> | undefined): void {
    for (let reply = 0; reply < this.#terms.replies; reply++) {
      const detail = { ...(reply === 0 ? {} : { reply }), ...(logprobs === undefined ? {} : { logprobs }) }
      const isPlain = reply === 0 && logprobs === undefined
      this.#terms.out.push({ text, completionTokens: 0, ...(isPlain ? {} : { detail }) })
    }
  }
}
