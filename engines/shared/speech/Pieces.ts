// Cuts phoneme fragments into pieces: each has a bounded number of symbols and is spoken by one call of the graph. The cuts depend on
// the text alone, never on time or on other requests, so that a streamed and a whole reply have the same samples. Symbols that the
// model does not know are dropped, and no others.
import * as Effect from "effect/Effect"
import { callFailed, type EngineError } from "../../protocol/Engine.ts"
import { maxSymbols, type Symbols } from "./Symbols.ts"
import { type Fragment, wordOfSymbols } from "./WordSymbols.ts"

/** The pause at the end of a piece. */
export type Pause = "sentence" | "clause" | "comma" | "none"

export interface Piece {
  /** Known symbols only, at most `maxSymbols`, without white space at either end. */
  readonly phonemes: string
  readonly pause: Pause
  /** The words that are spoken in it, in order. */
  readonly words: ReadonlyArray<PieceWord>
}

/** A word of a piece: its symbols `from` to `to`. */
export interface PieceWord {
  /** Empty if a word was cut between two pieces: these symbols are the rest of the last word of the previous piece. */
  readonly text: string
  readonly from: number
  readonly to: number
}

interface PieceRule {
  /** Most symbols of a piece after the first two. */
  readonly maxSymbols: number
}

/**
 * The first piece ends at its first clause mark, or at a word after 60 symbols (about 3 s of speech): the sooner it
 * ends, the sooner audio starts. With less than 12 symbols, "Well," would be a piece of its own and sound cut off.
 */
const first = { min: 12, max: 60 }

/** Share of `maxSymbols`. The second piece must be ready before the first has played, so it is of medium length. */
const secondShare = 0.6

