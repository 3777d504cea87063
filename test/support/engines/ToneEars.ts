// Transducers whose words are tones: exports in the published layouts with weights made by hand, which really hear. A word is a tone of its
// own frequency; the encoder measures how much louder each tone becomes from one frame to the next, and the joint network emits the word of a tone
// that begins. What the networks say also depends on every state that is fed back:
// - The energies before a chunk are in `cache_last_channel`, the changes in `cache_last_time`, and both count only if the length was fed back.
// - The predictor counts words: after five of them comes "!", and then a capital. It remembers the last word, which is not said twice
//   in a row. States that are committed on blank, or fed twice, put the marks elsewhere.
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { EngineSpec } from "#engines/protocol/Engine.ts"
import { hzToMel } from "#engines/shared/listening/MelFilters.ts"
import { ToyGraph } from "./ToyOnnxGraph.ts"

export type ToneLayout = "genai" | "parakeet-rs" | "sherpa" | "tdt" | "zipformer"

export const toneWords = ["amber", "birch", "cedar", "dover", "ember", "finch", "grove", "hazel"] as const
const frequencies = [500, 700, 950, 1_300, 1_750, 2_300, 3_000, 4_000] as const
const count = toneWords.length

/** The number of German in the layout `genai`, in which every word means the next one. */
const shiftedPrompt = 9

// ------------------------------------------------------------ vocabulary

const capital = (word: string) => `▁${word[0]!.toUpperCase()}${word.slice(1)}`
const textPieces = [
  ...toneWords.map(capital),
  ...toneWords.map((word) => `▁${word.slice(0, 2)}`),
  ...toneWords.map((word) => word.slice(2)),
  "!",
]
/** Blank is the first piece of Zipformer models, and the last of NeMo's. */
const piecesOf = (layout: ToneLayout): ReadonlyArray<string> =>
  layout === "zipformer" ? ["<blk>", "<unk>", ...textPieces] : ["<unk>", ...textPieces, "<blk>"]

interface Ids {
  readonly size: number
  readonly blank: number
  readonly mark: number
  readonly caps: ReadonlyArray<number>
  readonly starts: ReadonlyArray<number>
  readonly rests: ReadonlyArray<number>
}

const idsOf = (layout: ToneLayout): Ids => {
  const pieces = piecesOf(layout)
  const first = pieces.indexOf(textPieces[0]!)
  const run = (at: number) => Array.from({ length: count }, (_, word) => first + at * count + word)
  return {
    size: pieces.length,
    blank: pieces.indexOf("<blk>"),
    mark: pieces.indexOf("!"),
    caps: run(0),
    starts: run(1),
    rests: run(2),
  }
}

const never = -1_000
const durations = 5

/** How much louder a tone must become, in natural logarithms of its power; TDT's features are divided by their deviation. */
const threshold = (layout: ToneLayout): number => (layout === "tdt" ? 0.4 : 6.5)

const matrix = (rows: number, columns: number, of: (row: number, column: number) => number): Float32Array =>
  Float32Array.from({ length: rows * columns }, (_, i) => of(Math.floor(i / columns), i % columns))

/** Scores of each token after each last token. */
const after = (layout: ToneLayout, ids: Ids, width: number): Float32Array => {
  const { blank, caps, mark, rests, starts } = ids
  const begins = new Set([blank, ...(layout === "zipformer" ? [] : [mark])])
  const complete = new Set([...caps, ...rests])
  return matrix(ids.size, width, (last, token) => {
    if (token >= ids.size)
      return [0, 1, 1 - threshold(layout), 0, 0][token - ids.size]! - (token === ids.size ? 5 : 0)
    const half = starts.indexOf(last)
    if (half !== -1) return token === rests[half] ? -never : never
    if (token === blank) return 0
    if (token === mark) return layout !== "zipformer" && complete.has(last) ? -450 : 100 * never
    if (caps.includes(token)) return begins.has(last) ? -threshold(layout) : never
    if (starts.includes(token)) {
      const same = layout === "zipformer" && rests[starts.indexOf(token)] === last
      return begins.has(last) || same ? never : -threshold(layout)
    }
    return never
  })
}

