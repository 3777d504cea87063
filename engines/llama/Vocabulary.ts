// What each token says, in bytes, and which tokens end a reply. Built once a model by Model; read for every
// generated token. The bytes come from the token's own spelling, because the library only returns strings, and in
// a string half a character is already U+FFFD.

/** How a vocabulary spells its tokens. `plain`: no spelling of its own; the library's text is taken. */
export type Spelling = "byteLevel" | "spaced" | "plain"

/** Attribute bits of a token, as llama.cpp numbers them (`LLAMA_TOKEN_ATTR_*`). */
const attribute = { unknown: 1, normal: 4, control: 8, userDefined: 16, byte: 32 } as const

const utf8 = new TextEncoder()

/**
 * The 256 characters of byte-level BPE: printable Latin-1 bytes stand for themselves, the others follow from
 * U+0100 upwards (GPT-2's table, which every byte-level vocabulary uses).
 */
const byteOf: ReadonlyMap<number, number> = (() => {
  const printable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae
  const map = new Map<number, number>()
  let next = 0x100
  for (let byte = 0; byte < 256; byte++) map.set(printable(byte) ? byte : next++, byte)
  return map
})()

/** The bytes a token adds to the text; none for control tokens. */
export const tokenBytes = (spelled: string, attributes: number, spelling: Spelling): Uint8Array => {
  if (attributes & (attribute.control | attribute.unknown)) return new Uint8Array(0)
  if (attributes & attribute.byte) return Uint8Array.of(Number.parseInt(spelled.slice(3, 5), 16))
  if (attributes & attribute.userDefined) return utf8.encode(spelled)
  if (!(attributes & attribute.normal)) return new Uint8Array(0)
  if (spelling === "spaced") return utf8.encode(spelled.replaceAll("▁", " "))
  if (spelling === "plain") return utf8.encode(spelled)
  const bytes: Array<number> = []
  for (const character of spelled) {
    const code = character.codePointAt(0)!
    const byte = byteOf.get(code)
    if (byte === undefined) bytes.push(...utf8.encode(character))
    else bytes.push(byte)
  }
  return Uint8Array.from(bytes)
}

export interface Piece {
  readonly bytes: Uint8Array
  /** The same as text, when the bytes are whole characters. */
  readonly text: string | undefined
  /** Whether the token ends the reply. */
  readonly end: boolean
}

/** What the vocabulary reads from the model. */
export interface TokenSource {
  readonly spelling: Spelling
  readonly spelled: (token: number) => string
  readonly attributes: (token: number) => number
  readonly isEnd: (token: number) => boolean
  /** Spellings that are shown although they are control tokens: the markers of a thinking block. */
  readonly shown: ReadonlySet<string>
}

export class Vocabulary {
  readonly #source: TokenSource
  readonly #strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
  /** Bounded by the vocabulary's size. */
  readonly #pieces = new Map<number, Piece>()

  constructor(source: TokenSource) {
    this.#source = source
  }

  piece(token: number): Piece {
    const known = this.#pieces.get(token)
    if (known !== undefined) return known
    const { spelled, attributes, isEnd, shown, spelling } = this.#source
    const text = spelled(token)
    const bytes = shown.has(text) ? utf8.encode(text) : tokenBytes(text, attributes(token), spelling)
    const piece: Piece = { bytes, text: this.#whole(bytes), end: isEnd(token) }
    this.#pieces.set(token, piece)
    return piece
  }

  #whole(bytes: Uint8Array): string | undefined {
    try {
      return this.#strict.decode(bytes)
    } catch {
      return undefined
    }
  }
}
