// The tokenizer of a model for texts of any shape. It cuts texts that would overflow the stack of the native tokenizer,
// see PromptPieces.
import {
  type BuiltinSpecialTokenValue,
  type LlamaModel,
  LlamaVocabularyType,
  type Token,
  type Tokenizer,
} from "node-llama-cpp"
import { piecesOf } from "./PromptPieces.ts"

const builtins: ReadonlyArray<BuiltinSpecialTokenValue> = ["BOS", "EOS", "NL", "EOT", "SEP"]

/**
 * Only byte-pair vocabularies have a pre-tokenizer. The tokenizers of others stay as they are: they would begin each piece
 * with an additional space.
 */
export const safeTokenizer = (model: LlamaModel, bound?: number): Tokenizer => {
  const whole = model.tokenizer
  if (model.vocabularyType !== LlamaVocabularyType.bpe) return whole
  const tokenize = (
    text: string,
    special?: boolean | "builtin",
    options?: "trimLeadingSpace",
  ): Array<Token> => {
    if (special === "builtin") {
      const builtin = builtins.find((name) => name === text)
      return builtin === undefined ? [] : whole(builtin, special)
    }
    const [first = "", ...rest] = piecesOf(text, bound)
    const tokens = whole(first, special, options)
    // In a loop: a spread would put all tokens of a long prompt on the stack.
    for (const piece of rest) for (const token of whole(piece, special)) tokens.push(token)
    return tokens
  }
  const { detokenize, isEogToken, isSpecialToken } = whole
  return Object.assign(tokenize, { detokenize, isEogToken, isSpecialToken })
}
