// The layers of Kokoro's graph: convolutions, adaptive normalisation, recurrent layers. All weights are random, scaled so
// that signals keep their size.
import type { Graph } from "../onnx/Graph.ts"
import { normal } from "../onnx/Matrices.ts"

/** Random weights of that name, scaled so that a sum of `fanIn` inputs of deviation 1 has deviation 1. */
export const random = (
  graph: Graph,
  name: string,
  dims: ReadonlyArray<number>,
  fanIn: number,
  gain = 1,
): string =>
  graph.floats(name, dims, () =>
    normal(
      name,
      dims.reduce((product, dim) => product * dim, 1),
      gain / Math.sqrt(fanIn),
    ),
  )

export const filled = (graph: Graph, name: string, dims: ReadonlyArray<number>, value: number): string =>
  graph.floats(name, dims, () =>
    new Float32Array(dims.reduce((product, dim) => product * dim, 1)).fill(value),
  )

interface ConvOptions {
  readonly from: number
  readonly to: number
  readonly kernel: number
  readonly stride?: number
  readonly dilation?: number
  readonly padding?: number
  readonly gain?: number
}

/** A convolution from [batch, from, n] to [batch, to, …]. */
export const conv = (graph: Graph, x: string, name: string, options: ConvOptions): string => {
  const {
    dilation = 1,
    from,
    gain,
    kernel,
    padding = ((kernel - 1) / 2) * dilation,
    stride = 1,
    to,
  } = options
  const weight = random(graph, `${name}.weight`, [to, from, kernel], from * kernel, gain)
  return graph.op("Conv", [x, weight, filled(graph, `${name}.bias`, [to], 0)], {
    dilations: [dilation],
    group: 1,
    kernel_shape: [kernel],
    pads: [padding, padding],
    strides: [stride],
  })
}

interface UpsampleOptions {
  readonly from: number
  readonly to: number
  readonly kernel: number
  readonly stride: number
  readonly padding: number
  readonly group?: number
  readonly extra?: number
}

/** A transposed convolution, which multiplies the number of frames by `stride`. */
export const upsample = (graph: Graph, x: string, name: string, options: UpsampleOptions): string => {
  const { extra = 0, from, group = 1, kernel, padding, stride, to } = options
  const fanIn = (from / group) * (kernel / stride)
  const weight = random(graph, `${name}.weight`, [from, to / group, kernel], fanIn)
  return graph.op("ConvTranspose", [x, weight, filled(graph, `${name}.bias`, [to], 0)], {
    dilations: [1],
    group,
    kernel_shape: [kernel],
    output_padding: [extra],
    pads: [padding, padding],
    strides: [stride],
  })
}

/** A linear layer from [.., from] to [.., to]. */
export const linear = (
  graph: Graph,
  x: string,
  name: string,
  from: number,
  to: number,
  more: { readonly gain?: number; readonly bias?: number } = {},
): string => {
  const product = graph.op("MatMul", [x, random(graph, `${name}.weight`, [from, to], from, more.gain)])
  return graph.op("Add", [product, filled(graph, `${name}.bias`, [to], more.bias ?? 0)])
}

export const leaky = (graph: Graph, x: string, slope: number): string =>
  graph.op("LeakyRelu", [x], { alpha: { float: slope } })

export const swapped = (graph: Graph, x: string): string => graph.op("Transpose", [x], { perm: [0, 2, 1] })

const styleSize = 128

/** Scale and shift, [1, channels] each, that a style gives. */
const styled = (graph: Graph, style: string, name: string, channels: number): readonly [string, string] => {
  const both = linear(graph, style, `${name}.fc`, styleSize, 2 * channels, { gain: 0.1 })
  const parts = [graph.fresh("scale"), graph.fresh("shift")] as const
  graph.op("Split", [both, graph.ints(channels, channels)], { axis: 1 }, parts)
  return [graph.op("Add", [parts[0], graph.scalar(1)]), parts[1]]
}

/** Instance normalisation of [1, channels, n] whose scale and shift come from the style. */
export const adaptive = (graph: Graph, x: string, style: string, name: string, channels: number): string => {
  const [scale, shift] = styled(graph, style, name, channels).map((each) =>
    graph.op("Unsqueeze", [each, graph.ints(2)]),
  ) as [string, string]
  const ones = filled(graph, `${name}.norm.weight`, [channels], 1)
  const zeros = filled(graph, `${name}.norm.bias`, [channels], 0)
  const normed = graph.op("InstanceNormalization", [x, ones, zeros], { epsilon: { float: 1e-5 } })
  return graph.op("Add", [graph.op("Mul", [normed, scale]), shift])
}

export const layerNorm = (graph: Graph, x: string, name: string, width: number): string =>
  graph.op(
    "LayerNormalization",
    [x, filled(graph, `${name}.weight`, [width], 1), filled(graph, `${name}.bias`, [width], 0)],
    { axis: -1, epsilon: { float: 1e-5 } },
  )

/** Layer normalisation of [1, n, width] whose scale and shift come from the style. */
export const adaptiveLayerNorm = (
  graph: Graph,
  x: string,
  style: string,
  name: string,
  width: number,
): string => {
  const [scale, shift] = styled(graph, style, name, width)
  return graph.op("Add", [graph.op("Mul", [layerNorm(graph, x, name, width), scale]), shift])
}

/** A recurrent layer in both directions, 256 units each: [1, n, from] to [1, n, 512]. */
export const recurrent = (graph: Graph, x: string, name: string, from: number): string => {
  const hidden = 256
  const time = graph.op("Transpose", [x], { perm: [1, 0, 2] })
  const y = graph.op(
    "LSTM",
    [
      time,
      random(graph, `${name}.weight_ih`, [2, 4 * hidden, from], from),
      random(graph, `${name}.weight_hh`, [2, 4 * hidden, hidden], hidden),
      filled(graph, `${name}.bias`, [2, 8 * hidden], 0),
    ],
    { direction: "bidirectional", hidden_size: hidden },
  )
  // [n, direction, 1, hidden]
  const turned = graph.op("Transpose", [y], { perm: [2, 0, 1, 3] })
  return graph.op("Reshape", [turned, graph.ints(1, -1, 2 * hidden)])
}
