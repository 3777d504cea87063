// Random weights of the shape of Nemotron streaming 0.6 B in the layout of sherpa-onnx: a cache-aware FastConformer of 24 layers and width 1,024,
// chunks of 560 ms, 8 or 4 bits a weight, an LSTM predictor and a joint network over 1,025 pieces. Generated once and cached.
//
// Every product of the published model is there at its size. Simplified: pointwise convolutions are products, the table of relative positions is
// random, and blank is favoured so that a frame in ten or so emits a piece. What it writes means nothing.
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { cachedFolder } from "../Cache.ts"
import { Graph } from "../onnx/Graph.ts"
import { normal, type ProductPrecision } from "../onnx/Matrices.ts"
import { writeModel } from "../onnx/ModelFile.ts"
import { layerNorm, noBias, type ProductBlocks, project, reading } from "../whisper/Blocks.ts"

export const transducerSizes = ["0.6b-int8", "0.6b-int4"] as const
export type TransducerSize = (typeof transducerSizes)[number]

/** Increase it with every change that makes other bytes of the same shape. */
const recipeVersion = 1

/** Of the products; everything else is float32. */
const precisions: Readonly<Record<TransducerSize, ProductPrecision>> = {
  "0.6b-int8": "uint8",
  "0.6b-int4": "int4",
}
const [layers, width, heads, inner] = [24, 1_024, 8, 4_096]
const headWidth = width / heads
/** Frames that the attention remembers, those of a chunk, and those of both. */
const [left, chunk] = [70, 7]
const seen = left + chunk
/** Feature frames of a call, and those of the encoder that they become, of which the first two are dropped. */
const [taken, subsampled] = [65, 9]
const bins = 128
const kernel = 9
const positions = seen + chunk - 1
const channels = 256

const zeros = (graph: Graph, name: string, dims: ReadonlyArray<number>): string =>
  graph.floats(name, dims, () => new Float32Array(dims.reduce((size, dim) => size * dim, 1)))

const random = (graph: Graph, name: string, dims: ReadonlyArray<number>, deviation: number): string =>
  graph.floats(name, dims, () =>
    normal(
      name,
      dims.reduce((size, dim) => size * dim, 1),
      deviation,
    ),
  )

const slice = (graph: Graph, x: string, from: number, to: number, axis: number): string =>
  graph.op("Slice", [x, graph.ints(from), graph.ints(to), graph.ints(axis)])

const end = 2 ** 31 - 1

const linear = (blocks: ProductBlocks, x: string, name: string, from: number, to: number): string =>
  project(blocks, x, { name, from, to, deviation: reading, bias: noBias })

const swish = (graph: Graph, x: string): string => graph.op("Mul", [x, graph.op("Sigmoid", [x])])

/** Features [B, 128, 65] → [B, 7, 1024]: three convolutions of stride 2, two of them by channel. */
const subsampling = (blocks: ProductBlocks, audio: string): string => {
  const { graph } = blocks
  const image = graph.op("Unsqueeze", [graph.op("Transpose", [audio], { perm: [0, 2, 1] }), graph.ints(1)])
  const strided = (x: string, name: string, from: number, group: number) =>
    graph.op(
      "Conv",
      [
        x,
        random(graph, `${name}.weight`, [channels, from / group, 3, 3], 0.1),
        zeros(graph, `${name}.bias`, [channels]),
      ],
      { kernel_shape: [3, 3], pads: [1, 1, 1, 1], strides: [2, 2], group },
    )
  const pointwise = (x: string, name: string) =>
    graph.op(
      "Conv",
      [
        x,
        random(graph, `${name}.weight`, [channels, channels, 1, 1], 0.06),
        zeros(graph, `${name}.bias`, [channels]),
      ],
      { kernel_shape: [1, 1] },
    )
  let x = graph.op("Relu", [strided(image, "pre.0", 1, 1)])
  for (const i of [1, 2])
    x = graph.op("Relu", [pointwise(strided(x, `pre.${i}.depth`, channels, channels), `pre.${i}.point`)])
  const rows = graph.op("Reshape", [
    graph.op("Transpose", [x], { perm: [0, 2, 1, 3] }),
    graph.ints(0, subsampled, (channels * bins) / 8),
  ])
  return slice(
    graph,
    linear(blocks, rows, "pre.out", (channels * bins) / 8, width),
    subsampled - chunk,
    end,
    1,
  )
}