/** Encoder frame → scores. */
const hearing = (layout: ToneLayout, ids: Ids, width: number): Float32Array =>
  matrix(count, width, (word, token) =>
    token === ids.caps[word] || token === ids.starts[word] || (layout === "tdt" && token === ids.size + 2)
      ? 1
      : 0,
  )

// ------------------------------------------------------------ graphs

/** The mel bin whose middle is nearest to a frequency. */
const binOf = (layout: ToneLayout, hz: number): number => {
  if (layout === "zipformer") {
    const mel = (f: number) => 1127 * Math.log(1 + f / 700)
    return Math.round(((mel(hz) - mel(20)) / (mel(7_600) - mel(20))) * 81) - 1
  }
  return Math.round((hzToMel(hz) / hzToMel(8_000)) * 129) - 1
}

const pick = (graph: ToyGraph, layout: ToneLayout, bins: number): string =>
  graph.constant(
    "float32",
    [bins, count],
    matrix(bins, count, (bin, word) => (bin === binOf(layout, frequencies[word]!) ? 1 : 0)),
  )

/** Mean over frames `from + n·each` to `from + (n+1)·each`: [1, frames, window]. */
const pool = (graph: ToyGraph, window: number, from: number, each: number, frames: number): string =>
  graph.constant(
    "float32",
    [1, frames, window],
    matrix(frames, window, (frame, at) =>
      at >= from + frame * each && at < from + (frame + 1) * each ? 1 / each : 0,
    ),
  )

const slice = (graph: ToyGraph, name: string, from: number, to: number, axis: number): string =>
  graph.op("Slice", [name, graph.ints(from), graph.ints(to), graph.ints(axis)])

const far = 1 << 30

const left = 4
const timeWidth = 8

/** Energies [1, n, words] → how much they rose, less a part of the rise before. `before` and `rose`: those of the frame before, [1, 1, words]. */
const rises = (graph: ToyGraph, energies: string, before: string, rose: string) => {
  const previous = graph.op("Concat", [before, slice(graph, energies, 0, -1, 1)], { axis: 1 })
  const rise = graph.op("Sub", [energies, previous])
  const earlier = graph.op("Concat", [rose, slice(graph, rise, 0, -1, 1)], { axis: 1 })
  const part = graph.op("Mul", [earlier, graph.constant("float32", [], [0.25])])
  return { rise, onset: graph.op("Sub", [rise, part]) }
}

