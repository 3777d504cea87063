// Bytes in, whole characters out. A token may hold a part of a character; its bytes are held until the rest arrives.
// The text never contains U+FFFD: bytes that cannot become a character are dropped, and so is a U+FFFD that the model
// itself writes, because a reader could not distinguish it from damage. Knows no tokens or stop sequences.

const replacement = "\ufffd"

/** The text without U+FFFD. */
export const withoutReplacement = (text: string): string =>
  text.includes(replacement) ? text.replaceAll(replacement, "") : text

/**
 * The number of bytes at the end of `bytes` that begin a character which later bytes could complete (0 to 3).
 * The ranges are those of the Unicode standard, table 3-7: a second byte out of range makes the beginning invalid,
 * so such bytes are not held.
 */
export const incompleteTail = (bytes: Uint8Array): number => {
  const length = bytes.length
  for (let back = 1; back <= 3 && back <= length; back++) {
    const lead = bytes[length - back]!
    if (lead < 0x80) return 0
    if (lead < 0xc0) continue
    const needed = lead >= 0xc2 && lead <= 0xdf ? 2 : lead >= 0xe0 && lead <= 0xef ? 3 : 0
    const size = lead >= 0xf0 && lead <= 0xf4 ? 4 : needed
    if (size <= back) return 0
    if (back === 1) return 1
    const second = bytes[length - back + 1]!
    const low = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80
    const high = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf
    return second >= low && second <= high ? back : 0
  }
  return 0
}

const nothing = new Uint8Array(0)

export class Utf8Holdback {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  #held: Uint8Array

  /** `held`: the beginning of a character from earlier text (`incompleteTail`). */
  constructor(held: Uint8Array = nothing) {
    this.#held = held
  }

  /** True if no byte is held; then text known to be whole may skip `push`. */
  get empty(): boolean {
    return this.#held.length === 0
  }

  /** Adds bytes and returns the characters that are complete. */
  push(bytes: Uint8Array): string {
    const held = this.#held
    let all = bytes
    if (held.length > 0) {
      all = new Uint8Array(held.length + bytes.length)
      all.set(held)
      all.set(bytes, held.length)
    }
    const whole = all.length - incompleteTail(all)
    this.#held = all.slice(whole)
    return whole === 0 ? "" : withoutReplacement(this.#decoder.decode(all.subarray(0, whole)))
  }

  /** Ends the text: an incomplete character is dropped. */
  end(): void {
    this.#held = nothing
  }
}
