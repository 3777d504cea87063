// The prompt of a conversation whose last message, one of the user, is not finished: everything up to the last character of that
// message. What the model expects next there tells how probable it is that the message ends.
import { LlamaText, SpecialTokensText, type Tokenizer } from "node-llama-cpp"
import type { Vocabulary } from "../output/Vocabulary.ts"

export interface OpenMessage {
  readonly tokens: ReadonlyArray<number>
  /** Indices in `tokens` of the last tokens of the message's last words, ascending; the last is that of the message. */
  readonly wordEnds: ReadonlyArray<number>
  /** The token that ends a user's message in this template. */
  readonly end: number
}

/** The first character of a token that begins a word, or stands between words; scripts without spaces have no words to tell apart. */
const beginsWord =
  /^[^\p{L}\p{N}\p{M}'’]|^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u

interface OpenMessageTerms {
  readonly text: LlamaText
  readonly tokenizer: Tokenizer
  /** The tokens of a part of the prompt from its beginning. */
  readonly tokenize: (text: LlamaText) => Array<number>
  readonly vocabulary: Vocabulary
  /** Words after which the end is looked for. */
  readonly mostWords: number
}

/** Undefined where the template's next token after the message is not a special one: a model cannot tell such an end from text. */
export const openMessage = (terms: OpenMessageTerms): OpenMessage | undefined => {
  const { mostWords, text, tokenize, tokenizer, vocabulary } = terms
  const { values } = text
  const last = values.findLastIndex((value) => typeof value === "string")
  const next = values[last + 1]
  if (last < 0 || !(next instanceof SpecialTokensText)) return undefined
  const [end] = LlamaText([next]).tokenize(tokenizer, "trimLeadingSpace")
  if (end === undefined || !tokenizer.isSpecialToken(end)) return undefined
  const tokens = tokenize(LlamaText(values.slice(0, last + 1)))
  const from = tokenize(LlamaText(values.slice(0, last))).length
  const wordEnds: Array<number> = []
  for (let at = tokens.length - 1; at >= from && wordEnds.length < mostWords; at--) {
    const following = at + 1 === tokens.length ? "" : vocabulary.piece(tokens[at + 1]!).text
    if (following === "" || (following !== undefined && beginsWord.test(following))) wordEnds.unshift(at)
  }
  return wordEnds.length === 0 ? undefined : { tokens, wordEnds, end }
}
