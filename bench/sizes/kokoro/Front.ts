// The text half of Kokoro: PL-BERT, text encoder, durations, pitch and loudness.
import type { Graph } from "../onnx/Graph.ts"
import {
  adaptive,
  adaptiveLayerNorm,
  conv,
  layerNorm,
  leaky,
  linear,
  random,
  recurrent,
  swapped,
  upsample,
} from "./Layers.ts"

const allSymbols = 178
const modelWidth = 512

/** PL-BERT is an ALBERT: one layer of width 768 applied twelve times, embeddings of width 128. */
const bert = { layers: 12, width: 768, heads: 12, hidden: 2_048, embedding: 128, positions: 512 }

const bertLayer = (graph: Graph, x: string): string => {
  const { heads, hidden, width } = bert
  const inHeads = (name: string): string => {
    const projected = linear(graph, x, `bert.${name}`, width, width)
    const split = graph.op("Reshape", [projected, graph.ints(0, -1, heads, width / heads)])
    return graph.op("Transpose", [split], { perm: [0, 2, 1, 3] })
  }
  const keys = graph.op("Transpose", [inHeads("key")], { perm: [0, 1, 3, 2] })
  const scores = graph.op("Mul", [
    graph.op("MatMul", [inHeads("query"), keys]),
    graph.scalar((width / heads) ** -0.5),
  ])
  const mixed = graph.op("MatMul", [graph.op("Softmax", [scores], { axis: -1 }), inHeads("value")])
  const joined = graph.op("Reshape", [
    graph.op("Transpose", [mixed], { perm: [0, 2, 1, 3] }),
    graph.ints(0, -1, width),
  ])
  const attended = linear(graph, joined, "bert.dense", width, width)
  const middle = layerNorm(graph, graph.op("Add", [x, attended]), "bert.attention_norm", width)
  const first = linear(graph, middle, "bert.ffn", width, hidden)
  // The tanh form of GELU, which ALBERT uses.
  const cubed = graph.op("Mul", [graph.op("Mul", [first, first]), first])
  const inner = graph.op("Add", [first, graph.op("Mul", [cubed, graph.scalar(0.044715)])])
  const bent = graph.op("Tanh", [graph.op("Mul", [inner, graph.scalar(Math.sqrt(2 / Math.PI))])])
  const gelu = graph.op("Mul", [
    graph.op("Mul", [first, graph.scalar(0.5)]),
    graph.op("Add", [bent, graph.scalar(1)]),
  ])
  const second = linear(graph, gelu, "bert.ffn_output", hidden, width)
  return layerNorm(graph, graph.op("Add", [middle, second]), "bert.full_norm", width)
}

/** Encodes symbol ids as [1, n, 512]. */
export const readSymbols = (graph: Graph, ids: string): string => {
  const { embedding, layers, positions, width } = bert
  const symbols = graph.op("Gather", [random(graph, "bert.word_embeddings", [allSymbols, embedding], 1), ids])
  const length = graph.op("Shape", [ids], { start: 1, end: 2 })
  const places = graph.op("Slice", [
    random(graph, "bert.position_embeddings", [positions, embedding], 1),
    graph.ints(0),
    length,
    graph.ints(0),
  ])
  const normed = layerNorm(graph, graph.op("Add", [symbols, places]), "bert.embedding_norm", embedding)
  let x = linear(graph, normed, "bert.mapping", embedding, width)
  for (let layer = 0; layer < layers; layer++) x = bertLayer(graph, x)
  return linear(graph, x, "bert_encoder", width, modelWidth)
}

/** [1, 512, n]: acoustic features of the symbols. */
export const textEncoder = (graph: Graph, ids: string): string => {
  const rows = graph.op("Gather", [random(graph, "text_encoder.embedding", [allSymbols, modelWidth], 1), ids])
  let x = swapped(graph, rows)
  for (let layer = 0; layer < 3; layer++) {
    const name = `text_encoder.cnn.${layer}`
    const convolved = swapped(graph, conv(graph, x, name, { from: modelWidth, to: modelWidth, kernel: 5 }))
    x = leaky(graph, swapped(graph, layerNorm(graph, convolved, `${name}.norm`, modelWidth)), 0.2)
  }
  return swapped(graph, recurrent(graph, swapped(graph, x), "text_encoder.lstm", modelWidth))
}

/** Appends the style to each of [1, n, 512]: [1, n, 640]. */
const besideStyle = (graph: Graph, x: string, style: string): string => {
  const length = graph.op("Shape", [x], { start: 1, end: 2 })
  const shape = graph.op("Concat", [graph.ints(1), length, graph.ints(128)], { axis: 0 })
  const spread = graph.op("Expand", [graph.op("Unsqueeze", [style, graph.ints(1)]), shape])
  return graph.op("Concat", [x, spread], { axis: 2 })
}