const feedForward = (blocks: ProductBlocks, x: string, name: string): string => {
  const { graph } = blocks
  const hidden = swish(
    graph,
    linear(blocks, layerNorm(blocks, x, `${name}.norm`), `${name}.linear1`, width, inner),
  )
  const out = linear(blocks, hidden, `${name}.linear2`, inner, width)
  return graph.op("Add", [x, graph.op("Mul", [out, graph.scalar(0.5)])])
}

const inHeads = (graph: Graph, x: string): string =>
  graph.op("Transpose", [graph.op("Reshape", [x, graph.ints(0, -1, heads, headWidth)])], {
    perm: [0, 2, 1, 3],
  })

interface Attended {
  readonly x: string
  readonly cache: string
}

/** Relative-position attention to the frames of the cache and of the chunk. `table`: [1, positions, width]. */
const attention = (
  blocks: ProductBlocks,
  x: string,
  cache: string,
  mask: string,
  table: string,
  name: string,
): Attended => {
  const { graph } = blocks
  const normed = layerNorm(blocks, x, `${name}.norm`)
  const all = graph.op("Concat", [cache, normed], { axis: 1 })
  const query = linear(blocks, normed, `${name}.q`, width, width)
  const biased = (which: string) =>
    inHeads(graph, graph.op("Add", [query, random(graph, `${name}.bias_${which}`, [1, 1, width], reading)]))
  const key = inHeads(graph, linear(blocks, all, `${name}.k`, width, width))
  const value = inHeads(graph, linear(blocks, all, `${name}.v`, width, width))
  const place = inHeads(
    graph,
    project(blocks, table, { name: `${name}.pos`, from: width, to: width, deviation: reading }),
  )
  const turned = (matrix: string) => graph.op("Transpose", [matrix], { perm: [0, 1, 3, 2] })
  const content = graph.op("MatMul", [biased("u"), turned(key)])
  const moved = graph.op("Pad", [
    graph.op("MatMul", [biased("v"), turned(place)]),
    graph.ints(0, 0, 0, 1, 0, 0, 0, 0),
  ])
  const shifted = graph.op("Reshape", [
    slice(graph, graph.op("Reshape", [moved, graph.ints(0, 0, positions + 1, chunk)]), 1, end, 2),
    graph.ints(0, 0, chunk, positions),
  ])
  const scores = graph.op("Mul", [
    graph.op("Add", [content, slice(graph, shifted, 0, seen, 3)]),
    graph.scalar(headWidth ** -0.5),
  ])
  const shares = graph.op("Softmax", [graph.op("Add", [scores, mask])], { axis: -1 })
  const mixed = graph.op("Reshape", [
    graph.op("Transpose", [graph.op("MatMul", [shares, value])], { perm: [0, 2, 1, 3] }),
    graph.ints(0, -1, width),
  ])
  return {
    x: graph.op("Add", [x, linear(blocks, mixed, `${name}.out`, width, width)]),
    cache: slice(graph, all, chunk, end, 1),
  }
}

const convolution = (blocks: ProductBlocks, x: string, cache: string, name: string): Attended => {
  const { graph } = blocks
  const doubled = linear(blocks, layerNorm(blocks, x, `${name}.norm`), `${name}.pointwise1`, width, 2 * width)
  const gated = graph.op("Mul", [
    slice(graph, doubled, 0, width, 2),
    graph.op("Sigmoid", [slice(graph, doubled, width, end, 2)]),
  ])
  const all = graph.op("Concat", [cache, graph.op("Transpose", [gated], { perm: [0, 2, 1] })], { axis: 2 })
  const deep = graph.op(
    "Conv",
    [
      all,
      random(graph, `${name}.depth.weight`, [width, 1, kernel], 0.2),
      zeros(graph, `${name}.depth.bias`, [width]),
    ],
    { kernel_shape: [kernel], group: width },
  )
  const rows = swish(
    graph,
    layerNorm(blocks, graph.op("Transpose", [deep], { perm: [0, 2, 1] }), `${name}.inner_norm`),
  )
  return {
    x: graph.op("Add", [x, linear(blocks, rows, `${name}.pointwise2`, width, width)]),
    cache: slice(graph, all, -(kernel - 1), end, 2),
  }
}

