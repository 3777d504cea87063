// The encoder graph of a Whisper shape: two convolutions, position embeddings, transformer layers, all of them at full
// size with random weights.
//
// The weights of five dimensions are set by hand, so that the decoder can find the end of the speech (see Script.ts):
// - SOUND: 64 channels of the first convolution compute the difference between a frame and the one before it in a mel band,
//   with both signs, so that the sum of their GELUs is a magnitude. The second convolution sums them. Silence of any level
//   and padding give 0.
// - TIME: rises with the position. In all other dimensions the position embeddings are the published sinusoids.
// - soundPattern: 0 without sound and the same value for any sound. The first layer's feed-forward block writes it.
// - SOUND_TIME: equals TIME where soundPattern is set, else 0. The second layer's feed-forward block writes it.
// - zero: always 0. After a layer norm it holds the mean that the norm subtracts; the other dimensions are read minus this one.
// No other weight writes these dimensions. The last layer norm divides by about the same number at every position,
// because the sinusoids make up most of the norm.
import { Graph } from "../onnx/Graph.ts"
import { convolved, type Matrix, type Precision } from "../onnx/Matrices.ts"
import {
  attend,
  type Blocks,
  clearColumn,
  type Edit,
  gelu,
  inHeads,
  layerNorm,
  noBias,
  project,
  reading,
  writing,
} from "./Blocks.ts"
import { melFrames, positions, type WhisperShape } from "./Shapes.ts"

const [SOUND, TIME, soundPattern, SOUND_TIME, zero] = [0, 1, 2, 3, 4]
const reserved = 5

/** Root mean square of the sinusoids, which is about the number that layer norm divides by. */
const norm = Math.SQRT1_2
/** TIME at the last position, before layer norm. */
const maxTime = 4
/** Approximate SOUND_TIME at the last position after the last layer norm. */
export const maxSoundTime = maxTime / norm
export const soundTimeDimension = SOUND_TIME
export const zeroDimension = zero

const detectorCount = 64
/** In speech a mel band changes by 0.05 to 0.2 from a frame to the next. The gain brings that to about 1, where GELU bends. */
const detectorGain = 10
/** In speech the detectors of three frames add up to 20 to 400. The gain scales this sum to 0.1 to 2. */
const soundGain = 0.005

const detectors = (values: Float32Array, melBins: number): void => {
  values.fill(0, 0, detectorCount * melBins * 3)
  for (let channel = 0; channel < detectorCount; channel++) {
    const band = Math.floor(((channel >> 1) * melBins) / (detectorCount / 2))
    const sign = channel % 2 === 0 ? detectorGain : -detectorGain
    values[(channel * melBins + band) * 3] = -sign
    values[(channel * melBins + band) * 3 + 1] = sign
  }
}

/** The channels of the second convolution are the dimensions of the layers. */
const soundChannels = (values: Float32Array, width: number): void => {
  values.fill(0, 0, reserved * width * 3)
  values.fill(soundGain, SOUND * width * 3, (SOUND * width + detectorCount) * 3)
}

const positionRows = (width: number): Float32Array => {
  const rows = new Float32Array(positions * width)
  const half = width / 2
  for (let position = 0; position < positions; position++) {
    for (let i = 0; i < half; i++) {
      const angle = position * Math.exp((-Math.log(10_000) * i) / (half - 1))
      rows[position * width + i] = Math.sin(angle)
      rows[position * width + half + i] = Math.cos(angle)
    }
    rows.fill(0, position * width, position * width + reserved)
    rows[position * width + TIME] = (maxTime * position) / positions
  }
  return rows
}

/** SOUND, after layer norm, at which soundPattern begins to rise, and how steeply it rises. */
const threshold = 0.1
const steepness = 20
/** soundPattern where there is sound, before layer norm. */
const soundFlag = 2
/** Input of a hidden unit: open where soundPattern is set and -open elsewhere. TIME is smaller, so it cannot change the sign. */
const open = 12
const perFlag = (2 * open * norm) / soundFlag

/** Weights of a feed-forward block that are set by hand. They use its first two hidden units. */
interface HandSet {
  /** Sets the input weights of the two units. */
  readonly reading: (values: Float32Array, columns: number) => void
  readonly bias: readonly [number, number]
  /** The dimension that the two units write: the difference of their outputs, times `perUnit`. */
  readonly writing: { readonly dimension: number; readonly perUnit: number }
  /** Largest absolute value that `reading` sets. */
  readonly most: number
}

/** GELU(z) - GELU(z - 4) is a step from 0 to 4. */
const hasSound: HandSet = {
  reading: (values, columns) => {
    for (const unit of [0, 1]) {
      values[SOUND * columns + unit] = steepness
      values[zero * columns + unit] = -steepness
    }
  },
  bias: [-steepness * threshold, -steepness * threshold - 4],
  writing: { dimension: soundPattern, perUnit: soundFlag / 4 },
  most: steepness,
}