const streamingEncoder = (layout: "genai" | "parakeet-rs" | "sherpa", shift: number): ToyGraph => {
  const graph = new ToyGraph()
  const bins = 128
  const window = shift + 9
  const frames = shift / 8
  const timeFirst = layout === "genai"
  const [audioName, lengthName] =
    layout === "parakeet-rs" ? ["processed_signal", "processed_signal_length"] : ["audio_signal", "length"]
  const audio = graph.input(audioName, "float32", timeFirst ? [1, window, bins] : ["batch", bins, window])
  graph.input(lengthName, "int64", ["batch"])
  const batch = layout === "sherpa" ? "batch" : 1
  const channel = graph.input("cache_last_channel", "float32", [batch, 1, left, count])
  const time = graph.input("cache_last_time", "float32", [batch, 1, count, timeWidth])
  const length = graph.input("cache_last_channel_len", "int64", [batch])
  const x = timeFirst ? audio : graph.op("Transpose", [audio], { perm: [0, 2, 1] })
  const tones = graph.op("MatMul", [x, pick(graph, layout, bins)])
  const energies = graph.op("Add", [
    graph.op("MatMul", [pool(graph, window, 9, 8, frames), tones]),
    graph.constant("float32", [], [Math.log(2 ** 24)]),
  ])
  const known = graph.op("Reshape", [
    graph.cast(graph.op("Min", [length, graph.ints(1)]), "float32"),
    graph.ints(-1, 1, 1),
  ])
  const row = graph.op("Reshape", [slice(graph, channel, left - 1, left, 2), graph.ints(-1, 1, count)])
  const before = graph.op("Mul", [row, known])
  const rose = graph.op("Reshape", [
    slice(graph, time, timeWidth - 1, timeWidth, 3),
    graph.ints(-1, 1, count),
  ])
  const { onset, rise } = rises(graph, energies, before, rose)
  let out = onset
  if (layout === "genai") {
    const prompt = graph.input("lang_id", "int64", [1])
    const is = graph.cast(graph.op("Equal", [prompt, graph.ints(shiftedPrompt)]), "float32")
    const turn = graph.constant(
      "float32",
      [count, count],
      matrix(count, count, (a, b) => (b === (a + 1) % count ? 1 : 0) - (a === b ? 1 : 0)),
    )
    out = graph.op("Add", [onset, graph.op("Mul", [graph.op("MatMul", [onset, turn]), is])])
  }
  const [framesName, countName] =
    layout === "parakeet-rs" ? ["encoded", "encoded_len"] : ["outputs", "encoded_lengths"]
  if (timeFirst) graph.output(framesName, "float32", [1, frames, count], out)
  else
    graph.output(
      framesName,
      "float32",
      ["batch", count, frames],
      graph.op("Transpose", [out], { perm: [0, 2, 1] }),
    )
  graph.output(
    countName,
    "int64",
    [batch],
    graph.op("Add", [graph.op("Mul", [length, graph.ints(0)]), graph.ints(frames)]),
  )
  const rows = graph.op("Concat", [graph.op("Reshape", [channel, graph.ints(-1, left, count)]), energies], {
    axis: 1,
  })
  graph.output(
    "cache_last_channel_next",
    "float32",
    [batch, 1, left, count],
    graph.op("Reshape", [slice(graph, rows, -left, far, 1), graph.ints(-1, 1, left, count)]),
  )
  const columns = graph.op(
    "Concat",
    [
      graph.op("Reshape", [time, graph.ints(-1, count, timeWidth)]),
      graph.op("Transpose", [rise], { perm: [0, 2, 1] }),
    ],
    { axis: 2 },
  )
  graph.output(
    "cache_last_time_next",
    "float32",
    [batch, 1, count, timeWidth],
    graph.op("Reshape", [slice(graph, columns, -timeWidth, far, 2), graph.ints(-1, 1, count, timeWidth)]),
  )
  graph.output(
    layout === "sherpa" ? "cache_last_channel_next_len" : "cache_last_channel_len_next",
    "int64",
    [batch],
    graph.op("Min", [graph.op("Add", [length, graph.ints(frames)]), graph.ints(left)]),
  )
  return graph
}

