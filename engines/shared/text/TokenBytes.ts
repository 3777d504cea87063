// The bytes of a token's spelling, for the two ways in which vocabularies spell bytes. Pure.

const utf8 = new TextEncoder()

/**
 * The 256 characters of byte-level BPE: printable Latin-1 bytes are themselves, the others are mapped in order to
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

export const byteLevelBytes = (spelled: string): Uint8Array => {
  const bytes: Array<number> = []
  for (const character of spelled) {
    const byte = byteOf.get(character.codePointAt(0)!)
    if (byte === undefined) bytes.push(...utf8.encode(character))
    else bytes.push(byte)
  }
  return Uint8Array.from(bytes)
}

/** SentencePiece: `▁` is a space. */
export const spacedBytes = (spelled: string): Uint8Array => utf8.encode(spelled.replaceAll("▁", " "))

/** The byte of a byte-fallback token such as `<0xE4>`. */
export const fallbackByte = (spelled: string): number => Number.parseInt(spelled.slice(3, 5), 16)

export const isFallbackByte = (spelled: string): boolean => /^<0x[0-9A-Fa-f]{2}>$/.test(spelled)
