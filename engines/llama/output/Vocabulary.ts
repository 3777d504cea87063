// The bytes of each token, and which tokens end a reply. One instance for each model. The bytes are computed from the
// token's own spelling, because the library returns strings only, and there an incomplete character is already
// U+FFFD.

import { byteLevelBytes, fallbackByte, spacedBytes } from "../../shared/text/TokenBytes.ts"
import { withoutReplacement } from "../../shared/text/Utf8Holdback.ts"

/** How a vocabulary spells its tokens. `plain`: no known spelling; the library's text is used. */
export type Spelling = "byteLevel" | "spaced" | "plain"

/** Attribute bits of a token, as llama.cpp numbers them (`LLAMA_TOKEN_ATTR_*`). */
const attribute = { unknown: 1, normal: 4, control: 8, userDefined: 16, byte: 32 } as const

const utf8 = new TextEncoder()
const lenient = new TextDecoder()

/** The bytes that a token adds to the text; none for control tokens. */
export const tokenBytes = (spelled: string, attributes: number, spelling: Spelling): Uint8Array => {
  if (attributes & (attribute.control | attribute.unknown)) return new Uint8Array(0)
  if (attributes & attribute.byte) return Uint8Array.of(fallbackByte(spelled))
  if (attributes & attribute.userDefined) return utf8.encode(spelled)
  if (!(attributes & attribute.normal)) return new Uint8Array(0)
  if (spelling === "spaced") return spacedBytes(spelled)
  return spelling === "plain" ? utf8.encode(spelled) : byteLevelBytes(spelled)
}

export interface Piece {
  readonly bytes: Uint8Array
  /** The same bytes as text, if they are whole characters. */
  readonly text: string | undefined
  /** True if the token ends the reply. */
  readonly end: boolean
}

/** What is read from the model. */
interface TokenSource {
  /** Number of tokens. */
  readonly size: number
  readonly spelling: Spelling
  readonly spelled: (token: number) => string
  readonly attributes: (token: number) => number
  readonly isEnd: (token: number) => boolean
  /** Spellings of control tokens that are text nevertheless: markers of a thinking block and of calls. */
  readonly shown: ReadonlySet<string>
}

export class Vocabulary {
  readonly #source: TokenSource
  readonly #strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
  /** Bounded by the vocabulary's size. */
  readonly #pieces = new Map<number, Piece>()
  #ends: Set<number> | undefined

  constructor(source: TokenSource) {
    this.#source = source
  }

  /** Number of tokens. */
  get size(): number {
    return this.#source.size
  }

  piece(token: number): Piece {
    const known = this.#pieces.get(token)
    if (known !== undefined) return known
    const bytes = this.bytes(token)
    const piece: Piece = { bytes, text: this.#whole(bytes), end: this.#source.isEnd(token) }
    this.#pieces.set(token, piece)
    return piece
  }

  /** Whether the token ends the reply. */
  isEnd(token: number): boolean {
    return this.#source.isEnd(token)
  }

  /** The bytes of a piece, for callers that read the whole vocabulary: nothing is kept. */
  bytes(token: number): Uint8Array {
    const { spelled, attributes, shown, spelling } = this.#source
    const text = spelled(token)
    return shown.has(text) ? utf8.encode(text) : tokenBytes(text, attributes(token), spelling)
  }

  /** A token as callers see it: an incomplete character is U+FFFD, a token without text is its spelling. */
  shown(token: number): { readonly token: string; readonly bytes: ReadonlyArray<number> } {
    const { bytes, text } = this.piece(token)
    const seen = bytes.length > 0 ? bytes : utf8.encode(this.#source.spelled(token))
    return { token: bytes.length > 0 && text !== undefined ? text : lenient.decode(seen), bytes: [...seen] }
  }

  /** The tokens that end a reply. */
  get ends(): ReadonlySet<number> {
    if (this.#ends === undefined) {
      this.#ends = new Set()
      for (let token = 0; token < this.#source.size; token++)
        if (this.#source.isEnd(token)) this.#ends.add(token)
    }
    return this.#ends
  }

  #whole(bytes: Uint8Array): string | undefined {
    try {
      return withoutReplacement(this.#strict.decode(bytes))
    } catch {
      return undefined
    }
  }
}
