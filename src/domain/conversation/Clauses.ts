// Cuts an answer into the pieces that are spoken, while it is being written. The first piece is the first clause, so that speech
// begins early; later pieces are sentences, because a voice needs the end of a sentence for its melody. Pure.

/** A first clause has this many characters at least: a voice speaks a single word badly. A guess. */
const firstCharacters = 12

/** Longest piece, characters; longer sentences are cut at a space. A guess: 15 seconds of speech. */
const mostCharacters = 240

/** A clause ends after one of these marks and white space. */
const clauseEnd = /[,;:.!?…。！？]["')\]]*\s/g
const sentenceEnd = /[.!?…。！？]["')\]]*\s|\n/g

/** Where the text may be cut first: the position after the mark and its white space; undefined for nowhere yet. */
const cutOf = (text: string, mark: RegExp, atLeast: number): number | undefined => {
  for (const { 0: found, index } of text.matchAll(mark)) {
    const end = index + found.length
    if (text.slice(0, end).trim().length >= atLeast) return end
  }
  return undefined
}

const longCut = (text: string): number | undefined => {
  if (text.length <= mostCharacters) return undefined
  const space = text.lastIndexOf(" ", mostCharacters)
  return space > 0 ? space + 1 : mostCharacters
}

/** Text that waits for the end of its piece. It is never changed: more text makes a new one. */
export class Clauses {
  readonly #waiting: string
  readonly #isFirst: boolean

  constructor(waiting = "", isFirst = true) {
    this.#waiting = waiting
    this.#isFirst = isFirst
  }

  /** Text of the answer; the pieces that it completes. */
  push(text: string): { readonly clauses: Clauses; readonly pieces: ReadonlyArray<string> } {
    let waiting = this.#waiting + text
    let isFirst = this.#isFirst
    const pieces: Array<string> = []
    for (;;) {
      const mark = isFirst ? clauseEnd : sentenceEnd
      const cut = cutOf(waiting, mark, isFirst ? firstCharacters : 1) ?? longCut(waiting)
      if (cut === undefined) return { clauses: new Clauses(waiting, isFirst), pieces }
      pieces.push(waiting.slice(0, cut))
      waiting = waiting.slice(cut)
      isFirst = false
    }
  }

  /** What is left where the answer is complete. */
  get rest(): string {
    return this.#waiting
  }
}
