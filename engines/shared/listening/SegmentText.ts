// The texts of one window's segments, as a client reads them. Made by the transcription engines for every window.
//
// A character's bytes may lie on both sides of a segment's or a window's border. They wait until the character is
// whole, which then belongs to the segment that completes it. Bytes that never become a character are dropped; so are
// those at the end of a file, where a decoder stopped at its token limit.
import { incompleteTail, Utf8Holdback } from "../text/Utf8Holdback.ts"
import type { BytesOf } from "./TokenText.ts"
import { isUnspaced } from "./Words.ts"

/** The first bytes of a character are at most 3, and a token has at least one. */
const HELD_TOKENS = 3

/** The tokens at the end of a text whose character is not whole: the next window's `previousTokens` must keep them. */
export const heldTokens = (bytesOf: BytesOf, tokens: ReadonlyArray<number>): ReadonlyArray<number> => {
  const last = tokens.slice(-HELD_TOKENS)
  return incompleteTail(bytesOf(last)) === 0 ? [] : last
}

const heldBytes = (bytesOf: BytesOf, tokens: ReadonlyArray<number>): Uint8Array => {
  const last = bytesOf(tokens.slice(-HELD_TOKENS))
  return last.subarray(last.length - incompleteTail(last))
}

/** A byte that only stands inside a character. */
const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

const isBlank = (text: string): boolean => text.trim() === ""

export class SegmentTexts {
  readonly #bytesOf: BytesOf
  readonly #spaced: boolean
  readonly #characters: Utf8Holdback
  /** Text of segments that were blank: it goes in front of the next one. */
  #blank = ""
  /** No segment of this window has had text. */
  #first = true
  /** The window begins inside a character of the window before. */
  #continues: boolean

  /** `previousTokens`: of the request. */
  constructor(bytesOf: BytesOf, language: string, previousTokens: ReadonlyArray<number>) {
    this.#bytesOf = bytesOf
    this.#spaced = !isUnspaced(language)
    this.#characters = new Utf8Holdback(heldBytes(bytesOf, previousTokens))
    this.#continues = !this.#characters.empty
  }

  /**
   * The text of the window's next segment, empty where it has none. The texts of a file are joined with nothing
   * between them: in languages with spaces, the first one of a window begins with a space even where the model left it
   * out.
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