const encoderGraph = (precision: ProductPrecision): Graph => {
  const graph = new Graph()
  const blocks: ProductBlocks = { graph, precision, width, heads }
  const audio = graph.input("audio_signal", "float32", ["B", bins, taken])
  graph.input("length", "int64", ["B"])
  const channel = graph.input("cache_last_channel", "float32", ["B", layers, left, width])
  const time = graph.input("cache_last_time", "float32", ["B", layers, width, kernel - 1])
  const length = graph.input("cache_last_channel_len", "int64", ["B"])
  // Frames of the cache that were not filled yet do not count.
  const first = graph.op("Unsqueeze", [
    graph.op("Sub", [graph.scalar(left, "int64"), length]),
    graph.ints(1, 2, 3),
  ])
  const order = graph.weight(
    "frames",
    "int64",
    [1, 1, 1, seen],
    () => new Uint8Array(BigInt64Array.from({ length: seen }, (_, i) => BigInt(i)).buffer),
  )
  const mask = graph.op("Where", [graph.op("Less", [order, first]), graph.scalar(-1e9), graph.scalar(0)])
  // Its beginning depends on an input, so that the products with it are computed in each call, as in the published graphs.
  const nothing = graph.op("Mul", [graph.op("ReduceMin", ["length"], { keepdims: 1 }), graph.ints(0)])
  const table = graph.op("Slice", [
    random(graph, "positions", [1, positions, width], 0.5),
    nothing,
    graph.op("Add", [nothing, graph.ints(positions)]),
    graph.ints(1),
  ])
  let x = subsampling(blocks, audio)
  const [channels, times]: [Array<string>, Array<string>] = [[], []]
  const ofLayer = (cache: string, layer: number) =>
    graph.op("Squeeze", [slice(graph, cache, layer, layer + 1, 1), graph.ints(1)])
  for (let layer = 0; layer < layers; layer++) {
    const name = `layers.${layer}`
    x = feedForward(blocks, x, `${name}.ff1`)
    const attended = attention(blocks, x, ofLayer(channel, layer), mask, table, `${name}.attn`)
    const convolved = convolution(blocks, attended.x, ofLayer(time, layer), `${name}.conv`)
    x = layerNorm(blocks, feedForward(blocks, convolved.x, `${name}.ff2`), `${name}.norm_out`)
    channels.push(graph.op("Unsqueeze", [attended.cache, graph.ints(1)]))
    times.push(graph.op("Unsqueeze", [convolved.cache, graph.ints(1)]))
  }
  graph.op("Transpose", [x], { perm: [0, 2, 1] }, ["outputs"])
  const frames = graph.op("Add", [graph.op("Mul", ["length", graph.ints(0)]), graph.ints(chunk)])
  graph.op("Identity", [frames], {}, ["encoded_lengths"])
  graph.op("Concat", channels, { axis: 1 }, ["cache_last_channel_next"])
  graph.op("Concat", times, { axis: 1 }, ["cache_last_time_next"])
  const filled = graph.op("Min", [graph.op("Add", [length, graph.ints(chunk)]), graph.ints(left)])
  graph.op("Identity", [filled], {}, ["cache_last_channel_next_len"])
  graph.output("outputs", "float32", ["B", width, chunk])
  graph.output("encoded_lengths", "int64", ["B"])
  graph.output("cache_last_channel_next", "float32", ["B", layers, left, width])
  graph.output("cache_last_time_next", "float32", ["B", layers, width, kernel - 1])
  graph.output("cache_last_channel_next_len", "int64", ["B"])
  return graph
}

// ------------------------------------------------------------ predictor and joint network

const [predicted, pieces] = [640, 1_025]
/** Added to the score of blank, in deviations of a score. */
const blankBias = 3.2