const zipformerEncoder = (): ToyGraph => {
  const graph = new ToyGraph()
  const x = graph.input("x", "float32", ["N", 45, 80])
  const key = graph.input("cached_key_0", "float32", [left, "N", count])
  const embed = graph.input("embed_states", "float32", ["N", count, 1, 1])
  const processed = graph.input("processed_lens", "int64", ["N"])
  const tones = graph.op("MatMul", [x, pick(graph, "zipformer", 80)])
  const energies = graph.op("Add", [
    graph.op("MatMul", [pool(graph, 45, 0, 4, 8), tones]),
    graph.constant("float32", [], [Math.log(2 ** 23)]),
  ])
  const known = graph.op("Reshape", [
    graph.cast(graph.op("Min", [processed, graph.ints(1)]), "float32"),
    graph.ints(-1, 1, 1),
  ])
  const byRow = graph.op("Transpose", [key], { perm: [1, 0, 2] })
  const row = slice(graph, byRow, left - 1, left, 1)
  const { onset, rise } = rises(
    graph,
    energies,
    graph.op("Mul", [row, known]),
    graph.op("Reshape", [embed, graph.ints(-1, 1, count)]),
  )
  graph.output("encoder_out", "float32", ["N", 8, count], onset)
  const rows = graph.op("Concat", [byRow, energies], {
    axis: 1,
  })
  graph.output(
    "new_cached_key_0",
    "float32",
    [left, "N", count],
    graph.op("Transpose", [slice(graph, rows, -left, far, 1)], { perm: [1, 0, 2] }),
  )
  graph.output(
    "new_embed_states",
    "float32",
    ["N", count, 1, 1],
    graph.op("Reshape", [slice(graph, rise, -1, far, 1), graph.ints(-1, count, 1, 1)]),
  )
  graph.output("new_processed_lens", "int64", ["N"], graph.op("Add", [processed, graph.ints(8)]))
  return graph
}

const offlineEncoder = (): ToyGraph => {
  const graph = new ToyGraph()
  const audio = graph.input("audio_signal", "float32", ["batch", 128, "time"])
  const length = graph.input("length", "int64", ["batch"])
  const x = graph.op("Transpose", [audio], { perm: [0, 2, 1] })
  // One deviation above the mean: what leaks from other tones is below.
  const loud = graph.op("Relu", [
    graph.op("Sub", [graph.op("MatMul", [x, pick(graph, "tdt", 128)]), graph.constant("float32", [], [1.3])]),
  ])
  const tones = graph.op("Transpose", [loud], { perm: [0, 2, 1] })
  const pooled = graph.op("AveragePool", [tones], { kernel_shape: [8], strides: [8], ceil_mode: 1 })
  const energies = graph.op("Transpose", [pooled], { perm: [0, 2, 1] })
  const first = slice(graph, energies, 0, 1, 1)
  const none = graph.op("Sub", [first, first])
  const { onset } = rises(graph, energies, first, none)
  graph.output(
    "outputs",
    "float32",
    ["batch", count, "frames"],
    graph.op("Transpose", [onset], { perm: [0, 2, 1] }),
  )
  graph.output(
    "encoded_lengths",
    "int64",
    ["batch"],
    graph.op("Div", [graph.op("Add", [length, graph.ints(7)]), graph.ints(8)]),
  )
  return graph
}

/** The scores of a last token and the new states: [1, width], [1, 1, words] twice. */
const predictor = (
  graph: ToyGraph,
  layout: ToneLayout,
  ids: Ids,
  width: number,
  states: readonly [string, string],
) => {
  const targets = graph.op("Reshape", ["targets", graph.ints(1)])
  const row = (values: Float32Array, columns: number) =>
    graph.op("Gather", [graph.constant("float32", [ids.size, columns], values), targets])
  const complete = new Set([...ids.caps, ...ids.rests])
  const words = [ids.caps, ids.starts, ids.rests]
  const perToken = (of: (token: number) => number) =>
    row(
      matrix(ids.size, count, (token) => of(token)),
      count,
    )
  const flat = states.map((name) => graph.op("Reshape", [name, graph.ints(1, count)]))
  const counted = graph.op("Mul", [
    graph.op("Add", [flat[0]!, perToken((token) => (complete.has(token) ? 1 : 0))]),
    perToken((token) => (token === ids.mark ? 0 : 1)),
  ])
  const said = graph.op("Add", [
    graph.op("Mul", [flat[1]!, perToken((token) => (token === ids.mark ? 1 : 0))]),
    row(
      matrix(ids.size, count, (token, word) => (words.some((run) => run[word] === token) ? 1 : 0)),
      count,
    ),
  ])
  const marks = graph.constant(
    "float32",
    [count, width],
    matrix(count, width, (word, token) => (word === 0 && token === ids.mark ? 100 : 0)),
  )
  const silenced = graph.constant(
    "float32",
    [count, width],
    matrix(count, width, (word, token) =>
      token === ids.caps[word] || token === ids.starts[word] ? never : 0,
    ),
  )
  const scores = [
    row(after(layout, ids, width), width),
    graph.op("MatMul", [counted, marks]),
    graph.op("MatMul", [said, silenced]),
  ]
  const shaped = (name: string) => graph.op("Reshape", [name, graph.ints(1, 1, count)])
  return {
    scores: scores.reduce((a, b) => graph.op("Add", [a, b])),
    next: [shaped(counted), shaped(said)] as const,
  }
}

