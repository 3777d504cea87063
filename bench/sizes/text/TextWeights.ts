// Generated weights of text models: GGUF files of published shapes and sizes with random values. Their text is nonsense;
// their cost is that of a trained model of the shape.
import { cachedFile } from "../Cache.ts"
import { RandomWords } from "../RandomWords.ts"
import { type GgufMetadata, writeGguf } from "./Gguf.ts"
import { type Quantisation, type TextScale, type TextShape, textShapes, textTensors } from "./Shapes.ts"
import { readWordList, type TextVocabulary, textVocabulary } from "./Vocabulary.ts"

interface Parts {
  readonly scale: TextScale
  readonly quantisation: Quantisation
}

const parts = {
  "0.2b": { scale: "0.2b", quantisation: "q8_0" },
  "0.2b-q4": { scale: "0.2b", quantisation: "q4_0" },
  "0.5b": { scale: "0.5b", quantisation: "q8_0" },
  "0.5b-q4": { scale: "0.5b", quantisation: "q4_0" },
  "1.5b": { scale: "1.5b", quantisation: "q8_0" },
  "1.5b-q4": { scale: "1.5b", quantisation: "q4_0" },
} as const satisfies Readonly<Record<string, Parts>>

/** Models that can be generated. Those without a suffix have 8 bits a value. */
export type TextSize = keyof typeof parts

export const textSizes: readonly [TextSize, ...ReadonlyArray<TextSize>] = [
  "0.2b",
  "0.2b-q4",
  "0.5b",
  "0.5b-q4",
  "1.5b",
  "1.5b-q4",
]

/** Increase it with every change that makes other bytes of the same shape. */
const recipeVersion = 2

const seed = 17

/** The chat template: ChatML. */
const chatTemplate =
  "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}" +
  "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

/** `general.file_type` in the numbering of llama.cpp. */
const fileTypes: Readonly<Record<Quantisation, number>> = { q4_0: 2, q8_0: 7 }

const metadataOf = (
  name: string,
  shape: TextShape,
  quantisation: Quantisation,
  vocabulary: TextVocabulary,
): GgufMetadata => {
  const key = shape.architecture
  const uint32 = (value: number) => ({ type: "uint32", value }) as const
  const float32 = (value: number) => ({ type: "float32", value }) as const
  const text = (value: string) => ({ type: "string", value }) as const
  return {
    "general.architecture": text(shape.architecture),
    "general.name": text(`edgewise-bench-${name}`),
    "general.file_type": uint32(fileTypes[quantisation]),
    [`${key}.context_length`]: uint32(32_768),
    [`${key}.embedding_length`]: uint32(shape.width),
    [`${key}.block_count`]: uint32(shape.layers),
    [`${key}.feed_forward_length`]: uint32(shape.feedForward),
    [`${key}.attention.head_count`]: uint32(shape.heads),
    [`${key}.attention.head_count_kv`]: uint32(shape.keyValueHeads),
    [`${key}.attention.key_length`]: uint32(shape.headWidth),
    [`${key}.attention.value_length`]: uint32(shape.headWidth),
    [`${key}.attention.layer_norm_rms_epsilon`]: float32(1e-6),
    [`${key}.rope.dimension_count`]: uint32(shape.headWidth),
    [`${key}.rope.freq_base`]: float32(1_000_000),
    [`${key}.vocab_size`]: uint32(vocabulary.tokens.length),
    "tokenizer.ggml.model": text("gpt2"),
    "tokenizer.ggml.pre": text("qwen2"),
    "tokenizer.ggml.tokens": { type: "strings", value: vocabulary.tokens },
    "tokenizer.ggml.token_type": { type: "int32s", value: vocabulary.kinds },
    "tokenizer.ggml.merges": { type: "strings", value: vocabulary.merges },
    "tokenizer.ggml.bos_token_id": uint32(vocabulary.endOfText),
    "tokenizer.ggml.eos_token_id": uint32(vocabulary.endOfMessage),
    "tokenizer.ggml.padding_token_id": uint32(vocabulary.endOfText),
    "tokenizer.ggml.add_bos_token": { type: "bool", value: false },
    "tokenizer.chat_template": text(chatTemplate),
  }
}

interface TextModel {
  readonly name: string
  readonly shape: TextShape
  readonly quantisation: Quantisation
  /** Further keys of the file. */
  readonly metadata?: GgufMetadata
}

/** Writes the model to a path that does not exist yet. */
export const writeTextModel = (
  path: string,
  { metadata = {}, name, quantisation, shape }: TextModel,
  vocabulary: TextVocabulary,
): Promise<void> =>
  writeGguf(path, {
    metadata: { ...metadataOf(name, shape, quantisation, vocabulary), ...metadata },
    tensors: textTensors(shape, quantisation, {
      size: vocabulary.tokens.length,
      neverDrawn: vocabulary.neverDrawn,
    }),
    random: new RandomWords(seed),
  })

/** The path of the weights. Missing ones are generated first. */
export const textWeights = (size: TextSize): Promise<string> => {
  const { quantisation, scale } = parts[size]
  const shape = textShapes[scale]
  const wordList = readWordList()
  return cachedFile({
    name: `text-${size}`,
    ending: ".gguf",
    recipe: { recipeVersion, seed, shape, quantisation, chatTemplate, wordList },
    write: (path) =>
      writeTextModel(path, { name: size, shape, quantisation }, textVocabulary(wordList, seed)),
  })
}
