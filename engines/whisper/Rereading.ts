// A text that is probably right, read beside the text that comes out: what does it say comes next? Pure; asked by the
// decoding loop, which checks every guess, so that a wrong one costs time and nothing else.

/** Tokens guessed at once: of the demonstration model, 16 cost twice as much as one (measured), and most are right. */
const LONGEST_GUESS = 24
/** After a difference, until as many tokens in a row have agreed again. */
const CAREFUL_GUESS = 4
/** How far from the expected place a text is found again that has lost or gained tokens. A guess: a word. */
const REACH = 8

export class Rereading {
  private readonly draft: ReadonlyArray<number>
  private readonly timestampBegin: number
  /** Where the draft goes on. */
  private at = 0
  /** Tokens in a row that agreed. */
  private agreed = CAREFUL_GUESS
  private previous = -1

  constructor(draft: ReadonlyArray<number>, timestampBegin: number) {
    this.draft = draft
    this.timestampBegin = timestampBegin
  }

  /** What probably follows the tokens heard so far. */
  guess(): ReadonlyArray<number> {
    const length = this.agreed < CAREFUL_GUESS ? CAREFUL_GUESS : LONGEST_GUESS
    return this.draft.slice(this.at, this.at + length)
  }

  /** The token that came. */
  heard(token: number): void {
    const expected = this.draft[this.at]
    if (token === expected) this.agreed++
    else {
      // Times move a little, and then the text goes on as before; another letter is mostly one in its place.
      const moved = expected !== undefined && token >= this.timestampBegin && expected >= this.timestampBegin
      if (!moved) {
        if (this.agreed === 0) this.at = this.again(token)
        this.agreed = 0
      }
    }
    this.at++
    this.previous = token
  }

  /** The nearest place where the draft has the last two tokens as well; where it is now, if there is none. */
  private again(token: number): number {
    for (let off = 0; off <= REACH; off++) {
      for (const at of [this.at + off, this.at - off]) {
        if (at > 0 && this.draft[at] === token && this.draft[at - 1] === this.previous) return at
      }
    }
    return this.at
  }
}
