// Refuses texts that cannot fit into a context before they are tokenized whole: by their length, and by the tokens of their first
// pieces. So a text of any size costs no more than one that fits.
import type { LlamaModel } from "node-llama-cpp"

export interface TextLimits {
  readonly contextTokens: number
  /** UTF-16 units. A longer text is refused without being tokenized. */
  readonly longestText: number
}

/** Vocabularies that drop white space, or have one token for any unknown word, may have longer words than tokens. A guess. */
const leastUnits = 64

/** `contextTokens` tokens have at most so many UTF-16 units together. */
export const textLimits = (model: LlamaModel, contextTokens: number): TextLimits => {
  const spellings: ReadonlyArray<string> = model.fileInfo.metadata.tokenizer?.ggml?.tokens ?? []
  const longestToken = spellings.reduce((longest, { length }) => Math.max(longest, length), leastUnits)
  return { contextTokens, longestText: contextTokens * longestToken }
}

/**
 * Texts with fewer UTF-16 units for each token of the context are tokenized at once; longer ones are counted first, which
 * costs those that fit the double. English has 4 to 5.
 */
const unitsAtOnce = 4
/** UTF-16 units of a piece: 4,000 tokens of English, 3 ms. */
const unitsOfPiece = 16_384
/** Tokens that a piece may have more than its part of the text, because it was cut out: special tokens, halves of a token. */
const tokensOfCut = 4
/** A piece ends before a space among its last so many units, so that it seldom ends inside a word. */
const cutWithin = 1_024

const endOfPiece = (text: string, from: number): number => {
  const end = from + unitsOfPiece
  if (end >= text.length) return text.length
  const space = text.lastIndexOf(" ", end)
  if (space > end - cutWithin) return space
  const isSplit = (text.charCodeAt(end - 1) & 0xfc00) === 0xd800
  return isSplit ? end - 1 : end
}

/**
 * Asks for the tokens of pieces of the texts, until it is certain that they do not fit. Returns an estimate of all their tokens, at
 * least `contextTokens`; undefined if they may fit.
 */
export function* estimateOfTooLong(
  texts: ReadonlyArray<string>,
  { contextTokens, longestText }: TextLimits,
): Generator<string, number | undefined, number> {
  const length = texts.reduce((sum, text) => sum + text.length, 0)
  if (length <= unitsAtOnce * contextTokens) return undefined
  let tokens = 0
  /** Tokens that the texts have at least. */
  let least = 0
  let units = 0
  for (const text of texts)
    for (let from = 0; from < text.length; ) {
      const end = endOfPiece(text, from)
      const counted = yield text.slice(from, end)
      const isCut = from > 0 || end < text.length
      tokens += counted
      least += isCut ? Math.max(0, counted - tokensOfCut) : counted
      units += end - from
      from = end
      if (least > contextTokens || length > longestText)
        return Math.max(contextTokens, Math.round((tokens / units) * length))
    }
  return undefined
}