/** [1, n, 640], from which durations, pitch and loudness are predicted. */
export const prosody = (graph: Graph, read: string, style: string): string => {
  let x = besideStyle(graph, read, style)
  for (let layer = 0; layer < 3; layer++) {
    const name = `predictor.text_encoder.${layer}`
    const hidden = recurrent(graph, x, `${name}.lstm`, 640)
    x = besideStyle(graph, adaptiveLayerNorm(graph, hidden, style, `${name}.norm`, modelWidth), style)
  }
  return x
}

const durationSteps = 50
/** Mean frames (of 25 ms) of a symbol, which gives 15 symbols a second. */
const meanFrames = 2.67

/** [n] durations in frames of 25 ms. The random weights give mostly two to four. */
export const durations = (graph: Graph, prosodic: string, speed: string): string => {
  const hidden = recurrent(graph, prosodic, "predictor.lstm", 640)
  const share = meanFrames / durationSteps
  const steps = linear(graph, hidden, "predictor.duration_proj", modelWidth, durationSteps, {
    bias: Math.log(share / (1 - share)),
  })
  const sum = graph.op("ReduceSum", [graph.op("Sigmoid", [steps]), graph.ints(2)], { keepdims: 0 })
  const whole = graph.op("Round", [graph.op("Div", [sum, speed])])
  const atLeastOne = graph.op("Max", [whole, graph.scalar(1)])
  return graph.cast(graph.op("Squeeze", [atLeastOne, graph.ints(0)]), "int64")
}

/** [n, frames]: 1 where the frame belongs to the symbol. */
export const alignment = (graph: Graph, frames: string): string => {
  const ends = graph.op("CumSum", [frames, graph.scalar(0, "int64")])
  const begins = graph.op("Sub", [ends, frames])
  const total = graph.op("ReduceSum", [frames], { keepdims: 0 })
  const all = graph.op("Unsqueeze", [
    graph.op("Range", [graph.scalar(0, "int64"), total, graph.scalar(1, "int64")]),
    graph.ints(0),
  ])
  const column = (x: string) => graph.op("Unsqueeze", [x, graph.ints(1)])
  const inside = graph.op("And", [
    graph.op("GreaterOrEqual", [all, column(begins)]),
    graph.op("Less", [all, column(ends)]),
  ])
  return graph.cast(inside, "float32")
}

interface ResidualOptions {
  readonly from: number
  readonly to: number
  readonly twice?: boolean
}

/** A residual block: adaptive normalisation and two convolutions, plus a shortcut. `twice` doubles the frames. */
export const residual = (
  graph: Graph,
  x: string,
  style: string,
  name: string,
  { from, to, twice = false }: ResidualOptions,
): string => {
  const nearest = () =>
    graph.op(
      "Resize",
      [
        x,
        "",
        graph.op("Constant", [], { value: { tensor: { type: "float32", dims: [3], values: [1, 1, 2] } } }),
      ],
      {
        mode: "nearest",
        nearest_mode: "floor",
        coordinate_transformation_mode: "asymmetric",
      },
    )
  const wide = twice ? nearest() : x
  const shortcut = from === to ? wide : conv(graph, wide, `${name}.conv1x1`, { from, to, kernel: 1 })
  const first = leaky(graph, adaptive(graph, x, style, `${name}.norm1`, from), 0.2)
  const grown = twice
    ? upsample(graph, first, `${name}.pool`, {
        from,
        to: from,
        group: from,
        kernel: 3,
        stride: 2,
        padding: 1,
        extra: 1,
      })
    : first
  const middle = conv(graph, grown, `${name}.conv1`, { from, to, kernel: 3 })
  const second = leaky(graph, adaptive(graph, middle, style, `${name}.norm2`, to), 0.2)
  const last = conv(graph, second, `${name}.conv2`, { from: to, to, kernel: 3 })
  return graph.op("Mul", [graph.op("Add", [last, shortcut]), graph.scalar(Math.SQRT1_2)])
}

/** Pitch and loudness, [1, 1, 2 × frames] each. */
export const curves = (
  graph: Graph,
  expanded: string,
  style: string,
): readonly [pitch: string, loudness: string] => {
  const shared = swapped(graph, recurrent(graph, swapped(graph, expanded), "predictor.shared", 640))
  const curve = (name: string): string => {
    let x = residual(graph, shared, style, `predictor.${name}.0`, { from: modelWidth, to: modelWidth })
    x = residual(graph, x, style, `predictor.${name}.1`, { from: modelWidth, to: 256, twice: true })
    x = residual(graph, x, style, `predictor.${name}.2`, { from: 256, to: 256 })
    return conv(graph, x, `predictor.${name}_proj`, { from: 256, to: 1, kernel: 1 })
  }
  return [curve("F0"), curve("N")]
}
