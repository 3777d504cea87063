// Where a caller's text would become special tokens of the vocabulary if it were tokenized with the template's text.

/** A range of a text, the end excluded. */
type Range = readonly [from: number, to: number]

const isWord = /[A-Za-z0-9]/
const isSpace = /\s/

/** A template may change the case of what it prints. The length stays. */
const lower = (text: string): string => {
  const lowered = text.toLowerCase()
  return lowered.length === text.length ? lowered : text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/** Length of the character at this position; 0 if it is the whole text. */
const firstOf = (text: string, at: number, length: number): number => {
  const first = (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
  return first < length ? first : 0
}

/** A set of texts that is asked for the texts at a position. */
class Texts {
  readonly #texts = new Set<string>()
  /** By their first three characters: the lengths of the texts that begin so. */
  readonly #lengths = new Map<string, Set<number>>()
  /** The lengths of these beginnings: three, or the lengths of shorter texts. */
  readonly #heads = new Set<number>()
  readonly #firsts = new Set<string>()

  add(text: string): void {
    if (text === "") return
    this.#texts.add(text)
    const head = text.slice(0, 3)
    this.#heads.add(head.length)
    this.#firsts.add(text.charAt(0))
    const lengths = this.#lengths.get(head) ?? new Set()
    this.#lengths.set(head, lengths.add(text.length))
  }

  has(text: string): boolean {
    return this.#texts.has(text)
  }

  /** The lengths of the texts that stand at this position. */
  at(text: string, from: number): ReadonlyArray<number> {
    if (!this.#firsts.has(text.charAt(from))) return []
    const found: Array<number> = []
    for (const size of this.#heads)
      for (const length of this.#lengths.get(text.slice(from, from + size)) ?? [])
        if ((length === size || size === 3) && this.#texts.has(text.slice(from, from + length)))
          found.push(length)
    return found
  }

  /** Whether the set is empty, so that nothing is found. */
  get empty(): boolean {
    return this.#texts.size === 0
  }
}

/**
 * The spellings of special tokens. A template may write the punctuation around a caller's text (`<` and `>` around a name),
 * so a text that lacks the punctuation at an end of a spelling counts too, if it stands at that end of the caller's text.
 */
export class Spellings {
  readonly #anywhere = new Texts()
  readonly #atStart = new Texts()
  readonly #endings = new Map<number, Set<string>>()
  readonly #whole = new Texts()

  constructor(spellings: Iterable<string>) {
    for (const spelling of spellings) this.#add(lower(spelling))
  }

  #add(spelling: string): void {
    const { length } = spelling
    let before = 0
    while (before < length && !isWord.test(spelling.charAt(before))) before++
    let after = 0
    while (after < length && !isWord.test(spelling.charAt(length - 1 - after))) after++
    this.#anywhere.add(spelling)
    for (let left = 0; left <= before; left++)
      for (let right = 0; right <= after && left + right < length; right++) {
        if (left === 0 && right === 0) continue
        const text = spelling.slice(left, length - right)
        if (right === 0) this.#atStart.add(text)
        else if (left > 0) this.#whole.add(text)
        else {
          const texts = this.#endings.get(text.length) ?? new Set()
          this.#endings.set(text.length, texts.add(text))
        }
      }
  }

  /**
   * Ranges to tokenize on their own, ascending and apart. A range leaves out the first character of a spelling that the text
   * has as a whole, because some special tokens are found in ordinary text too.
   */
  ranges(original: string): ReadonlyArray<Range> {
    if (this.#anywhere.empty) return []
    const text = lower(original)
    const found: Array<Range> = []
    for (let at = 0; at < text.length; at++)
      for (const length of this.#anywhere.at(text, at))
        found.push([at + firstOf(text, at, length), at + length])
    let from = 0
    while (from < text.length && isSpace.test(text.charAt(from))) from++
    let to = text.length
    while (to > from && isSpace.test(text.charAt(to - 1))) to--
    for (const length of this.#atStart.at(text, from)) found.push([from, from + length])
    if (this.#whole.has(text.slice(from, to))) found.push([from, to])
    for (const [length, texts] of this.#endings)
      if (length <= to - from && texts.has(text.slice(to - length, to)))
        found.push([to - length + firstOf(text, to - length, length), to])
    return joined(found)
  }
}

/** Overlapping and touching ranges as one. */
const joined = (ranges: ReadonlyArray<Range>): ReadonlyArray<Range> => {
  const apart: Array<Range> = []
  for (const [from, to] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const last = apart.at(-1)
    if (last !== undefined && from <= last[1]) apart.splice(-1, 1, [last[0], Math.max(last[1], to)])
    else apart.push([from, to])
  }
  return apart
}
