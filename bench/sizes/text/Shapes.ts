// The sizes of the generated text models, and the tensors that each consists of. Pure.

export type Quantisation = "q8_0" | "q4_0"

export interface TextShape {
  readonly architecture: "llama" | "qwen3" | "qwen3vl"
  /** Values that represent a token between two layers. */
  readonly width: number
  readonly layers: number
  readonly heads: number
  readonly keyValueHeads: number
  readonly headWidth: number
  readonly feedForward: number
}

/** The embedding is also the output matrix in all of them, as in the published models of these sizes. */
export const textShapes = {
  /** 0.22 billion parameters: a small Llama. Half of its parameters are the embedding of the large vocabulary. */
  "0.2b": {
    architecture: "llama",
    width: 768,
    layers: 12,
    heads: 12,
    keyValueHeads: 4,
    headWidth: 64,
    feedForward: 3072,
  },
  /** 0.49 billion: the dimensions of Qwen2.5 0.5B, with the norms of Qwen3. */
  "0.5b": {
    architecture: "qwen3",
    width: 896,
    layers: 24,
    heads: 14,
    keyValueHeads: 2,
    headWidth: 64,
    feedForward: 4864,
  },
  /** 1.54 billion: the dimensions of Qwen2.5 1.5B, with the norms of Qwen3. */
  "1.5b": {
    architecture: "qwen3",
    width: 1536,
    layers: 28,
    heads: 12,
    keyValueHeads: 2,
    headWidth: 128,
    feedForward: 8960,
  },
} as const satisfies Readonly<Record<string, TextShape>>

export type TextScale = keyof typeof textShapes

export interface Tensor {
  readonly name: string
  /** Values of a row, then rows, then further dimensions. */
  readonly shape: readonly [width: number, ...rest: ReadonlyArray<number>]
  readonly type: "f32" | Quantisation
  /** Standard deviation of the random values; 0 for a tensor of ones. */
  readonly deviation: number
  /** Rows that hold zeros. */
  readonly zeroRows?: { readonly has: (row: number) => boolean }
}

/** Standard deviation of the logits. Trained models have 2 to 4. */
const logitDeviation = 3

/** A product of a SiLU and a linear value, both of deviation 1, has this deviation. */
const gatedDeviation = 0.6

const ones = (name: string, width: number): Tensor => ({ name, shape: [width], type: "f32", deviation: 0 })

const layerTensors = (shape: TextShape, layer: number, type: Quantisation): ReadonlyArray<Tensor> => {
  const { architecture, feedForward, headWidth, heads, keyValueHeads, width } = shape
  const prefix = `blk.${layer}.`
  /** Inputs have deviation 1 (they are normalized), so that outputs have it too. */
  const matrix = (name: string, from: number, to: number, inputDeviation = 1): Tensor => ({
    name: `${prefix}${name}.weight`,
    shape: [from, to],
    type,
    deviation: 1 / (Math.sqrt(from) * inputDeviation),
  })
  const headNorms = ["attn_q_norm", "attn_k_norm"].map((name) => ones(`${prefix}${name}.weight`, headWidth))
  return [
    ones(`${prefix}attn_norm.weight`, width),
    matrix("attn_q", width, heads * headWidth),
    matrix("attn_k", width, keyValueHeads * headWidth),
    matrix("attn_v", width, keyValueHeads * headWidth),
    matrix("attn_output", heads * headWidth, width),
    ...(architecture === "llama" ? [] : headNorms),
    ones(`${prefix}ffn_norm.weight`, width),
    matrix("ffn_gate", width, feedForward),
    matrix("ffn_up", width, feedForward),
    matrix("ffn_down", feedForward, width, gatedDeviation),
  ]
}

/**
 * All tensors of a model. What each layer adds has a deviation of about 1, so the sum stays finite whatever the depth;
 * it outweighs the embedding, so the next token does not just repeat the last one although both matrices are one.
 *
 * Rows of `neverDrawn` are zero: the logit of these tokens is exactly 0, the mean of all logits. Beside some thousand
 * tokens with logits of two or three deviations, such a token is drawn less than once in ten million steps at a
 * temperature of 1 and less than once in a billion at 0.7, so a reply ends at its last allowed token.
 */
export const textTensors = (
  shape: TextShape,
  type: Quantisation,
  vocabulary: { readonly size: number; readonly neverDrawn: { readonly has: (row: number) => boolean } },
): ReadonlyArray<Tensor> => [
  {
    name: "token_embd.weight",
    shape: [shape.width, vocabulary.size],
    // Published files of 4 bits keep the embedding of a model with a tied output larger, too.
    type: "q8_0",
    deviation: logitDeviation / Math.sqrt(shape.width),
    zeroRows: vocabulary.neverDrawn,
  },
  ones("output_norm.weight", shape.width),
  ...Array.from({ length: shape.layers }, (_, layer) => layerTensors(shape, layer, type)).flat(),
]

export const valuesOf = ({ shape }: Tensor): number => shape.reduce((product, size) => product * size, 1)
