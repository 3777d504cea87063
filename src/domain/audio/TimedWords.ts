// When the words of a spoken text are heard. A speech engine tells the words as it spoke them ("twenty five"), with times;
// WordTimes finds them in the text as it was written ("25"), while they come. Pure.

/** A word as it was spoken. */
export interface SpokenWord {
  /** Empty: the word before it goes on. */
  readonly text: string
  /** Its first sample, and the sample after its last one. */
  readonly start: number
  readonly end: number
}

/** A word as it was written, with its place in the text: `from` to `to` are UTF-16 units. */
export interface WrittenWord {
  readonly from: number
  readonly to: number
  readonly start: number
  end: number
}

/** Costs of a match, guesses: only their order matters. */
const begun = 0.1
const expanded = 0.3
const continued = 0.2
const different = 1
const strange = 1.2
const skipped = 1
const skippedMark = 0.1

interface Token {
  readonly from: number
  readonly to: number
  /** Letters and digits alone, in lower case without accents. */
  readonly letters: string
  /** It may be spoken as other words: numbers, symbols, initials, abbreviations, joined words. */
  readonly expands: boolean
}

const lettersOf = (text: string): string =>
  text
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, "")

const expands = (text: string): boolean =>
  /[\p{N}\p{S}@%&#§/\\]|\p{L}[-–—./:]\p{L}|^\P{L}*\p{Lu}{2,}|\p{L}\.$/u.test(text)

const tokensOf = (text: string): ReadonlyArray<Token> =>
  [...text.matchAll(/\S+/g)].map(({ 0: word, index }) => ({
    from: index,
    to: index + word.length,
    letters: lettersOf(word),
    expands: expands(word),
  }))

/** How different a spoken word is from the written one that it would begin: 0 to 1. */
const difference = (token: Token, letters: string): number => {
  if (token.letters === letters) return 0
  if (token.expands && letters !== "" && token.letters.startsWith(letters)) return begun
  let same = 0
  while (same < letters.length && letters[same] === token.letters[same]) same++
  const unlike = different - same / Math.max(letters.length, token.letters.length, 1)
  return token.expands ? Math.min(expanded, unlike) : Math.max(expanded, unlike)
}

const continuing = (token: Token, letters: string): number =>
  token.expands || (letters !== "" && token.letters.includes(letters)) ? continued : strange

const skipping = (token: Token): number => (token.letters === "" ? skippedMark : skipped)

/** Written words that are considered beyond the number of spoken ones. */
const slack = 12

export class WordTimes {
  readonly #tokens: ReadonlyArray<Token>
  /** Index of the written word after the last one found. */
  #next = 0
  /** Those that were found, in their order; `end` of the last one may still grow. */
  readonly found: Array<WrittenWord> = []

  constructor(text: string | WordTimes) {
    if (typeof text === "string") {
      this.#tokens = tokensOf(text)
      return
    }
    this.#tokens = text.#tokens
    this.#next = text.#next
    this.found = text.found.map((word) => ({ ...word }))
  }

  /** A copy to which these words were added. */
  with(words: ReadonlyArray<SpokenWord>): WordTimes {
    const copy = new WordTimes(this)
    copy.push(words)
    return copy
  }

  /** The next words that were spoken. */
  push(words: ReadonlyArray<SpokenWord>): void {
    const spoken: Array<SpokenWord & { letters: string }> = []
    for (const word of words) {
      const last = spoken.at(-1)
      if (word.text !== "") spoken.push({ ...word, letters: lettersOf(word.text) })
      else if (last !== undefined) spoken[spoken.length - 1] = { ...last, end: word.end }
      else this.#extend(word.end)
    }
    if (spoken.length === 0 || this.#tokens.length === 0) return
    for (const [at, token] of this.#match(spoken.map(({ letters }) => letters)).entries()) {
      const { end, start } = spoken[at]!
      if (token < this.#next) this.#extend(end)
      else {
        const { from, to } = this.#tokens[token]!
        this.#next = token + 1
        this.found.push({ from, to, start, end })
      }
    }
  }

  #extend(end: number): void {
    const last = this.found.at(-1)
    if (last !== undefined) last.end = Math.max(last.end, end)
  }

  /**
   * The written word of each spoken one, ascending: the way of least cost. Row 0 is the last word that was found, which the first
   * spoken words may continue; written words behind the last spoken one cost nothing.
   */
  #match(spoken: ReadonlyArray<string>): ReadonlyArray<number> {
    const first = Math.max(0, this.#next - 1)
    const tokens = this.#tokens.slice(first, first + 2 * spoken.length + slack)
    // Costs after `at` spoken words, the last of them in word `row`; −1: none yet.
    const rows = tokens.length
    const from: Array<Int32Array> = []
    let before = new Float64Array(rows).fill(Number.POSITIVE_INFINITY)
    /** Cost of beginning word `row`, if nothing was spoken yet. */
    let fresh: number | undefined = this.#next === 0 ? 0 : undefined
    if (fresh === undefined && rows > 0) before[0] = 0
    for (const letters of spoken) {
      const now = new Float64Array(rows).fill(Number.POSITIVE_INFINITY)
      const source = new Int32Array(rows).fill(-1)
      // The least cost of arriving at each word from an earlier one, with those between skipped.
      let arriving = fresh ?? Number.POSITIVE_INFINITY
      let arrivingFrom = -1
      for (let row = 0; row < rows; row++) {
        const token = tokens[row]!
        const begin = arriving + difference(token, letters)
        const go = before[row]! + continuing(token, letters)
        if (begin <= go) {
          now[row] = begin
          source[row] = arrivingFrom
        } else {
          now[row] = go
          source[row] = row
        }
        arriving += skipping(token)
        if (before[row]! < arriving) {
          arriving = before[row]!
          arrivingFrom = row
        }
      }
      from.push(source)
      before = now
      fresh = undefined
    }
    let row = before.indexOf(Math.min(...before))
    const path: Array<number> = []
    for (let at = spoken.length - 1; at >= 0; at--) {
      path.unshift(first + Math.max(0, row))
      row = from[at]![Math.max(0, row)]!
    }
    return path
  }
}
