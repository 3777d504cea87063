// The texts of one window's segments.
//
// A character's bytes may be divided between two segments or windows. They are held until the character is
// complete; it then belongs to the segment that completes it. Bytes that never become a character are dropped, as at
// the end of a file where a decoder stopped at its token limit.
import { incompleteTail, Utf8Holdback } from "../text/Utf8Holdback.ts"
import type { BytesOf } from "./TokenText.ts"
import { isUnspaced } from "./Words.ts"

/** An incomplete character has at most 3 bytes, and a token has at least one. */
const heldCount = 3

/** The tokens at the end that hold an incomplete character: the next window's `previousTokens` must include them. */
export const heldTokens = (bytesOf: BytesOf, tokens: ReadonlyArray<number>): ReadonlyArray<number> => {
  const last = tokens.slice(-heldCount)
  return incompleteTail(bytesOf(last)) === 0 ? [] : last
}

const heldBytes = (bytesOf: BytesOf, tokens: ReadonlyArray<number>): Uint8Array => {
  const last = bytesOf(tokens.slice(-heldCount))
  return last.subarray(last.length - incompleteTail(last))
}

/** A continuation byte of UTF-8. */
const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

const isBlank = (text: string): boolean => text.trim() === ""

export class SegmentTexts {
  readonly #bytesOf: BytesOf
  readonly #spaced: boolean
  readonly #characters: Utf8Holdback
  /** White space of blank segments; it is put before the next text. */
  #blank = ""
  /** True until a segment of this window had text. */
  #first = true
  /** True if the window begins inside a character of the previous window. */
  #continues: boolean

  /** `previousTokens`: those of the request. */
  constructor(bytesOf: BytesOf, language: string, previousTokens: ReadonlyArray<number>) {
    this.#bytesOf = bytesOf
    this.#spaced = !isUnspaced(language)
    this.#characters = new Utf8Holdback(heldBytes(bytesOf, previousTokens))
    this.#continues = !this.#characters.empty
  }

  /**
   * The text of the window's next segment; may be empty. The texts of a file are concatenated without a separator:
   * in languages with spaces, the first text of a window begins with a space even if the model omitted it.
   */
  next(tokens: ReadonlyArray<number>): string {
    const bytes = this.#bytesOf(tokens)
    if (bytes.length > 0 && this.#first) this.#continues &&= isContinuation(bytes[0])
    const text = this.#blank + this.#characters.push(bytes)
    if (isBlank(text)) {
      this.#blank = text
      return ""
    }
    const needsSpace = this.#first && this.#spaced && !this.#continues && !/^\s/u.test(text)
    this.#blank = ""
    this.#first = false
    return needsSpace ? ` ${text}` : text
  }
}