const stateShape = [1, "batch", count] as const

const fusedDecoder = (layout: ToneLayout): ToyGraph => {
  const graph = new ToyGraph()
  const ids = idsOf(layout)
  const width = ids.size + (layout === "tdt" ? durations : 0)
  const column = graph.input("encoder_outputs", "float32", ["batch", count, 1])
  graph.input("targets", "int32", ["batch", 1])
  graph.input("target_length", "int32", ["batch"])
  const states = [
    graph.input("input_states_1", "float32", stateShape),
    graph.input("input_states_2", "float32", stateShape),
  ] as const
  const { next, scores } = predictor(graph, layout, ids, width, states)
  const heard = graph.op("MatMul", [
    graph.op("Reshape", [column, graph.ints(1, count)]),
    graph.constant("float32", [count, width], hearing(layout, ids, width)),
  ])
  graph.output(
    "outputs",
    "float32",
    ["batch", 1, 1, width],
    graph.op("Reshape", [graph.op("Add", [heard, scores]), graph.ints(1, 1, 1, width)]),
  )
  graph.output("prednet_lengths", "int32", ["batch"], "target_length")
  graph.output("output_states_1", "float32", stateShape, next[0])
  graph.output("output_states_2", "float32", stateShape, next[1])
  return graph
}

const separateDecoder = (layout: "genai" | "sherpa"): ToyGraph => {
  const graph = new ToyGraph()
  const ids = idsOf(layout)
  const isGenai = layout === "genai"
  graph.input("targets", isGenai ? "int64" : "int32", ["batch", 1])
  if (!isGenai) graph.input("target_length", "int32", ["batch"])
  const states = [
    graph.input(isGenai ? "h_in" : "states.1", "float32", stateShape),
    graph.input(isGenai ? "c_in" : "onnx::Slice_3", "float32", stateShape),
  ] as const
  const { next, scores } = predictor(graph, layout, ids, ids.size, states)
  graph.output(
    isGenai ? "decoder_output" : "outputs",
    "float32",
    ["batch", ids.size, 1],
    graph.op("Reshape", [scores, graph.ints(1, ids.size, 1)]),
  )
  if (!isGenai) graph.output("prednet_lengths", "int32", ["batch"], "target_length")
  graph.output(isGenai ? "h_out" : "states", "float32", stateShape, next[0])
  graph.output(isGenai ? "c_out" : "162", "float32", stateShape, next[1])
  return graph
}

const joiner = (layout: "genai" | "sherpa" | "zipformer"): ToyGraph => {
  const graph = new ToyGraph()
  const ids = idsOf(layout)
  const shapes = {
    genai: (size: number) => [1, 1, size],
    sherpa: (size: number) => ["batch", size, 1],
    zipformer: (size: number) => ["N", size],
  }
  const s = layout === "sherpa" ? "s" : ""
  const names =
    layout === "zipformer" ? ["encoder_out", "decoder_out"] : [`encoder_output${s}`, `decoder_output${s}`]
  const column = graph.input(names[0]!, "float32", shapes[layout](count))
  const predicted = graph.input(names[1]!, "float32", shapes[layout](ids.size))
  const heard = graph.op("MatMul", [
    graph.op("Reshape", [column, graph.ints(1, count)]),
    graph.constant("float32", [count, ids.size], hearing(layout, ids, ids.size)),
  ])
  const sum = graph.op("Add", [heard, graph.op("Reshape", [predicted, graph.ints(1, ids.size)])])
  if (layout === "zipformer") graph.output("logit", "float32", ["N", ids.size], sum)
  else
    graph.output(
      layout === "genai" ? "joint_output" : "outputs",
      "float32",
      ["batch", 1, 1, ids.size],
      graph.op("Reshape", [sum, graph.ints(1, 1, 1, ids.size)]),
    )
  return graph
}

