// Random weights of the shapes of Silero VAD 5 and Smart Turn 3, in graphs with the published names. Generated once and cached. What they say of
// audio means nothing; what a call costs is that of the published models, as far as every layer is present at its size: Silero's at 16 kHz
// without its second rate, and Smart Turn's with 8 bits a weight (its activations are quantised at each call, where the published graph has fixed
// scales).
import { join } from "node:path"
import { cachedFolder } from "../Cache.ts"
import { Graph } from "../onnx/Graph.ts"
import { convolved, type Matrix, normal } from "../onnx/Matrices.ts"
import { writeModel } from "../onnx/ModelFile.ts"
import { attend, type Blocks, gelu, inHeads, layerNorm, noBias, project, reading } from "../whisper/Blocks.ts"

export const detectionSizes = ["silero-vad", "smart-turn"] as const
export type DetectionSize = (typeof detectionSizes)[number]

/** Increase it with every change that makes other bytes of the same shape. */
const recipeVersion = 1

// ------------------------------------------------------------ Silero VAD

const stateWidth = 128
/** Of the spectrum: 129 magnitudes of windows of 256 samples, every 128. */
const [bins, window, hop] = [129, 256, 128]
/** Channels in and out of each convolution over four frames, and its stride: one frame is left. */
const convolutions = [
  [bins, 128, 1],
  [128, 64, 2],
  [64, 64, 2],
  [64, 128, 1],
] as const

const zeros = (graph: Graph, name: string, dims: ReadonlyArray<number>): string =>
  graph.floats(name, dims, () => new Float32Array(dims.reduce((size, dim) => size * dim, 1)))

const random = (graph: Graph, name: string, dims: ReadonlyArray<number>): string => {
  const size = dims.reduce((product, dim) => product * dim, 1)
  return graph.floats(name, dims, () => normal(name, size, 1 / Math.sqrt(size / dims[0]!)))
}

const sileroGraph = (): Graph => {
  const graph = new Graph()
  const input = graph.input("input", "float32", ["batch", "samples"])
  const state = graph.input("state", "float32", [2, "batch", stateWidth])
  graph.input("sr", "int64", [])
  const padded = graph.op("Pad", [input, graph.ints(0, 0, 0, 64)], { mode: "reflect" })
  const spectrum = graph.op(
    "Conv",
    [graph.op("Unsqueeze", [padded, graph.ints(1)]), random(graph, "stft.weight", [2 * bins, 1, window])],
    { kernel_shape: [window], strides: [hop] },
  )
  const part = (from: number) =>
    graph.op("Slice", [spectrum, graph.ints(from), graph.ints(from + bins), graph.ints(1)])
  const [real, imaginary] = [part(0), part(bins)]
  let x = graph.op("Sqrt", [
    graph.op("Add", [graph.op("Mul", [real, real]), graph.op("Mul", [imaginary, imaginary])]),
  ])
  for (const [i, [from, to, stride]] of convolutions.entries()) {
    const weight = random(graph, `encoder.${i}.weight`, [to, from, 3])
    x = graph.op("Conv", [x, weight, zeros(graph, `encoder.${i}.bias`, [to])], {
      kernel_shape: [3],
      pads: [1, 1],
      strides: [stride],
    })
    x = graph.op("Relu", [x])
  }
  const frame = graph.op("Transpose", [x], { perm: [2, 0, 1] })
  const half = (at: number) => graph.op("Slice", [state, graph.ints(at), graph.ints(at + 1), graph.ints(0)])
  const [next, cell] = [graph.fresh("h"), graph.fresh("c")] as const
  graph.op(
    "LSTM",
    [
      frame,
      random(graph, "rnn.weight_ih", [1, 4 * stateWidth, stateWidth]),
      random(graph, "rnn.weight_hh", [1, 4 * stateWidth, stateWidth]),
      zeros(graph, "rnn.bias", [1, 8 * stateWidth]),
      "",
      half(0),
      half(1),
    ],
    { hidden_size: stateWidth },
    ["", next, cell],
  )
  const weight = random(graph, "out.weight", [stateWidth, 1])
  const score = graph.op("Sigmoid", [
    graph.op("MatMul", [graph.op("Relu", [graph.op("Squeeze", [next, graph.ints(0)])]), weight]),
  ])
  graph.op("Identity", [score], {}, ["output"])
  graph.op("Concat", [next, cell], { axis: 0 }, ["stateN"])
  graph.output("output", "float32", ["batch", 1])
  graph.output("stateN", "float32", [2, "batch", stateWidth])
  return graph
}

