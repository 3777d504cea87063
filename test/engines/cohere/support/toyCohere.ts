// A Cohere Transcribe folder with the published names whose "model" is a table: the next token depends on every
// token in the cache, on the masks and positions fed, and on the encoder, so that a wrong feed gives another text.
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { EngineSpec } from "#engines/protocol/Engine.ts"
import { seededRandom } from "#engines/shared/listening/Sampling.ts"
import { ToyGraph } from "../../../support/engines/ToyOnnxGraph.ts"

const headCount = 2
const modelWidth = 3
const rowCount = 997
const mels = 128
const languageCodes = "ar de el en es fr it ja ko nl pl pt vi zh".split(" ")
const controls = [
  "<unk>",
  "<|nospeech|>",
  "<pad>",
  "<|endoftext|>",
  "<|startofcontext|>",
  "<|startoftranscript|>",
  "<|emo:undefined|>",
  "<|pnc|>",
  "<|nopnc|>",
  "<|noitn|>",
  "<|notimestamp|>",
  "<|nodiarize|>",
  ...languageCodes.map((language) => `<|${language}|>`),
]
const pieces = [
  "▁",
  ".",
  ...Array.from("abcdefghijklmnopqrstuvwxyz"),
  ...Array.from("ABCDEFGHIJ", (c) => `▁${c}`),
]
/** As in the published vocabulary: a character without a token of its own is spelled by its bytes. */
const bytes = Array.from(
  { length: 256 },
  (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`,
)
const vocabulary = [...controls, ...pieces, ...bytes, "\ufffd"]
export const idOf = (token: string): number => vocabulary.indexOf(token)
const end = idOf("<|endoftext|>")

const tokenizer = {
  version: "1.0",
  truncation: null,
  padding: null,
  added_tokens: controls.map((content, id) => ({
    id,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  })),
  normalizer: null,
  pre_tokenizer: { type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: false },
  post_processor: null,
  decoder: { type: "Metaspace", replacement: "▁", prepend_scheme: "always", split: false },
  model: {
    type: "BPE",
    unk_token: "<unk>",
    fuse_unk: true,
    byte_fallback: true,
    vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
    merges: [],
  },
}

interface ToyCohere {
  readonly folder: string
  readonly spec: EngineSpec
  readonly table: ReadonlyArray<Float32Array>
}

export interface ToyCohereOptions {
  readonly seed: number
  readonly endBias?: number
  /** Whether the graphs declare the inputs that only some exports have. */
  readonly masks?: boolean
  readonly patch?: (table: ReadonlyArray<Float32Array>) => void
}

/** Every eighth frame; the value is the number of frames, so that the length of the features changes the text. */
const encoderGraph = (masks: boolean): ToyGraph => {
  const graph = new ToyGraph()
  graph.input("input_features", "float32", ["batch_size", "frames", mels])
  if (masks) graph.input("attention_mask", "int64", ["batch_size", "frames"])
  const count = masks
    ? graph.cast(graph.op("ReduceSum", ["attention_mask", graph.ints(1)], { keepdims: 0 }), "float32")
    : graph.cast(graph.op("Shape", ["input_features"], { start: 1, end: 2 }), "float32")
  const eighth = graph.op("Slice", [
    "input_features",
    graph.ints(0),
    graph.ints(1 << 30),
    graph.ints(1),
    graph.ints(8),
  ])
  const narrow = graph.op("Slice", [eighth, graph.ints(0), graph.ints(4), graph.ints(2)])
  const zero = graph.op("Mul", [narrow, graph.constant("float32", [], [0])])
  graph.output(
    "last_hidden_state",
    "float32",
    ["batch_size", "encoder_frames", 4],
    graph.op("Add", [zero, count]),
  )
  return graph
}

const decoderGraph = (table: ReadonlyArray<Float32Array>, masks: boolean): ToyGraph => {
  const graph = new ToyGraph()
  const rows = Float32Array.from(table.flatMap((row) => [...row]))
  const tableName = graph.constant("float32", [rowCount, vocabulary.length], rows)
  graph.input("input_ids", "int64", ["batch_size", "sequence_length"])
  graph.input("attention_mask", "int64", ["batch_size", "total_sequence_length"])
  graph.input("position_ids", "int64", ["batch_size", "sequence_length"])
  graph.input("num_logits_to_keep", "int64", [])
  graph.input("encoder_hidden_states", "float32", ["batch_size", "encoder_frames", 4])
  if (masks) graph.input("encoder_attention_mask", "int64", ["batch_size", "encoder_frames"])
  const wide = graph.constant(
    "float32",
    [1, headCount, 1, modelWidth],
    new Float32Array(headCount * modelWidth).fill(1),
  )
  const column = graph.op("Reshape", [graph.cast("input_ids", "float32"), graph.ints(1, 1, -1, 1)])
  const fresh = graph.op("Mul", [column, wide])
  const firstColumn = graph.op("Slice", [
    "encoder_hidden_states",
    graph.ints(0),
    graph.ints(1),
    graph.ints(2),
  ])
  const crossFresh = graph.op("Mul", [graph.op("Reshape", [firstColumn, graph.ints(1, 1, -1, 1)]), wide])
  const crossLength = graph.op("Shape", ["encoder_hidden_states"], { start: 1, end: 2 })
  for (const [side, part] of [
    ["decoder", "key"],
    ["decoder", "value"],
    ["encoder", "key"],
    ["encoder", "value"],
  ] as const) {
    const past = graph.input(`past_key_values.0.${side}.${part}`, "float32", [
      "batch",
      headCount,
      "past",
      modelWidth,
    ])
    const grown = graph.op("Concat", [past, side === "decoder" ? fresh : crossFresh], { axis: 2 })
    // An existing cache is kept: its rows come first.
    const kept = graph.op("Slice", [grown, graph.ints(0), crossLength, graph.ints(2)])
    const present = `present.0.${side}.${part}`
    graph.output(
      present,
      "float32",
      ["batch", headCount, "total", modelWidth],
      side === "decoder" ? grown : kept,
    )
  }
  const flat = (name: string) => {
    const one = graph.op("Slice", [name, graph.ints(0, 0), graph.ints(1, 1), graph.ints(1, 3)])
    return graph.cast(graph.op("Reshape", [one, graph.ints(1, -1)]), "int64")
  }
  const sum = (name: string) => graph.op("ReduceSum", [name, graph.ints(1)], { keepdims: 1 })
  const places = graph.op("ReduceSum", ["attention_mask", graph.ints(1)], { keepdims: 1 })
  const lastPosition = graph.op("Slice", ["position_ids", graph.ints(-1), graph.ints(1 << 30), graph.ints(1)])
  const cross = graph.op("Slice", [
    flat("present.0.encoder.value"),
    graph.ints(0),
    graph.ints(1),
    graph.ints(1),
  ])
  const terms = [
    sum(flat("present.0.decoder.value")),
    graph.op("Mul", [places, places]),
    lastPosition,
    cross,
    "num_logits_to_keep",
    ...(masks ? [graph.op("ReduceSum", ["encoder_attention_mask", graph.ints(1)], { keepdims: 1 })] : []),
  ]
  const total = terms.reduce((left, right) => graph.op("Add", [left, right]))
  const index = graph.op("Mod", [total, graph.ints(rowCount)])
  graph.output(
    "logits",
    "float32",
    ["batch_size", "kept", vocabulary.length],
    graph.op("Gather", [tableName, index]),
  )
  return graph
}

export const toyCohere = (options: ToyCohereOptions): ToyCohere => {
  const masks = options.masks ?? false
  const random = seededRandom(options.seed)
  const table = Array.from({ length: rowCount }, () => {
    const row = new Float32Array(vocabulary.length).fill(-12)
    for (let i = 0; i < 6; i++) row[controls.length + Math.floor(pieces.length * random())] = 20 * random()
    row[end] = 5 * random() + (options.endBias ?? 0)
    return row
  })
  options.patch?.(table)
  const folder = mkdtempSync(join(tmpdir(), "edgewise-toy-cohere-"))
  const write = (name: string, data: string | Uint8Array) => {
    writeFileSync(join(folder, name), data)
    return join(folder, name)
  }
  return {
    folder,
    table,
    spec: {
      modelId: "stt-toy",
      adapter: "cohere-hf-onnx",
      files: {
        encoder: write("encoder_model.onnx", encoderGraph(masks).encodeModel()),
        decoder: write("decoder_model_merged.onnx", decoderGraph(table, masks).encodeModel()),
        preprocessor: write("preprocessor_config.json", JSON.stringify({ feature_size: mels })),
        tokenizer: write("tokenizer.json", JSON.stringify(tokenizer)),
        tokenizerConfig: write("tokenizer_config.json", "{}"),
      },
      options: { maxPositions: 100 },
      threads: 1,
    },
  }
}

export const promptOf = (language: string, punctuation = "<|pnc|>"): ReadonlyArray<number> =>
  [
    "▁",
    "<|startofcontext|>",
    "<|startoftranscript|>",
    "<|emo:undefined|>",
    `<|${language}|>`,
    `<|${language}|>`,
    punctuation,
    "<|noitn|>",
    "<|notimestamp|>",
    "<|nodiarize|>",
  ].map(idOf)

/** The table row that `tokens` lead to; `constant` is the encoder's term. */
const rowAfter = (tokens: ReadonlyArray<number>, constant: number): number => {
  const place = tokens.length
  return (tokens.reduce((sum, token) => sum + token, 0) + place ** 2 + (place - 1) + constant + 1) % rowCount
}

const encoderConstant = (samples: number, masks: boolean): number => {
  const valid = Math.floor(samples / 160)
  return masks ? valid + Math.ceil((valid + 1) / 8) : valid + 1
}

/** Makes the greedy text after `prompt` be `script`, for `samples` samples of audio. */
export const scripted =
  (prompt: ReadonlyArray<number>, script: ReadonlyArray<string>, samples: number) =>
  (table: ReadonlyArray<Float32Array>): void => {
    const said = [...prompt]
    const rows = new Set<number>()
    for (const token of [...script, "<|endoftext|>"].map(idOf)) {
      const row = rowAfter(said, encoderConstant(samples, false))
      if (rows.has(row)) throw new Error("two steps of this script share a row: change a letter")
      rows.add(row)
      table[row]!.fill(-12)
      table[row]![token] = 30
      said.push(token)
    }
  }

/** The greedy tokens after `prompt` for `samples` samples of audio, computed without ONNX or caches. */
export const expected = (
  toy: ToyCohere,
  prompt: ReadonlyArray<number>,
  samples: number,
  options: { readonly masks?: boolean } = {},
): ReadonlyArray<number> => {
  const constant = encoderConstant(samples, options.masks ?? false)
  const tokens: Array<number> = []
  while (prompt.length + tokens.length < 100) {
    const row = toy.table[rowAfter([...prompt, ...tokens], constant)]!
    const next = row.indexOf(Math.max(...row))
    if (next === end) break
    tokens.push(next)
  }
  return tokens
}
