// The encoder graph of a Whisper shape: two convolutions, position embeddings, transformer layers, all of them at full
// size with random weights.
//
// Five of its dimensions are arranged, so that the decoder can tell how long the speech is (see Script.ts):
// - SOUND: 64 channels of the first convolution are differences between a frame and the one before it in a mel band, in
//   both signs, so that their GELUs together are a magnitude; the second convolution sums them. Silence of any level,
//   and padding, gives nothing.
// - TIME: the position embeddings are the published sinusoids but for this dimension, which rises with the position.
// - FLAG: written by the first layer's feed-forward block, 0 without sound and the same value with any.
// - HEARD: written by the second layer's: TIME where FLAG is set, else 0.
// - NOTHING: always 0. Behind a layer norm it holds what that norm subtracts, so the others are read against it.
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
  READING,
  writing,
} from "./Blocks.ts"
import { melFrames, positions, type WhisperShape } from "./Shapes.ts"

const [SOUND, TIME, FLAG, HEARD, NOTHING] = [0, 1, 2, 3, 4]
const RESERVED = 5

/** The root mean square of the sinusoids, and so about what layer norm divides by. */
const NORM = Math.SQRT1_2
/** TIME at the last position, before layer norm. */
const LATEST = 4
/** HEARD at the last position behind the last layer norm, about. */
export const heardLatest = LATEST / NORM
export const heardDimension = HEARD
export const zeroDimension = NOTHING

const DETECTORS = 64
/** A mel band's change from a frame to the next is 0.05 to 0.2 in speech; GELU bends at about 1. */
const DETECTOR_GAIN = 10
/** What the detectors of three frames sum up to in speech is 20 to 400. */
const SOUND_GAIN = 0.005

const detectors = (values: Float32Array, melBins: number): void => {
  values.fill(0, 0, DETECTORS * melBins * 3)
  for (let channel = 0; channel < DETECTORS; channel++) {
    const band = Math.floor(((channel >> 1) * melBins) / (DETECTORS / 2))
    const sign = channel % 2 === 0 ? DETECTOR_GAIN : -DETECTOR_GAIN
    values[(channel * melBins + band) * 3] = -sign
    values[(channel * melBins + band) * 3 + 1] = sign
  }
}

/** The second convolution's channels are the dimensions. */
const soundChannels = (values: Float32Array, width: number): void => {
  values.fill(0, 0, RESERVED * width * 3)
  values.fill(SOUND_GAIN, SOUND * width * 3, (SOUND * width + DETECTORS) * 3)
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
    rows.fill(0, position * width, position * width + RESERVED)
    rows[position * width + TIME] = (LATEST * position) / positions
  }
  return rows
}

/** SOUND at which FLAG begins to rise, behind layer norm, and the steepness of that. */
const THRESHOLD = 0.1
const STEEPNESS = 20
/** FLAG where there is sound, before layer norm. */
const FLAGGED = 2
/** With FLAG a hidden unit is open by so much, and without it closed by so much: TIME does not reach it. */
const OPEN = 12
const PER_FLAG = (2 * OPEN * NORM) / FLAGGED

interface Arranged {
  /** Into the first two hidden units. */
  readonly reading: (values: Float32Array, columns: number) => void
  readonly bias: readonly [number, number]
  readonly writing: { readonly dimension: number; readonly perUnit: number }
  readonly most: number
}

/** GELU(z) - GELU(z - 4) is a step from 0 to 4. */
const flag: Arranged = {
  reading: (values, columns) => {
    for (const unit of [0, 1]) {
      values[SOUND * columns + unit] = STEEPNESS
      values[NOTHING * columns + unit] = -STEEPNESS
    }
  },
  bias: [-STEEPNESS * THRESHOLD, -STEEPNESS * THRESHOLD - 4],
  writing: { dimension: FLAG, perUnit: FLAGGED / 4 },
  most: STEEPNESS,
}

/** GELU(time + z) - GELU(z) is the time where z is far above 0, and nothing where both are far below. */
const heard: Arranged = {
  reading: (values, columns) => {
    for (const unit of [0, 1]) {
      values[FLAG * columns + unit] = PER_FLAG
      values[NOTHING * columns + unit] = -PER_FLAG
    }
    values[TIME * columns] = 1
    values[NOTHING * columns] = -PER_FLAG - 1
  },
  bias: [-OPEN, -OPEN],
  writing: { dimension: HEARD, perUnit: NORM },
  most: PER_FLAG + 1,
}

const arrangedReading = (arranged: Arranged, columns: number): Edit => {
  return (values) => {
    clearColumn(values, columns, 0)
    clearColumn(values, columns, 1)
    arranged.reading(values, columns)
  }
}

const arrangedWriting = ({ writing: { dimension, perUnit } }: Arranged, columns: number): Edit => {
  return (values) => {
    values.fill(0, 0, 2 * columns)
    values[dimension] = perUnit
    values[columns + dimension] = -perUnit
  }
}

/**
 * Standard deviation of the weights behind attention and feed-forward. All layers together add about a fifth to the norm,
 * because HEARD is read behind it.
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
      deviation: READING,
      most: DETECTOR_GAIN,
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
      most: SOUND_GAIN,
      edit: (values) => soundChannels(values, width),
    },
    2,
  )
  let x = graph.op("Add", [
    graph.op("Transpose", [second], { perm: [0, 2, 1] }),
    graph.floats("embed_positions.weight", [positions, width], () => positionRows(width)),
  ])
  for (let layer = 0; layer < encoderLayers; layer++) {
    const arranged = layer === 0 ? flag : layer === 1 ? heard : undefined
    x = encoderLayer(blocks, x, layer, writingOf(shape), arranged)
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
  arranged: Arranged | undefined,
): string => {
  const { graph, width } = blocks
  const name = `layers.${layer}`
  const square = { from: width, to: width, deviation: READING }
  const normed = layerNorm(blocks, x, `${name}.self_attn_layer_norm`)
  const query = project(blocks, normed, { ...square, name: `${name}.self_attn.q_proj`, bias: noBias })
  const key = project(blocks, normed, { ...square, name: `${name}.self_attn.k_proj` })
  const value = project(blocks, normed, { ...square, name: `${name}.self_attn.v_proj`, bias: noBias })
  const mixed = attend(blocks, query, inHeads(blocks, key), inHeads(blocks, value))
  const attended = project(blocks, mixed, {
    ...square,
    ...writing(deviation, RESERVED, width),
    name: `${name}.self_attn.out_proj`,
    bias: noBias,
  })
  const between = graph.op("Add", [x, attended])
  const hidden = 4 * width
  const first = project(blocks, layerNorm(blocks, between, `${name}.final_layer_norm`), {
    name: `${name}.fc1`,
    from: width,
    to: hidden,
    deviation: READING,
    ...(arranged === undefined ? {} : { edit: arrangedReading(arranged, hidden), most: arranged.most }),
    bias: (values) => values.set(arranged?.bias ?? []),
  })
  const random = writing(deviation, RESERVED, width)
  const second = project(blocks, gelu(blocks, first), {
    name: `${name}.fc2`,
    from: hidden,
    to: width,
    deviation: random.deviation,
    most: 1,
    edit: (values) => {
      random.edit?.(values)
      if (arranged !== undefined) arrangedWriting(arranged, width)(values)
    },
    bias: noBias,
  })
  return graph.op("Add", [between, second])
}