const decoderGraph = (): Graph => {
  const graph = new Graph()
  graph.input("targets", "int32", ["B", 1])
  graph.input("target_length", "int32", ["B"])
  const states = ["states.1", "onnx::Slice_3"].map((name) =>
    graph.input(name, "float32", [2, "B", predicted]),
  )
  let x = graph.op(
    "Transpose",
    [graph.op("Gather", [random(graph, "embed.weight", [pieces, predicted], 0.5), "targets"])],
    { perm: [1, 0, 2] },
  )
  const next: [Array<string>, Array<string>] = [[], []]
  for (const layer of [0, 1]) {
    const [y, h, c] = [graph.fresh("y"), graph.fresh("h"), graph.fresh("c")]
    graph.op(
      "LSTM",
      [
        x,
        random(graph, `lstm.${layer}.ih`, [1, 4 * predicted, predicted], 0.04),
        random(graph, `lstm.${layer}.hh`, [1, 4 * predicted, predicted], 0.04),
        zeros(graph, `lstm.${layer}.bias`, [1, 8 * predicted]),
        "",
        slice(graph, states[0]!, layer, layer + 1, 0),
        slice(graph, states[1]!, layer, layer + 1, 0),
      ],
      { hidden_size: predicted },
      [y, h, c],
    )
    next[0].push(h)
    next[1].push(c)
    x = graph.op("Squeeze", [y, graph.ints(1)])
  }
  graph.op("Transpose", [x], { perm: [1, 2, 0] }, ["outputs"])
  graph.op("Identity", ["target_length"], {}, ["prednet_lengths"])
  graph.op("Concat", next[0], { axis: 0 }, ["states"])
  graph.op("Concat", next[1], { axis: 0 }, ["162"])
  graph.output("outputs", "float32", ["B", predicted, 1])
  graph.output("prednet_lengths", "int32", ["B"])
  graph.output("states", "float32", [2, "B", predicted])
  graph.output("162", "float32", [2, "B", predicted])
  return graph
}

const joinerGraph = (precision: ProductPrecision): Graph => {
  const graph = new Graph()
  const blocks: ProductBlocks = { graph, precision, width, heads }
  const side = (name: string, from: number, deviation: number) => {
    const column = graph.input(name, "float32", ["B", from, 1])
    return project(blocks, graph.op("Transpose", [column], { perm: [0, 2, 1] }), {
      name: `${name}.weight`,
      from,
      to: predicted,
      deviation,
      bias: noBias,
    })
  }
  const sum = graph.op("Add", [
    side("encoder_outputs", width, 1 / 32),
    side("decoder_outputs", predicted, 0.2),
  ])
  const scores = project(blocks, graph.op("Relu", [sum]), {
    name: "joint.weight",
    from: predicted,
    to: pieces,
    deviation: 0.05,
    bias: (values) => {
      values[pieces - 1] = blankBias
    },
  })
  graph.op("Unsqueeze", [scores, graph.ints(1)], {}, ["logit"])
  graph.output("logit", "float32", ["B", 1, 1, pieces])
  return graph
}

/** Words of four letters; `▁` begins each second piece. The last is blank. */
const tokens = Array.from({ length: pieces }, (_, id) => {
  const letters = Array.from({ length: 4 }, (_, at) =>
    String.fromCharCode(97 + (Math.floor(id / 26 ** at) % 26)),
  )
  return `${id === pieces - 1 ? "<blk>" : `${id % 2 === 0 ? "▁" : ""}${letters.join("")}`} ${id}`
}).join("\n")

// ------------------------------------------------------------ files

/** The files of the weights by their role in a catalog entry. Missing ones are generated first. */
export const transducerFiles = async (size: TransducerSize) => {
  const folder = await transducerWeights(size)
  const graph = (name: string) => join(folder, graphFile(name, size))
  return {
    encoder: graph("encoder"),
    decoder: graph("decoder"),
    joiner: graph("joiner"),
    vocabulary: join(folder, "tokens.txt"),
  }
}

const graphFile = (name: string, size: TransducerSize): string => `${name}.${size.split("-")[1]}.onnx`

/** The folder of the weights. Missing ones are generated first. */
export const transducerWeights = (size: TransducerSize): Promise<string> =>
  cachedFolder({
    name: `transducer-${size}`,
    recipe: { recipeVersion },
    fill: async (folder) => {
      const graphs = {
        encoder: encoderGraph(precisions[size]),
        decoder: decoderGraph(),
        joiner: joinerGraph(precisions[size]),
      }
      for (const [name, graph] of Object.entries(graphs))
        await writeModel(join(folder, graphFile(name, size)), graph)
      await writeFile(join(folder, "tokens.txt"), tokens)
    },
  })
