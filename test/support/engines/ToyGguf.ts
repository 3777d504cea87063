// Writes tiny GGUF models for tests: `llama` and hybrid `qwen35`, with weights that are either random or scripted.
// In a scripted model attention has no effect: each token is followed by the one that its script names, so its output
// is known byte by byte.
import { writeFileSync } from "node:fs"

// GGUF value types (format version 3).
const u32 = 4
const i32 = 5
const f32 = 6
const bool = 7
const string = 8
const array = 9

type Value = readonly [type: number, value: number | string | boolean | Values]
interface Values {
  readonly of: number
  readonly items: ReadonlyArray<number | string>
}

class Bytes {
  readonly #parts: Array<Uint8Array> = []
  length = 0

  add(part: Uint8Array): void {
    this.#parts.push(part)
    this.length += part.length
  }
  number(size: 4 | 8, write: (view: DataView) => void): void {
    const part = new Uint8Array(size)
    write(new DataView(part.buffer))
    this.add(part)
  }
  uint32(value: number): void {
    this.number(4, (view) => view.setUint32(0, value, true))
  }
  uint64(value: number): void {
    this.number(8, (view) => view.setBigUint64(0, BigInt(value), true))
  }
  text(value: string): void {
    const part = new TextEncoder().encode(value)
    this.uint64(part.length)
    this.add(part)
  }
  value(type: number, value: Value[1]): void {
    if (typeof value === "object") {
      this.uint32(value.of)
      this.uint64(value.items.length)
      for (const item of value.items) this.value(value.of, item)
    } else if (typeof value === "string") this.text(value)
    else if (type === f32) this.number(4, (view) => view.setFloat32(0, Number(value), true))
    else if (type === bool) this.add(Uint8Array.of(value ? 1 : 0))
    else this.number(4, (view) => view.setInt32(0, Number(value), true))
  }
  pad(multiple: number): void {
    this.add(new Uint8Array((multiple - (this.length % multiple)) % multiple))
  }
  concat(): Buffer {
    return Buffer.concat(this.#parts)
  }
}

/** Standard normal numbers from a seed (mulberry32 and Box-Muller). */
const gaussian = (seed: number) => {
  let state = seed >>> 0
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  return () => Math.sqrt(-2 * Math.log(uniform() || 1e-9)) * Math.cos(2 * Math.PI * uniform())
}

const words =
  "the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one " +
  "you were all her she there would their we him been has when who will no more if out so up said what its about " +
  "than into them can only other time new some could these two may first then do any like my now over such our man " +
  "Hello world stop STOP END fox robot story tell me a please ü é € 日本 😀"

/** SPM vocabulary: specials, 256 byte tokens, ChatML markers, characters, words. 512 tokens. */
const vocabularySize = 512
const vocabulary = (() => {
  const tokens: Array<string> = ["<unk>", "<s>", "</s>"]
  const types: Array<number> = [2, 3, 3]
  const add = (token: string, type: number) => {
    if (tokens.includes(token) || tokens.length === vocabularySize) return
    tokens.push(token)
    types.push(type)
  }
  for (let byte = 0; byte < 256; byte++) add(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`, 6)
  add("<|im_start|>", 3)
  add("<|im_end|>", 3)
  add("▁", 1)
  for (const character of "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,!?:;'\"-()\n<|>_/")
    add(character, 1)
  for (const word of words.split(" ")) add(`▁${word}`, 1)
  for (let filler = 0; tokens.length < vocabularySize; filler++) add(`▁w${filler}`, 1)
  return { tokens, types, scores: tokens.map((_, id) => -id) }
})()

/** The id of a token by its spelling, e.g. "▁Hello", "<0xE2>", "<|im_end|>". */
const toyToken = (spelling: string): number => {
  const id = vocabulary.tokens.indexOf(spelling)
  if (id < 0) throw new Error(`the toy vocabulary has no token ${spelling}`)
  return id
}

const chatTemplate =
  "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}" +
  "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

export interface ToyOptions {
  /** Seed of the random weights. */
  readonly seed?: number
  readonly contextTokens?: number
  /**
   * Chains of spellings: each token is followed by the next one of its chain, the last by the end-of-turn token. A
   * prompt that ends with a chain's first token starts it (a ChatML prompt ends with "\n"). No token twice.
   */
  readonly script?: ReadonlyArray<ReadonlyArray<string>>
  /** Jinja; null leaves the model without a template. */
  readonly chatTemplate?: string | null
  /** Spellings of further control tokens, in the places of the last tokens of the vocabulary. */
  readonly special?: ReadonlyArray<string>
}

type Fill = "random" | "one" | "minusOne" | "zero"
interface Tensor {
  readonly name: string
  readonly shape: ReadonlyArray<number>
  readonly fill: Fill | Float32Array
}

const width = 64
const feedForward = 128
const heads = 4
const keyValueHeads = 2

/** Sets the output row of each token to the embedding of the token before it, which is nearly orthogonal to all others. */
const scripted = (embedding: Float32Array, script: ReadonlyArray<ReadonlyArray<string>>): Float32Array => {
  const output = new Float32Array(embedding.length)
  for (const chain of script) {
    const tokens = [...chain, "<|im_end|>"].map(toyToken)
    for (let at = 1; at < tokens.length; at++) {
      const row = tokens[at]! * width
      const before = tokens[at - 1]! * width
      for (let i = 0; i < width; i++) output[row + i] = output[row + i]! + embedding[before + i]!
    }
  }
  return output
}

/** Embedding and output matrices. Embeddings have unit variance; with less, two layers of random weights give nearly equal logits. */
const ends = (options: ToyOptions): ReadonlyArray<Tensor> => {
  const next = gaussian((options.seed ?? 1) + 1000)
  const embedding = Float32Array.from({ length: width * vocabularySize }, next)
  return [
    { name: "token_embd.weight", shape: [width, vocabularySize], fill: embedding },
    { name: "output_norm.weight", shape: [width], fill: "one" },
    {
      name: "output.weight",
      shape: [width, vocabularySize],
      fill: options.script === undefined ? "random" : scripted(embedding, options.script),
    },
  ]
}

/** In a scripted model each layer adds zero, so the token's own embedding reaches the output. */
const added = (options: ToyOptions): Fill => (options.script === undefined ? "random" : "zero")

const feedForwardTensors = (prefix: string, options: ToyOptions): ReadonlyArray<Tensor> => [
  { name: `${prefix}ffn_gate.weight`, shape: [width, feedForward], fill: "random" },
  { name: `${prefix}ffn_up.weight`, shape: [width, feedForward], fill: "random" },
  { name: `${prefix}ffn_down.weight`, shape: [feedForward, width], fill: added(options) },
]

const llamaLayer = (layer: number, options: ToyOptions): ReadonlyArray<Tensor> => {
  const prefix = `blk.${layer}.`
  const keyValueWidth = (width / heads) * keyValueHeads
  return [
    { name: `${prefix}attn_norm.weight`, shape: [width], fill: "one" },
    { name: `${prefix}attn_q.weight`, shape: [width, width], fill: "random" },
    { name: `${prefix}attn_k.weight`, shape: [width, keyValueWidth], fill: "random" },
    { name: `${prefix}attn_v.weight`, shape: [width, keyValueWidth], fill: "random" },
    { name: `${prefix}attn_output.weight`, shape: [width, width], fill: added(options) },
    { name: `${prefix}ffn_norm.weight`, shape: [width], fill: "one" },
    ...feedForwardTensors(prefix, options),
  ]
}

// The hybrid model: three gated-delta-net layers, then one attention layer whose query includes a gate.
const headWidth = 32
const stateWidth = 32
const keyHeads = 2
const valueHeads = 4
const kernel = 4
const interval = 4
const keyWidth = stateWidth * keyHeads
const valueWidth = stateWidth * valueHeads

const attentionTensors = (prefix: string, options: ToyOptions): ReadonlyArray<Tensor> => [
  { name: `${prefix}attn_q.weight`, shape: [width, headWidth * heads * 2], fill: "random" },
  { name: `${prefix}attn_k.weight`, shape: [width, headWidth * keyValueHeads], fill: "random" },
  { name: `${prefix}attn_v.weight`, shape: [width, headWidth * keyValueHeads], fill: "random" },
  { name: `${prefix}attn_output.weight`, shape: [headWidth * heads, width], fill: added(options) },
  { name: `${prefix}attn_q_norm.weight`, shape: [headWidth], fill: "one" },
  { name: `${prefix}attn_k_norm.weight`, shape: [headWidth], fill: "one" },
]

const recurrentTensors = (prefix: string, options: ToyOptions): ReadonlyArray<Tensor> => [
  { name: `${prefix}attn_qkv.weight`, shape: [width, 2 * keyWidth + valueWidth], fill: "random" },
  { name: `${prefix}attn_gate.weight`, shape: [width, valueWidth], fill: "random" },
  { name: `${prefix}ssm_conv1d.weight`, shape: [kernel, 2 * keyWidth + valueWidth], fill: "random" },
  { name: `${prefix}ssm_dt.bias`, shape: [valueHeads], fill: "random" },
  { name: `${prefix}ssm_a`, shape: [valueHeads], fill: "minusOne" },
  { name: `${prefix}ssm_beta.weight`, shape: [width, valueHeads], fill: "random" },
  { name: `${prefix}ssm_alpha.weight`, shape: [width, valueHeads], fill: "random" },
  { name: `${prefix}ssm_norm.weight`, shape: [stateWidth], fill: "one" },
  { name: `${prefix}ssm_out.weight`, shape: [valueWidth, width], fill: added(options) },
]

const qwen35Layer = (layer: number, options: ToyOptions): ReadonlyArray<Tensor> => {
  const prefix = `blk.${layer}.`
  const attends = (layer + 1) % interval === 0
  return [
    { name: `${prefix}attn_norm.weight`, shape: [width], fill: "one" },
    { name: `${prefix}post_attention_norm.weight`, shape: [width], fill: "one" },
    ...(attends ? attentionTensors(prefix, options) : recurrentTensors(prefix, options)),
    ...feedForwardTensors(prefix, options),
  ]
}

const commonKeys = (architecture: string, layers: number, options: ToyOptions): Array<[string, Value]> => [
  ["general.architecture", [string, architecture]],
  ["general.name", [string, `toy-${architecture}`]],
  ["general.file_type", [u32, 0]],
  [`${architecture}.context_length`, [u32, options.contextTokens ?? 8192]],
  [`${architecture}.embedding_length`, [u32, width]],
  [`${architecture}.block_count`, [u32, layers]],
  [`${architecture}.feed_forward_length`, [u32, feedForward]],
  [`${architecture}.attention.head_count`, [u32, heads]],
  [`${architecture}.attention.head_count_kv`, [u32, keyValueHeads]],
  [`${architecture}.rope.freq_base`, [f32, 10000]],
  [`${architecture}.attention.layer_norm_rms_epsilon`, [f32, 1e-5]],
  [`${architecture}.vocab_size`, [u32, vocabularySize]],
]

const tokenizerKeys = (options: ToyOptions): Array<[string, Value]> => {
  const template = options.chatTemplate === undefined ? chatTemplate : options.chatTemplate
  const { special = [] } = options
  const ordinary = vocabularySize - special.length
  return [
    ["tokenizer.ggml.model", [string, "llama"]],
    ["tokenizer.ggml.pre", [string, "default"]],
    [
      "tokenizer.ggml.tokens",
      [array, { of: string, items: [...vocabulary.tokens.slice(0, ordinary), ...special] }],
    ],
    ["tokenizer.ggml.scores", [array, { of: f32, items: vocabulary.scores }]],
    [
      "tokenizer.ggml.token_type",
      [array, { of: i32, items: vocabulary.types.map((type, id) => (id < ordinary ? type : 3)) }],
    ],
    ["tokenizer.ggml.bos_token_id", [u32, 1]],
    ["tokenizer.ggml.eos_token_id", [u32, toyToken("<|im_end|>")]],
    ["tokenizer.ggml.unknown_token_id", [u32, 0]],
    ["tokenizer.ggml.add_bos_token", [bool, true]],
    ["tokenizer.ggml.add_eos_token", [bool, false]],
    ...(template === null ? [] : [["tokenizer.chat_template", [string, template]] as [string, Value]]),
  ]
}

const writeGguf = (
  path: string,
  keys: ReadonlyArray<readonly [string, Value]>,
  tensors: ReadonlyArray<Tensor>,
  seed: number,
): void => {
  const alignment = 32
  const out = new Bytes()
  out.add(new TextEncoder().encode("GGUF"))
  out.uint32(3)
  out.uint64(tensors.length)
  out.uint64(keys.length)
  for (const [key, [type, value]] of keys) {
    out.text(key)
    out.uint32(type)
    out.value(type, value)
  }
  const sizeOf = ({ shape }: Tensor) => shape.reduce((product, size) => product * size, 1)
  let offset = 0
  for (const tensor of tensors) {
    out.text(tensor.name)
    out.uint32(tensor.shape.length)
    for (const size of tensor.shape) out.uint64(size)
    out.uint32(0) // F32
    out.uint64(offset)
    offset += Math.ceil((sizeOf(tensor) * 4) / alignment) * alignment
  }
  const next = gaussian(seed)
  for (const tensor of tensors) {
    out.pad(alignment)
    const { fill } = tensor
    const constant = { one: 1, minusOne: -1, zero: 0 }
    const numbers =
      typeof fill === "object"
        ? fill
        : Float32Array.from({ length: sizeOf(tensor) }, () =>
            fill === "random" ? next() * 0.08 : constant[fill],
          )
    out.add(new Uint8Array(numbers.buffer))
  }
  out.pad(alignment)
  writeFileSync(path, out.concat())
}

/** Two `llama` layers, about 0.5 MB. */
export const writeToyLlama = (path: string, options: ToyOptions = {}): void => {
  const layers = 2
  const keys = commonKeys("llama", layers, options)
  keys.push(["llama.rope.dimension_count", [u32, width / heads]], ...tokenizerKeys(options))
  const body = Array.from({ length: layers }, (_, layer) => llamaLayer(layer, options)).flat()
  writeGguf(path, keys, [...ends(options), ...body], options.seed ?? 1)
}

/** Eight hybrid layers, two of them with attention, about 2 MB. Its sequence memory cannot be cut at a token, only restored. */
export const writeToyQwen35 = (path: string, options: ToyOptions = {}): void => {
  const layers = 8
  const keys = commonKeys("qwen35", layers, options)
  keys.push(
    ["qwen35.rope.dimension_count", [u32, 16]],
    ["qwen35.rope.dimension_sections", [array, { of: i32, items: [3, 3, 2, 0] }]],
    ["qwen35.attention.key_length", [u32, headWidth]],
    ["qwen35.attention.value_length", [u32, headWidth]],
    ["qwen35.ssm.conv_kernel", [u32, kernel]],
    ["qwen35.ssm.inner_size", [u32, valueWidth]],
    ["qwen35.ssm.state_size", [u32, stateWidth]],
    ["qwen35.ssm.time_step_rank", [u32, valueHeads]],
    ["qwen35.ssm.group_count", [u32, keyHeads]],
    ["qwen35.full_attention_interval", [u32, interval]],
    ...tokenizerKeys(options),
  )
  const body = Array.from({ length: layers }, (_, layer) => qwen35Layer(layer, options)).flat()
  writeGguf(path, keys, [...ends(options), ...body], options.seed ?? 1)
}