// ------------------------------------------------------------ Smart Turn

/** Whisper tiny's encoder over 8 s. */
const [width, heads, layers, melBins, frames] = [384, 6, 4, 80, 800]

const encoderLayer = (blocks: Blocks, x: string, name: string): string => {
  const { graph } = blocks
  const linear = (from: string, part: string, inputs: number, outputs: number) =>
    project(blocks, from, {
      name: `${name}.${part}`,
      from: inputs,
      to: outputs,
      deviation: reading,
      bias: noBias,
    })
  const normed = layerNorm(blocks, x, `${name}.self_attn_layer_norm`)
  const query = linear(normed, "q_proj", width, width)
  const key = inHeads(blocks, linear(normed, "k_proj", width, width))
  const value = inHeads(blocks, linear(normed, "v_proj", width, width))
  const between = graph.op("Add", [x, linear(attend(blocks, query, key, value), "out_proj", width, width)])
  const inner = gelu(
    blocks,
    linear(layerNorm(blocks, between, `${name}.final_layer_norm`), "fc1", width, 4 * width),
  )
  return graph.op("Add", [between, linear(inner, "fc2", 4 * width, width)])
}

const smartTurnGraph = (): Graph => {
  const graph = new Graph()
  const blocks: Blocks = { graph, precision: "uint8", width, heads }
  graph.input("input_features", "float32", ["batch_size", melBins, frames])
  const convolution = (x: string, name: string, from: number, stride: number) => {
    const matrix: Matrix = { name: `${name}.weight`, dims: [width, from, 3], deviation: reading }
    const product = convolved(graph, x, matrix, "float32", {
      kernel_shape: [3],
      pads: [1, 1],
      strides: [stride],
    })
    return gelu(blocks, graph.op("Add", [product, zeros(graph, `${name}.bias`, [1, width, 1])]))
  }
  const heard = convolution(convolution("input_features", "conv1", melBins, 1), "conv2", width, 2)
  let x = graph.op("Add", [
    graph.op("Transpose", [heard], { perm: [0, 2, 1] }),
    random(graph, "embed_positions.weight", [frames / 2, width]),
  ])
  for (let layer = 0; layer < layers; layer++) x = encoderLayer(blocks, x, `layers.${layer}`)
  const last = layerNorm(blocks, x, "layer_norm")
  const linear = (from: string, name: string, inputs: number, outputs: number) =>
    project(blocks, from, { name, from: inputs, to: outputs, deviation: 0.05, bias: noBias })
  // Attention over the frames, then three layers.
  const scores = linear(graph.op("Tanh", [linear(last, "pool.0", width, 256)]), "pool.1", 256, 1)
  const weights = graph.op("Softmax", [scores], { axis: 1 })
  const pooled = graph.op("ReduceSum", [graph.op("Mul", [last, weights]), graph.ints(1)], { keepdims: 0 })
  const first = gelu(blocks, linear(pooled, "classifier.0", width, 256))
  const second = gelu(blocks, linear(first, "classifier.1", 256, 64))
  graph.op("Sigmoid", [linear(second, "classifier.2", 64, 1)], {}, ["logits"])
  graph.output("logits", "float32", ["batch_size", 1])
  return graph
}

// ------------------------------------------------------------ files

const files = {
  "silero-vad": { name: "silero_vad.onnx", graph: sileroGraph },
  "smart-turn": { name: "smart-turn-v3.2-cpu.onnx", graph: smartTurnGraph },
} as const

/** The folder of the graph. A missing one is generated first. */
export const detectionWeights = (size: DetectionSize): Promise<string> =>
  cachedFolder({
    name: size,
    recipe: { recipeVersion },
    fill: (folder) => writeModel(join(folder, files[size].name), files[size].graph()),
  })

/** The path of the graph, by its role in a catalog entry. */
export const detectionFiles = async (size: DetectionSize) => ({
  model: join(await detectionWeights(size), files[size].name),
})
