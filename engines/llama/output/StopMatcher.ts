// Finds stop sequences in text that arrives in pieces.
//
// It reads one UTF-16 unit at a time, so the result does not depend on how the text was cut into tokens: the stop
// sequence that completes first wins, and the longest one if several complete at the same unit. Text that could
// still become a stop sequence is held back. One Knuth-Morris-Pratt state for each stop sequence keeps the cost
// linear, also for long, repetitive stop sequences.

interface Pattern {
  readonly text: string
  /** `fallback[n]`: length of the longest proper prefix of the first n units that is also their suffix. */
  readonly fallback: Int32Array
}

const pattern = (text: string): Pattern => {
  const fallback = new Int32Array(text.length + 1)
  let length = 0
  for (let i = 1; i < text.length; i++) {
    while (length > 0 && text.charCodeAt(i) !== text.charCodeAt(length)) length = fallback[length]!
    if (text.charCodeAt(i) === text.charCodeAt(length)) length++
    fallback[i + 1] = length
  }
  return { text, fallback }
}

interface StopVerdict {
  /** Text that is final: before the match, or before anything that could still become a match. */
  readonly text: string
  readonly matched: boolean
}

export class StopMatcher {
  readonly #patterns: ReadonlyArray<Pattern>
  /** Units of each pattern matched at the end of the text so far. */
  readonly #matched: Int32Array
  #held = ""

  /**
   * Empty stop sequences match nothing. Nor do those with a lone surrogate: such a match would cut a character in
   * two.
   */
  constructor(stops: ReadonlyArray<string>) {
    this.#patterns = stops.filter((stop) => stop.length > 0 && stop.isWellFormed()).map(pattern)
    this.#matched = new Int32Array(this.#patterns.length)
  }

  push(text: string): StopVerdict {
    if (this.#patterns.length === 0) return { text, matched: false }
    const all = this.#held + text
    for (let at = this.#held.length; at < all.length; at++) {
      const length = this.#advance(all.charCodeAt(at))
      if (length > 0) {
        this.#held = ""
        return { text: all.slice(0, at + 1 - length), matched: true }
      }
    }
    const hold = this.#matched.length === 1 ? this.#matched[0]! : Math.max(...this.#matched)
    this.#held = hold === 0 ? "" : all.slice(all.length - hold)
    return { text: hold === 0 ? all : all.slice(0, all.length - hold), matched: false }
  }

  /** Ends the text and returns what was held back. */
  flush(): string {
    const held = this.#held
    this.#held = ""
    this.#matched.fill(0)
    return held
  }

  /** Reads one unit. Returns the length of the longest pattern that it completes, or 0. */
  #advance(unit: number): number {
    let completed = 0
    for (let p = 0; p < this.#patterns.length; p++) {
      const { text, fallback } = this.#patterns[p]!
      let length = this.#matched[p]!
      while (length > 0 && text.charCodeAt(length) !== unit) length = fallback[length]!
      if (text.charCodeAt(length) === unit) length++
      this.#matched[p] = length
      if (length === text.length && length > completed) completed = length
    }
    return completed
  }
}
