// Generated weights of embedding models: GGUF files of BERT's shape with random values and a WordPiece vocabulary. Their
// vectors mean nothing; their cost is that of a trained model of the shape.
import { cachedFile } from "../Cache.ts"
import { RandomWords } from "../RandomWords.ts"
import { type GgufMetadata, writeGguf } from "../text/Gguf.ts"
import type { Tensor } from "../text/Shapes.ts"
import { readWordList, wordsIn } from "../text/Vocabulary.ts"

export interface BertShape {
  readonly width: number
  readonly layers: number
  readonly heads: number
  readonly feedForward: number
  /** Tokens of one input. */
  readonly contextTokens: number
  readonly vocabularySize: number
  readonly pooling: keyof typeof poolingTypes
}

/** `LLAMA_POOLING_TYPE_*`. */
const poolingTypes = { none: 0, mean: 1, cls: 2, last: 3, rank: 4 }

const shapes = {
  /** 22 million parameters: the dimensions of all-MiniLM-L6. */
  "22m": {
    width: 384,
    layers: 6,
    heads: 12,
    feedForward: 1536,
    contextTokens: 512,
    vocabularySize: 30_522,
    pooling: "mean",
  },
} as const satisfies Readonly<Record<string, BertShape>>

type EmbeddingSize = keyof typeof shapes

export const embeddingSizes: readonly [EmbeddingSize, ...ReadonlyArray<EmbeddingSize>] = ["22m"]

const special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
const characters = "abcdefghijklmnopqrstuvwxyz0123456789.,!?:;'\"-()éü日本"

/** Tokens that begin a word are written with `▁` before them, as converters of published models do. */
const vocabularyOf = (size: number): ReadonlyArray<string> => {
  const begins = [...characters, ...wordsIn(readWordList()).map((word) => word.toLowerCase())]
  const known = new Set([...special, ...begins.map((text) => `▁${text}`), ...characters])
  const missing = Math.max(0, size - known.size)
  return [...known, ...Array.from({ length: missing }, (_, nth) => `[unused${nth}]`)].slice(0, size)
}

const tensorsOf = ({ contextTokens, feedForward, layers, vocabularySize, width }: BertShape) => {
  const ones = (name: string): Tensor => ({ name, shape: [width], type: "f32", deviation: 0 })
  const bias = (name: string, size: number): Tensor => ({
    name: `${name}.bias`,
    shape: [size],
    type: "f32",
    deviation: 0.02,
  })
  const matrix = (name: string, from: number, to: number): ReadonlyArray<Tensor> => [
    { name: `${name}.weight`, shape: [from, to], type: "q8_0", deviation: 1 / Math.sqrt(from) },
    bias(name, to),
  ]
  const norm = (name: string): ReadonlyArray<Tensor> => [ones(`${name}.weight`), bias(name, width)]
  const layer = (number: number): ReadonlyArray<Tensor> => {
    const at = `blk.${number}.`
    return [
      ...["attn_q", "attn_k", "attn_v", "attn_output"].flatMap((name) => matrix(at + name, width, width)),
      ...norm(`${at}attn_output_norm`),
      ...matrix(`${at}ffn_up`, width, feedForward),
      ...matrix(`${at}ffn_down`, feedForward, width),
      ...norm(`${at}layer_output_norm`),
    ]
  }
  const rows = (name: string, count: number): Tensor => ({
    name: `${name}.weight`,
    shape: [width, count],
    type: "f32",
    deviation: 1,
  })
  return [
    rows("token_embd", vocabularySize),
    rows("token_types", 2),
    rows("position_embd", contextTokens),
    ...norm("token_embd_norm"),
    ...Array.from({ length: layers }, (_, number) => layer(number)).flat(),
  ]
}

const metadataOf = (name: string, shape: BertShape): GgufMetadata => {
  const uint32 = (value: number) => ({ type: "uint32", value }) as const
  const text = (value: string) => ({ type: "string", value }) as const
  const tokens = vocabularyOf(shape.vocabularySize)
  const id = (token: string) => uint32(tokens.indexOf(token))
  return {
    "general.architecture": text("bert"),
    "general.name": text(`edgewise-bench-${name}`),
    "general.file_type": uint32(7),
    "bert.context_length": uint32(shape.contextTokens),
    "bert.embedding_length": uint32(shape.width),
    "bert.block_count": uint32(shape.layers),
    "bert.feed_forward_length": uint32(shape.feedForward),
    "bert.attention.head_count": uint32(shape.heads),
    "bert.attention.layer_norm_epsilon": { type: "float32", value: 1e-12 },
    "bert.attention.causal": { type: "bool", value: false },
    "bert.pooling_type": uint32(poolingTypes[shape.pooling]),
    "tokenizer.ggml.model": text("bert"),
    "tokenizer.ggml.tokens": { type: "strings", value: tokens },
    "tokenizer.ggml.token_type": {
      type: "int32s",
      value: tokens.map((token) => (special.includes(token) ? 3 : 1)),
    },
    "tokenizer.ggml.token_type_count": uint32(2),
    "tokenizer.ggml.bos_token_id": id("[CLS]"),
    "tokenizer.ggml.cls_token_id": id("[CLS]"),
    "tokenizer.ggml.eos_token_id": id("[SEP]"),
    "tokenizer.ggml.seperator_token_id": id("[SEP]"),
    "tokenizer.ggml.unknown_token_id": id("[UNK]"),
    "tokenizer.ggml.padding_token_id": id("[PAD]"),
    "tokenizer.ggml.mask_token_id": id("[MASK]"),
  }
}

/** Increase it with every change that makes other bytes of the same shape. */
const recipeVersion = 1

/** Writes the model to a path that does not exist yet. */
export const writeEmbeddingModel = (path: string, name: string, shape: BertShape): Promise<void> =>
  writeGguf(path, {
    metadata: metadataOf(name, shape),
    tensors: tensorsOf(shape),
    random: new RandomWords(17),
  })

/** The path of the weights. Missing ones are generated first. */
export const embeddingWeights = (size: EmbeddingSize): Promise<string> => {
  const shape = shapes[size]
  return cachedFile({
    name: `embedding-${size}`,
    ending: ".gguf",
    recipe: { recipeVersion, shape, wordList: readWordList() },
    write: (path) => writeEmbeddingModel(path, size, shape),
  })
}
