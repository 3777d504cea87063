// Proposes the next tokens from a text that is probably right (a draft). The decoding loop checks every guess, so a
// wrong guess costs time and nothing else. Pure.

/** Tokens of one guess. With the demonstration model 16 tokens cost twice as much as one (measured), and most are right. */
const longestGuess = 24
/** Tokens of a guess after a difference, until as many tokens in a row have agreed again. */
const carefulGuess = 4
/** Tokens searched before and after the expected place, when the text gained or lost tokens. A guess: a word. */
const reach = 8

export class Rereading {
  readonly #draft: ReadonlyArray<number>
  readonly #timestampBegin: number
  /** Index of the draft's next token. */
  #at = 0
  /** Number of tokens in a row that agreed. */
  #agreed = carefulGuess
  #previous = -1

  constructor(draft: ReadonlyArray<number>, timestampBegin: number) {
    this.#draft = draft
    this.#timestampBegin = timestampBegin
  }

  /** The tokens that probably follow. */
  guess(): ReadonlyArray<number> {
    const length = this.#agreed < carefulGuess ? carefulGuess : longestGuess
    return this.#draft.slice(this.#at, this.#at + length)
  }

  /** Records the token that was decoded. */
  observe(token: number): void {
    const expected = this.#draft[this.#at]
    if (token === expected) this.#agreed++
    else {
      // A different timestamp does not count as a difference; a different text token usually replaces one of the draft.
      const moved =
        expected !== undefined && token >= this.#timestampBegin && expected >= this.#timestampBegin
      if (!moved) {
        if (this.#agreed === 0) this.#at = this.#again(token)
        this.#agreed = 0
      }
    }
    this.#at++
    this.#previous = token
  }

  /** The nearest index where the draft has the last two tokens too; the present index if there is none. */
  #again(token: number): number {
    for (let off = 0; off <= reach; off++) {
      for (const at of [this.#at + off, this.#at - off]) {
        if (at > 0 && this.#draft[at] === token && this.#draft[at - 1] === this.#previous) return at
      }
    }
    return this.#at
  }
}
