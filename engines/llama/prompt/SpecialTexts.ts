// The spellings of a vocabulary's special tokens, read from the GGUF file's metadata.
import type { LlamaModel } from "node-llama-cpp"

export interface SpecialTexts {
  /** Tokens that are found only in the template's text: `<|im_end|>`. */
  readonly control: ReadonlyArray<string>
  /** Tokens that are found in every text: `<tool_call>` in some vocabularies. */
  readonly everywhere: ReadonlyArray<string>
}

/** Types of tokens as GGUF files number them (`tokenizer.ggml.token_type`). */
const type = { unknown: 2, control: 3, userDefined: 4 } as const

export const specialTexts = (model: LlamaModel): SpecialTexts => {
  const { tokens = [], token_type: types = [] } = model.fileInfo.metadata.tokenizer?.ggml ?? {}
  const control: Array<string> = []
  const everywhere: Array<string> = []
  for (const [token, spelling] of tokens.entries()) {
    if (types[token] === type.control || types[token] === type.unknown) control.push(spelling)
    else if (types[token] === type.userDefined) everywhere.push(spelling)
  }
  return { control, everywhere }
}
