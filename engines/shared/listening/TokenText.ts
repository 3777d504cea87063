// The bytes of text of each token of a published tokenizer.json. The tokenizer library only returns strings, and in a
// string an incomplete character is already U+FFFD. Read once at load.
import { byteLevelBytes, fallbackByte, isFallbackByte, spacedBytes } from "../text/TokenBytes.ts"

/** Tokens → bytes of text; none for control tokens and unknown ids. */
export type BytesOf = (tokens: ReadonlyArray<number>) => Uint8Array

type Json = Readonly<Record<string, unknown>>

const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null

const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** The type of a decoder; for a sequence, the types of its members. */
const decoderTypes = (decoder: unknown): ReadonlyArray<string> => {
  if (!isJson(decoder)) return []
  if (decoder.type === "Sequence") return listOf(decoder.decoders).flatMap(decoderTypes)
  return typeof decoder.type === "string" ? [decoder.type] : []
}

/** Id → spelling. BPE vocabularies are objects, Unigram vocabularies are lists of spelling and score. */
const spellings = (vocabulary: unknown): ReadonlyMap<number, string> => {
  const known = new Map<number, string>()
  if (Array.isArray(vocabulary)) {
    vocabulary.forEach((entry, id) => {
      const [spelled] = listOf(entry)
      if (typeof spelled === "string") known.set(id, spelled)
    })
  } else if (isJson(vocabulary)) {
    for (const [spelled, id] of Object.entries(vocabulary)) if (typeof id === "number") known.set(id, spelled)
  }
  return known
}

const utf8 = new TextEncoder()

const spacedOrByte = (spelled: string): Uint8Array =>
  isFallbackByte(spelled) ? Uint8Array.of(fallbackByte(spelled)) : spacedBytes(spelled)

/** @throws for a decoder that spells neither bytes (`ByteLevel`) nor spaces (`Metaspace`, `Replace`). */
export const bytesOfTokens = (tokenizer: unknown): BytesOf => {
  const { added_tokens, decoder, model } = isJson(tokenizer) ? tokenizer : {}
  const types = decoderTypes(decoder)
  const byteLevel = types.includes("ByteLevel")
  if (!byteLevel && !types.includes("Metaspace") && !types.includes("Replace")) {
    throw new Error(`a decoder of type ${types.join(", ") || "none"} is not supported`)
  }
  const spelled = spellings(isJson(model) ? model.vocab : undefined)
  /** Bounded by the vocabulary's size. */
  const known = new Map<number, Uint8Array>()
  for (const added of listOf(added_tokens)) {
    if (!isJson(added) || typeof added.id !== "number" || typeof added.content !== "string") continue
    known.set(added.id, added.special === true ? new Uint8Array(0) : utf8.encode(added.content))
  }
  const bytesOf = (token: number): Uint8Array => {
    const already = known.get(token)
    if (already !== undefined) return already
    const spelling = spelled.get(token) ?? ""
    const bytes = byteLevel ? byteLevelBytes(spelling) : spacedOrByte(spelling)
    known.set(token, bytes)
    return bytes
  }
  return (tokens) => Buffer.concat(tokens.map(bytesOf))
}
