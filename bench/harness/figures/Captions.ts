// Captions of a live session against the moments at which their audio was sent: how late they are, and how often shown
// words change. Pure.
import { wordsOf } from "./WordErrors.ts"

/** Words before the first difference. */
const commonWords = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): number => {
  let count = 0
  while (count < a.length && count < b.length && a[count] === b[count]) count++
  return count
}

export class Captions {
  /** When the audio up to a position was sent: milliseconds for a position in seconds; undefined if it was not yet. */
  readonly #sentAtMs: (seconds: number) => number | undefined
  /** Ends of the words that are said, seconds. */
  readonly #wordEnds: ReadonlyArray<number>
  readonly #onCaptionLag: (lagMs: number) => void
  #shown: ReadonlyArray<string> = []
  #mostWords = 0
  #changed = 0
  readonly captionLags: Array<number> = []
  readonly wordLags: Array<number> = []

  constructor(
    sentAtMs: (seconds: number) => number | undefined,
    wordEnds: ReadonlyArray<number>,
    onCaptionLag: (lagMs: number) => void = () => {},
  ) {
    this.#sentAtMs = sentAtMs
    this.#wordEnds = wordEnds
    this.#onCaptionLag = onCaptionLag
  }

  /**
   * @param text the whole caption
   * @param coveredSeconds the audio that it covers, where the server says it
   */
  shown(text: string, atMs: number, coveredSeconds?: number): void {
    const words = wordsOf(text)
    this.#changed += this.#shown.length - commonWords(this.#shown, words)
    this.#shown = words
    const coveredAtMs = coveredSeconds === undefined ? undefined : this.#sentAtMs(coveredSeconds)
    if (coveredAtMs !== undefined) {
      this.captionLags.push(Math.max(0, atMs - coveredAtMs))
      this.#onCaptionLag(Math.max(0, atMs - coveredAtMs))
    }
    // A word can be shown before its estimated end: it is then not late.
    for (; this.#mostWords < Math.min(words.length, this.#wordEnds.length); this.#mostWords++) {
      const endAtMs = this.#sentAtMs(this.#wordEnds[this.#mostWords]!)
      this.wordLags.push(endAtMs === undefined ? 0 : Math.max(0, atMs - endAtMs))
    }
  }

  /** Changed words divided by those of the final text; undefined if that has none. */
  flicker(finalText: string): number | undefined {
    const words = wordsOf(finalText)
    if (words.length === 0) return undefined
    return (this.#changed + this.#shown.length - commonWords(this.#shown, words)) / words.length
  }
}
