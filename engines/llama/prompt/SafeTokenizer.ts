// The tokenizer of a model for texts of any shape: cuts those that would overflow the stack of the native one, see
// PromptPieces. Used by ChatPrompt.
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
 * Only byte-pair vocabularies have a pre-tokenizer. The others are left alone: they would begin each piece with a space of
 * their own.
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
    // One by one: a spread of a long prompt's tokens would be arguments on the stack.
    for (const piece of rest) for (const token of whole(piece, special)) tokens.push(token)
    return tokens
  }
  const { detokenize, isEogToken, isSpecialToken } = whole
  return Object.assign(tokenize, { detokenize, isEogToken, isSpecialToken })
}
