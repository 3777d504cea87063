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

export class Clauses {
  private waiting = ""
  private isFirst = true

  /** Text of the answer; the pieces that it completes. */
  push(text: string): ReadonlyArray<string> {
    this.waiting += text
    const pieces: Array<string> = []
    for (;;) {
      const mark = this.isFirst ? clauseEnd : sentenceEnd
      const cut = cutOf(this.waiting, mark, this.isFirst ? firstCharacters : 1) ?? this.longCut()
      if (cut === undefined) return pieces
      pieces.push(this.waiting.slice(0, cut))
      this.waiting = this.waiting.slice(cut)
      this.isFirst = false
    }
  }

  /** The answer is complete: what is left of it. */
  end(): string {
    const { waiting } = this
    this.waiting = ""
    return waiting
  }

  private longCut(): number | undefined {
    if (this.waiting.length <= mostCharacters) return undefined
    const space = this.waiting.lastIndexOf(" ", mostCharacters)
    return space > 0 ? space + 1 : mostCharacters
  }
}