/** After the first word comes "!": the token before the last one is still blank. */
const contextDecoder = (): ToyGraph => {
  const graph = new ToyGraph()
  const ids = idsOf("zipformer")
  const y = graph.input("y", "int64", ["N", 2])
  const table = (values: Float32Array, from: number) =>
    graph.op("Gather", [
      graph.constant("float32", [ids.size, ids.size], values),
      graph.op("Reshape", [slice(graph, y, from, from + 1, 1), graph.ints(1)]),
    ])
  const first = matrix(ids.size, ids.size, (before, token) =>
    before === ids.blank && token === ids.mark ? -200 * never : 0,
  )
  const last = after("zipformer", ids, ids.size)
  // Only a capital may be followed by the mark.
  for (let id = 0; id < ids.size; id++)
    last[id * ids.size + ids.mark] = ids.caps.includes(id) ? 150 * never : 1_000 * never
  graph.output("decoder_out", "float32", ["N", ids.size], graph.op("Add", [table(first, 0), table(last, 1)]))
  return graph
}

// ------------------------------------------------------------ files

export interface ToneEars {
  readonly folder: string
  readonly spec: EngineSpec
  readonly pieces: ReadonlyArray<string>
  /** Samples of a chunk; undefined for the offline model. */
  readonly chunkSamples: number | undefined
}

export interface ToneOptions {
  readonly layout: ToneLayout
  /** Of a NeMo streaming export, milliseconds. */
  readonly chunkMs?: number
  readonly options?: Readonly<Record<string, unknown>>
  readonly folder?: string
}

export const toneEars = ({ chunkMs = 560, folder: given, layout, options = {} }: ToneOptions): ToneEars => {
  const folder = given ?? mkdtempSync(join(tmpdir(), "edgewise-tone-ears-"))
  const write = (name: string, data: string | Uint8Array) => {
    writeFileSync(join(folder, name), data)
    return join(folder, name)
  }
  const pieces = piecesOf(layout)
  const lines = pieces.map((piece, id) => `${piece} ${id}\n`).join("")
  const shift = chunkMs / 10
  const json = (value: object) => JSON.stringify(value)
  const files = ((): Record<string, string> => {
    switch (layout) {
      case "genai":
        return {
          encoder: write("encoder.onnx", streamingEncoder(layout, shift).encodeModel()),
          decoder: write("decoder.onnx", separateDecoder(layout).encodeModel()),
          joiner: write("joint.onnx", joiner(layout).encodeModel()),
          // Line number = id, without blank.
          vocabulary: write(
            "vocab.txt",
            pieces
              .slice(0, -1)
              .map((piece) => `${piece}\n`)
              .join(""),
          ),
          config: write(
            "genai_config.json",
            json({
              model: {
                type: "nemotron_speech",
                blank_id: pieces.length - 1,
                max_symbols_per_step: 10,
                encoder: { chunk_samples: shift * 160, left_context: left },
              },
            }),
          ),
          processor: write(
            "audio_processor_config.json",
            json({ sample_rate: 16_000, num_mels: 128, hop_length: 160 }),
          ),
        }
      case "parakeet-rs":
        return {
          encoder: write("encoder.onnx", streamingEncoder(layout, shift).encodeModel()),
          decoder: write("decoder_joint.onnx", fusedDecoder(layout).encodeModel()),
          vocabulary: write("vocab.txt", lines),
        }
      case "sherpa":
        return {
          encoder: write("encoder.int8.onnx", streamingEncoder(layout, shift).encodeModel()),
          decoder: write("decoder.int8.onnx", separateDecoder(layout).encodeModel()),
          joiner: write("joiner.int8.onnx", joiner(layout).encodeModel()),
          vocabulary: write("tokens.txt", lines),
        }
      case "tdt":
        return {
          encoder: write("encoder-model.onnx", offlineEncoder().encodeModel()),
          decoder: write("decoder_joint-model.onnx", fusedDecoder(layout).encodeModel()),
          vocabulary: write("vocab.txt", lines),
          config: write(
            "config.json",
            json({ model_type: "nemo-conformer-tdt", features_size: 128, subsampling_factor: 8 }),
          ),
        }
      case "zipformer":
        return {
          encoder: write("encoder-epoch-99-avg-1-chunk-16-left-128.onnx", zipformerEncoder().encodeModel()),
          decoder: write("decoder-epoch-99-avg-1-chunk-16-left-128.onnx", contextDecoder().encodeModel()),
          joiner: write("joiner-epoch-99-avg-1-chunk-16-left-128.onnx", joiner(layout).encodeModel()),
          vocabulary: write("tokens.txt", lines),
        }
    }
  })()
  return {
    folder,
    pieces,
    chunkSamples: layout === "tdt" ? undefined : layout === "zipformer" ? 5_120 : shift * 160,
    spec: { modelId: "ears", adapter: "transducer-onnx", files, options: { ...options }, threads: 1 },
  }
}

