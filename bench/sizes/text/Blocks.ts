// The values of a tensor in ggml's storage formats, as a stream of chunks: random values of a given deviation, in 8 or 4
// bits. Pure.
import type { RandomWords } from "../RandomWords.ts"
import { type Quantisation, type Tensor, valuesOf } from "./Shapes.ts"

interface BlockType {
  /** Number of the type in a GGUF file. */
  readonly id: number
  readonly bytes: number
  readonly values: number
}

/** A block of 32 values: a scale as a 16-bit float, then the values as integers of 8 or 4 bits. */
export const blockTypes: Readonly<Record<Tensor["type"], BlockType>> = {
  f32: { id: 0, bytes: 4, values: 1 },
  q4_0: { id: 2, bytes: 18, values: 32 },
  q8_0: { id: 8, bytes: 34, values: 32 },
}

/**
 * Standard deviation of the random integers: the odd ones from -127 to 127, and those from -7 to 7 with 0 twice as often. Their
 * mean is 0. With another mean the values of a layer's output would share an error that grows from layer to layer.
 */
const integerDeviation: Readonly<Record<Quantisation, number>> = {
  q8_0: Math.sqrt((256 ** 2 - 4) / 12),
  q4_0: Math.sqrt(280 / 16),
}

/** The bits of a positive number below 65,504 as a 16-bit float, rounded. */
export const float16 = (value: number): number => {
  const exponent = Math.max(-14, Math.floor(Math.log2(value)))
  // A significand that rounds up to 2048 carries into the exponent by itself; below 2^-14 the exponent field is 0.
  const significand = Math.round(value * 2 ** (10 - exponent))
  return significand < 1024 ? significand : ((exponent + 15) << 10) + significand - 1024
}

/** Blocks of one chunk: 1.1 MB at 8 bits. Even, so that chunks are whole 32-bit words. */
const chunkBlocks = 32_768

/** Makes every byte odd. */
const toOddBytes = (words: Int32Array): void => {
  for (let at = 0; at < words.length; at++) words[at] = words[at]! | 0x0101_0101
}

/** Replaces every 0 of four bits, which stands for -8, by 8, which stands for 0. */
const withoutLowest = (words: Int32Array): void => {
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!
    const isZero = ~(word | (word >>> 1) | (word >>> 2) | (word >>> 3)) & 0x1111_1111
    words[at] = word | (isZero << 3)
  }
}

function* randomBlocks(tensor: Tensor, type: Quantisation, random: RandomWords): Generator<Uint8Array> {
  const { bytes, values } = blockTypes[type]
  const blocks = valuesOf(tensor) / values
  const rowBlocks = tensor.shape[0] / values
  if (!Number.isInteger(rowBlocks)) throw new Error(`${tensor.name}: a row is no whole number of blocks`)
  const scale = float16(tensor.deviation / integerDeviation[type])
  for (let first = 0; first < blocks; first += chunkBlocks) {
    const count = Math.min(chunkBlocks, blocks - first)
    const words = new Int32Array(Math.ceil((count * bytes) / 4))
    random.fill(words)
    if (type === "q8_0") toOddBytes(words)
    else withoutLowest(words)
    const chunk = new Uint8Array(words.buffer, 0, count * bytes)
    for (let block = 0; block < count; block++) {
      const at = block * bytes
      const zero = tensor.zeroRows?.has(Math.floor((first + block) / rowBlocks)) ?? false
      chunk[at] = zero ? 0 : scale & 0xff
      chunk[at + 1] = zero ? 0 : scale >>> 8
    }
    yield chunk
  }
}

/** Values of one chunk of floats: 4 MB. */
const chunkFloats = 1 << 20

/** Uniform values. */
function* randomFloats(tensor: Tensor, random: RandomWords): Generator<Uint8Array> {
  const values = valuesOf(tensor)
  const scale = (Math.sqrt(3) * tensor.deviation) / 2 ** 31
  for (let first = 0; first < values; first += chunkFloats) {
    const words = new Int32Array(Math.min(chunkFloats, values - first))
    random.fill(words)
    yield new Uint8Array(Float32Array.from(words, (word) => word * scale).buffer)
  }
}

export function* tensorBytes(tensor: Tensor, random: RandomWords): Generator<Uint8Array> {
  if (tensor.type === "f32" && tensor.deviation > 0) yield* randomFloats(tensor, random)
  else if (tensor.type === "f32") yield new Uint8Array(new Float32Array(valuesOf(tensor)).fill(1).buffer)
  else yield* randomBlocks(tensor, tensor.type, random)
}

export const tensorSizeBytes = (tensor: Tensor): number => {
  const { bytes, values } = blockTypes[tensor.type]
  return (valuesOf(tensor) / values) * bytes
}
