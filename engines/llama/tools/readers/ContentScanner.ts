// The text of a reply before its first call. What could become the beginning of a call is held back.

/** White space in front of a call belongs to the call, up to this many characters. */
const mostSpace = 64

interface Scanned {
  /** Text of the answer. */
  readonly content: string
  /** Present if a call began: what follows its opener. */
  readonly after?: { readonly opener: string; readonly text: string }
}

/** Where white space at the end of the text begins, at most `mostSpace` characters before the end. */
const spaceFrom = (text: string): number => {
  let at = text.length
  while (at > 0 && text.length - at < mostSpace && /\s/.test(text.charAt(at - 1))) at--
  return at
}

/** How a call begins. */
export interface Beginning {
  readonly opener: string
  /** Text, the opener first, that has to be there before the reply is taken for a call. */
  readonly text: string
}

export class ContentScanner {
  readonly #beginnings: ReadonlyArray<Beginning>
  readonly #atStart: boolean
  #held = ""
  /** Characters at the end of what is held that could begin a call. */
  #begun = 0
  #started = false

  /** `atStart`: a call may only be the first thing in a reply. */
  constructor(beginnings: ReadonlyArray<Beginning>, atStart: boolean) {
    this.#beginnings = beginnings
    this.#atStart = atStart
  }

  push(piece: string): Scanned {
    const text = this.#held + piece
    if (this.#atStart && this.#started) return { content: piece }
    const found = this.#find(text)
    if (found !== undefined) {
      this.#held = ""
      const before = text.slice(0, found.at)
      const after = text.slice(found.at + found.opener.length)
      return { content: before.slice(0, spaceFrom(before)), after: { opener: found.opener, text: after } }
    }
    this.#begun = this.#beginnings.reduce(
      (most, beginning) => Math.max(most, this.#beginning(text, beginning.text)),
      0,
    )
    const to = this.#atStart
      ? this.#begun === text.length
        ? 0
        : text.length
      : spaceFrom(text.slice(0, text.length - this.#begun))
    if (to > 0) this.#started = true
    this.#held = text.slice(to)
    return { content: text.slice(0, to) }
  }

  /** What is still held back, because nothing follows. Without it if the reply was cut inside of an opener. */
  end(cut: boolean): string {
    const held = cut && this.#begun > 0 ? "" : this.#held
    this.#held = ""
    return held
  }

  #find(text: string): { readonly at: number; readonly opener: string } | undefined {
    let first: { readonly at: number; readonly opener: string } | undefined
    for (const { opener, text: begun } of this.#beginnings) {
      const at = this.#atStart ? (text.startsWith(begun) ? 0 : -1) : text.indexOf(begun)
      if (at >= 0 && (first === undefined || at < first.at)) first = { at, opener }
    }
    return first
  }

  /** Length of the longest part at the end of the text with which a call's beginning begins. */
  #beginning(text: string, begun: string): number {
    if (this.#atStart) return begun.startsWith(text) ? text.length : 0
    let length = Math.min(begun.length - 1, text.length)
    while (length > 0 && !text.endsWith(begun.slice(0, length))) length--
    return length
  }
}