const sentence = ".!?…"
const clause = ";:"
const comma = ",—)”"
const closing = '”")'
/** Stands for the full stop of "r.", eSpeak's way to write the Hindi sound of "ड़", where no piece is cut. */
const innerStop = "\u0001"
const soundless = /^[\s;:,.!?—…"()“”ˈˌː]*$/u

const pauseAfter = (symbols: ReadonlyArray<string>, end: number): Pause => {
  let pause: Pause = "none"
  for (let i = end - 1; i >= 0; i--) {
    const symbol = symbols[i]!
    if (sentence.includes(symbol)) return "sentence"
    if (clause.includes(symbol)) return "clause"
    if (symbol !== " " && !closing.includes(symbol)) return comma.includes(symbol) ? "comma" : pause
    if (comma.includes(symbol)) pause = "comma"
  }
  return pause
}

/** Index after the mark at `at`, after further marks of the same run, and after closing quotes next to it. */
const afterMark = (symbols: ReadonlyArray<string>, at: number): number => {
  let end = at + 1
  while (end < symbols.length && (sentence.includes(symbols[end]!) || closing.includes(symbols[end]!))) end++
  return end
}

/** The last position, at most `max`, where a mark of `marks` ends. */
const lastMark = (symbols: ReadonlyArray<string>, marks: string, max: number): number => {
  for (let i = Math.min(max, symbols.length) - 1; i > 0; i--) {
    if (!marks.includes(symbols[i]!)) continue
    const end = afterMark(symbols, i)
    if (end <= max) return end
  }
  return 0
}

/** Where to cut a row that is longer than `max`: sentence, clause, comma, word, anywhere. Returns 1 to `max`. */
export const cutAt = (symbols: ReadonlyArray<string>, max: number): number => {
  for (const marks of [sentence, clause, comma]) {
    const end = lastMark(symbols, marks, max)
    if (end > 0) return end
  }
  for (let i = Math.min(max, symbols.length - 1); i > 0; i--) if (symbols[i] === " ") return i
  return Math.min(max, symbols.length)
}

/** The first mark that ends at or after `min`, or undefined. */
const firstMark = (symbols: ReadonlyArray<string>, min: number, max: number): number | undefined => {
  for (let i = 0; i < Math.min(max, symbols.length); i++) {
    if (!(sentence + clause + comma).includes(symbols[i]!)) continue
    const end = afterMark(symbols, i)
    if (end >= min && end <= max) return end
  }
  return undefined
}

/** A cursor over one text. `next` phonemises only as much as its piece needs. */
export class PieceReader {
  readonly #symbols: Symbols
  readonly #fragments: AsyncIterator<Fragment>
  readonly #maxSymbols: number
  readonly #pending: Array<string> = []
  /** The word of each pending symbol, an index of `words`; −1 for none. */
  readonly #pendingWords: Array<number> = []
  readonly #words: Array<string> = []
  #lastWord = -1
  #ended = false
  #taken = 0

  constructor(fragments: AsyncIterable<Fragment>, symbols: Symbols, rule: PieceRule) {
    this.#fragments = fragments[Symbol.asyncIterator]()
    this.#symbols = symbols
    this.#maxSymbols = Math.max(1, Math.min(rule.maxSymbols, maxSymbols))
  }

  /** The next piece, or undefined after the last one. */
  get next(): Effect.Effect<Piece | undefined, EngineError> {
    return Effect.tryPromise({
      try: () => this.#read(),
      catch: (cause) => callFailed(`phonemes: ${String(cause)}`),
    })
  }

  async #read(): Promise<Piece | undefined> {
    for (;;) {
      const end = await this.#nextCut()
      if (end === 0) return undefined
      const pause = pauseAfter(this.#pending, end)
      const symbols = this.#pending.splice(0, end)
      const wordOf = this.#pendingWords.splice(0, end)
      const phonemes = symbols.join("").replaceAll(innerStop, ".").trim()
      // Marks without words are not spoken; their pause belongs to the piece before.
      if (soundless.test(phonemes)) continue
      this.#taken++
      const skipped = symbols.findIndex((symbol) => symbol.trim() !== "")
      return { phonemes, pause, words: this.#wordsOf(wordOf.slice(skipped)) }
    }
  }

  #wordsOf(wordOf: ReadonlyArray<number>): ReadonlyArray<PieceWord> {
    const words: Array<PieceWord & { to: number }> = []
    let open = -1
    for (const [at, word] of wordOf.entries()) {
      if (word < 0) continue
      const last = words.at(-1)
      if (word === open && last !== undefined) last.to = at + 1
      else {
        words.push({ text: word === this.#lastWord ? "" : this.#words[word]!, from: at, to: at + 1 })
        open = word
      }
    }
    if (open >= 0) this.#lastWord = open
    return words
  }

  async #nextCut(): Promise<number> {
    const max = this.#limit()
    for (;;) {
      if (this.#taken === 0) {
        const cut = firstMark(this.#pending, first.min, max)
        if (cut !== undefined) return cut
      }
      if (this.#pending.length > max) return cutAt(this.#pending, max)
      if (this.#ended) return this.#pending.length
      await this.#fill()
    }
  }

  #limit(): number {
    if (this.#taken === 0) return Math.min(first.max, this.#maxSymbols)
    return this.#taken === 1 ? Math.ceil(this.#maxSymbols * secondShare) : this.#maxSymbols
  }

  async #fill(): Promise<void> {
    const fragment = await this.#fragments.next()
    if (fragment.done === true) {
      this.#ended = true
      return
    }
    const { phonemes, words } = fragment.value
    const wordOf = wordOfSymbols(fragment.value)
    const before = this.#words.length
    for (const word of words.split(/\s+/)) if (word !== "") this.#words.push(word)
    let at = 0
    for (const symbol of phonemes) {
      const word = wordOf[at++]!
      if (symbol === " " && (this.#pending.length === 0 || this.#pending.at(-1) === " ")) continue
      if (!this.#symbols.has(symbol)) continue
      const isInner = symbol === "." && word >= 0 && this.#pending.at(-1) === "r"
      this.#pending.push(isInner ? innerStop : symbol)
      this.#pendingWords.push(word < 0 ? -1 : before + word)
    }
  }
}