/** GELU(time + z) - GELU(z) is the time where z is far above 0, and 0 where both arguments are far below 0. */
const soundTime: HandSet = {
  reading: (values, columns) => {
    for (const unit of [0, 1]) {
      values[soundPattern * columns + unit] = perFlag
      values[zero * columns + unit] = -perFlag
    }
    values[TIME * columns] = 1
    values[zero * columns] = -perFlag - 1
  },
  bias: [-open, -open],
  writing: { dimension: SOUND_TIME, perUnit: norm },
  most: perFlag + 1,
}

const handSetReading = (handSet: HandSet, columns: number): Edit => {
  return (values) => {
    clearColumn(values, columns, 0)
    clearColumn(values, columns, 1)
    handSet.reading(values, columns)
  }
}

const handSetWriting = ({ writing: { dimension, perUnit } }: HandSet, columns: number): Edit => {
  return (values) => {
    values.fill(0, 0, 2 * columns)
    values[dimension] = perUnit
    values[columns + dimension] = -perUnit
  }
}

/**
 * Standard deviation of the output weights of attention and feed-forward blocks. It is so small that all layers together change
 * the norm by about a fifth only, because SOUND_TIME is read after the last layer norm.
 */
const writingOf = ({ encoderLayers, width }: WhisperShape): number =>
  (0.003 * Math.sqrt(6 / encoderLayers) * 512) / width

export const encoderGraph = (shape: WhisperShape, precision: Precision): Graph => {
  const { encoderLayers, melBins, width } = shape
  const graph = new Graph()
  const blocks: Blocks = { graph, precision, width, heads: shape.heads }
  graph.input("input_features", "float32", ["batch_size", melBins, melFrames])
  const convolution = (x: string, matrix: Matrix, stride: number): string => {
    const product = convolved(graph, x, matrix, precision, {
      dilations: [1],
      group: 1,
      kernel_shape: [3],
      pads: [1, 1],
      strides: [stride],
    })
    const bias = graph.floats(
      `${matrix.name.replace(/weight$/, "bias")}`,
      [1, width, 1],
      () => new Float32Array(width),
    )
    return gelu(blocks, graph.op("Add", [product, bias]))
  }
  const first = convolution(
    "input_features",
    {
      name: "conv1.weight",
      dims: [width, melBins, 3],
      deviation: reading,
      most: detectorGain,
      edit: (values) => detectors(values, melBins),
    },
    1,
  )
  const second = convolution(
    first,
    {
      name: "conv2.weight",
      dims: [width, width, 3],
      deviation: 0.002,
      most: soundGain,
      edit: (values) => soundChannels(values, width),
    },
    2,
  )
  let x = graph.op("Add", [
    graph.op("Transpose", [second], { perm: [0, 2, 1] }),
    graph.floats("embed_positions.weight", [positions, width], () => positionRows(width)),
  ])
  for (let layer = 0; layer < encoderLayers; layer++) {
    const handSet = layer === 0 ? hasSound : layer === 1 ? soundTime : undefined
    x = encoderLayer(blocks, x, layer, writingOf(shape), handSet)
  }
  const last = layerNorm(blocks, x, "layer_norm")
  graph.op("Identity", [last], {}, ["last_hidden_state"])
  graph.output("last_hidden_state", "float32", ["batch_size", positions, width])
  return graph
}

const encoderLayer = (
  blocks: Blocks,
  x: string,
  layer: number,
  deviation: number,
  handSet: HandSet | undefined,
): string => {
  const { graph, width } = blocks
  const name = `layers.${layer}`
  const square = { from: width, to: width, deviation: reading }
  const normed = layerNorm(blocks, x, `${name}.self_attn_layer_norm`)
  const query = project(blocks, normed, { ...square, name: `${name}.self_attn.q_proj`, bias: noBias })
  const key = project(blocks, normed, { ...square, name: `${name}.self_attn.k_proj` })
  const value = project(blocks, normed, { ...square, name: `${name}.self_attn.v_proj`, bias: noBias })
  const mixed = attend(blocks, query, inHeads(blocks, key), inHeads(blocks, value))
  const attentionOutput = project(blocks, mixed, {
    ...square,
    ...writing(deviation, reserved, width),
    name: `${name}.self_attn.out_proj`,
    bias: noBias,
  })
  const between = graph.op("Add", [x, attentionOutput])
  const hidden = 4 * width
  const first = project(blocks, layerNorm(blocks, between, `${name}.final_layer_norm`), {
    name: `${name}.fc1`,
    from: width,
    to: hidden,
    deviation: reading,
    ...(handSet === undefined ? {} : { edit: handSetReading(handSet, hidden), most: handSet.most }),
    bias: (values) => values.set(handSet?.bias ?? []),
  })
  const random = writing(deviation, reserved, width)
  const second = project(blocks, gelu(blocks, first), {
    name: `${name}.fc2`,
    from: hidden,
    to: width,
    deviation: random.deviation,
    most: 1,
    edit: (values) => {
      random.edit?.(values)
      if (handSet !== undefined) handSetWriting(handSet, width)(values)
    },
    bias: noBias,
  })
  return graph.op("Add", [between, second])
}