// ------------------------------------------------------------ audio

export interface SpokenTone {
  readonly word: number
  /** Seconds. */
  readonly start: number
  readonly seconds: number
}

const rateHz = 16_000

/** Tones with ramps of 10 ms, over a noise that is far below them. 16-bit values. */
export const toneAudio = (tones: ReadonlyArray<SpokenTone>, seconds: number, seed = 1): Int16Array => {
  const samples = new Float64Array(Math.round(seconds * rateHz))
  for (const { seconds: lasts, start, word } of tones) {
    const from = Math.round(start * rateHz)
    const length = Math.round(lasts * rateHz)
    for (let i = 0; i < length && from + i < samples.length; i++) {
      const ramp = Math.min(1, i / 160, (length - i) / 160)
      samples[from + i]! += 0.3 * ramp * Math.sin((2 * Math.PI * frequencies[word]! * i) / rateHz)
    }
  }
  let state = seed >>> 0
  return Int16Array.from(samples, (sample) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.round(32_767 * Math.max(-1, Math.min(1, sample))) + (state >>> 31)
  })
}

/** Words one after the other, none twice in a row. */
export const randomTones = (words: number, seed: number, pause = 0.3): ReadonlyArray<SpokenTone> => {
  let state = (seed * 7_919 + 1) >>> 0
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  const tones: Array<SpokenTone> = []
  let at = 0.2 + random()
  let last = -1
  /** All words before one comes again: features that are divided by their deviation need each of them. */
  let left: Array<number> = []
  for (let i = 0; i < words; i++) {
    if (left.length === 0) left = Array.from(toneWords, (_, word) => word)
    const others = left.filter((word) => word !== last)
    const word = others[Math.floor(random() * others.length)] ?? left[0]!
    left.splice(left.indexOf(word), 1)
    last = word
    const seconds = 0.15 + 0.2 * random()
    tones.push({ word, start: at, seconds })
    // Now and then a longer pause.
    at += seconds + pause + 0.3 * random() + (random() < 0.1 ? 1.5 : 0)
  }
  return tones
}

export const endOf = (tones: ReadonlyArray<SpokenTone>): number => {
  const last = tones.at(-1)
  return last === undefined ? 0 : last.start + last.seconds
}
