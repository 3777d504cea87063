// Weight matrices of random values and products with them, in the precision of a file: float32, eight bits as
// ONNX Runtime's dynamic quantiser writes them (DynamicQuantizeLinear and MatMulInteger, one scale for each matrix), or four bits
// as its blockwise one does (MatMulNBits).
import { seededRandom } from "#engines/shared/listening/Sampling.ts"
import type { Graph } from "./Graph.ts"
import { rawData } from "./Messages.ts"

/** Type of the weights. With `int8` and `uint8` the activations are unsigned bytes. */
export type Precision = "float32" | "int8" | "uint8"

/** That of products. With `int4` the activations are bytes within the operator. */
export type ProductPrecision = Precision | "int4"

/** Largest random value, in standard deviations. */
const farthest = 4
const tableSize = 1 << 20

/** Normal random numbers. Matrices are filled by copying stretches of them, which is fast. */
const table: Float32Array = (() => {
  const random = seededRandom(1)
  const values = new Float32Array(tableSize)
  for (let i = 0; i < tableSize; i += 2) {
    const radius = Math.sqrt(-2 * Math.log(1 - random()))
    const angle = 2 * Math.PI * random()
    values[i] = Math.max(-farthest, Math.min(farthest, radius * Math.cos(angle)))
    values[i + 1] = Math.max(-farthest, Math.min(farthest, radius * Math.sin(angle)))
  }
  return values
})()

const hashOf = (name: string): number => {
  let hash = 0x811c9dc5
  for (const character of name) hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193)
  return hash >>> 0
}

/** Length of a stretch: long enough to be fast, short enough that two rows are rarely equal. */
const stretch = 4096

/** `count` normal random numbers with that standard deviation. The same name gives the same numbers. */
export const normal = (name: string, count: number, deviation: number): Float32Array => {
  const values = new Float32Array(count)
  const random = seededRandom(hashOf(name))
  for (let at = 0; at < count; at += stretch) {
    const length = Math.min(stretch, count - at)
    const from = Math.floor(random() * (tableSize - length))
    values.set(table.subarray(from, from + length), at)
  }
  for (let i = 0; i < count; i++) values[i]! *= deviation
  return values
}

export interface Matrix {
  readonly name: string
  /** [inputs, outputs], or the dimensions that the operator expects. */
  readonly dims: ReadonlyArray<number>
  /** Standard deviation of the random values. */
  readonly deviation: number
  /** Largest absolute value that `edit` writes. */
  readonly most?: number
  /** Writes the values that are not random; `values` is row-major. */
  readonly edit?: (values: Float32Array) => void
}

const valuesOf = ({ deviation, dims, edit, name }: Matrix): Float32Array => {
  const values = normal(
    name,
    dims.reduce((product, dim) => product * dim, 1),
    deviation,
  )
  edit?.(values)
  return values
}

const steps = 127
/** Zero point of unsigned bytes, so that 0 can be represented. */
const zeroPointByte = 128

/** A real value as an eight-bit integer. */
const scaleOf = ({ deviation, most = 0 }: Matrix): number => Math.max(most, farthest * deviation) / steps || 1

const inBytes = (matrix: Matrix, type: "int8" | "uint8"): Uint8Array => {
  const values = valuesOf(matrix)
  const perUnit = 1 / scaleOf(matrix)
  const zero = type === "int8" ? 0 : zeroPointByte
  const stored = new Uint8Array(values.length)
  for (let i = 0; i < values.length; i++) stored[i] = Math.round(values[i]! * perUnit) + zero
  return stored
}

/** The matrix as bytes, and the names of its scale and zero point. */
const stored = (graph: Graph, matrix: Matrix, type: "int8" | "uint8") => ({
  values: graph.weight(`${matrix.name}_quantized`, type, matrix.dims, () => inBytes(matrix, type)),
  scale: graph.floats(`${matrix.name}_scale`, [], () => Float32Array.of(scaleOf(matrix))),
  zeroPoint: graph.weight(`${matrix.name}_zero_point`, type, [], () =>
    rawData(type, [type === "int8" ? 0 : zeroPointByte]),
  ),
})

const whole = (graph: Graph, matrix: Matrix): string =>
  graph.floats(matrix.name, matrix.dims, () => valuesOf(matrix))

/** Converts an integer product to real numbers. */
const scaled = (graph: Graph, product: string, ...scales: readonly [string, string]): string =>
  graph.op("Mul", [graph.cast(product, "float32"), graph.op("Mul", scales)])

/** Weights of a column that share a scale, as in published files. */
const blockLength = 32
const nibbles = 16

/** [inputs, outputs] as MatMulNBits reads it: each column's blocks, two weights a byte, the first in the low half; 8 is zero. */
const inNibbles = (matrix: Matrix, inputs: number, outputs: number, scale: number): Uint8Array => {
  const values = valuesOf(matrix)
  const packed = new Uint8Array((inputs * outputs) / 2)
  for (let column = 0; column < outputs; column++)
    for (let row = 0; row < inputs; row++) {
      const nibble = Math.round(values[row * outputs + column]! / scale) + nibbles / 2
      const at = (column * inputs + row) >> 1
      packed[at]! |= Math.max(0, Math.min(nibbles - 1, nibble)) << (row % 2 === 0 ? 0 : 4)
    }
  return packed
}

const timesNibbles = (graph: Graph, x: string, matrix: Matrix): string => {
  const [inputs, outputs] = matrix.dims as readonly [number, number]
  if (inputs % blockLength !== 0) throw new Error(`${matrix.name}: ${inputs} inputs are no whole blocks`)
  const blocks = inputs / blockLength
  const scale = (farthest * matrix.deviation) / (nibbles / 2 - 1)
  const bytes = blockLength / 2
  return graph.op(
    "com.microsoft.MatMulNBits",
    [
      x,
      graph.weight(`${matrix.name}_q4`, "uint8", [outputs, blocks, bytes], () =>
        inNibbles(matrix, inputs, outputs, scale),
      ),
      graph.floats(`${matrix.name}_scales`, [outputs * blocks], () =>
        new Float32Array(outputs * blocks).fill(scale),
      ),
    ],
    // Level 4 multiplies bytes, which is what exporters for CPUs choose.
    { K: inputs, N: outputs, bits: 4, block_size: blockLength, accuracy_level: 4 },
  )
}

/** `x` times the matrix. */
export const times = (graph: Graph, x: string, matrix: Matrix, precision: ProductPrecision): string => {
  if (precision === "float32") return graph.op("MatMul", [x, whole(graph, matrix)])
  if (precision === "int4") return timesNibbles(graph, x, matrix)
  const { scale, values, zeroPoint } = stored(graph, matrix, precision)
  const [bytes, bytesScale, bytesZero] = graph.quantize(x)
  return scaled(graph, graph.op("MatMulInteger", [bytes, values, bytesZero, zeroPoint]), bytesScale, scale)
}

type ConvAttributes = Readonly<Record<string, number | ReadonlyArray<number>>>

/** A convolution without its bias. ONNX Runtime has no convolution of signed bytes, so `int8` uses unsigned bytes here too. */
export const convolved = (
  graph: Graph,
  x: string,
  matrix: Matrix,
  precision: Precision,
  attributes: ConvAttributes,
): string => {
  if (precision === "float32") return graph.op("Conv", [x, whole(graph, matrix)], attributes)
  const { scale, values, zeroPoint } = stored(graph, matrix, "uint8")
  const [bytes, bytesScale, bytesZero] = graph.quantize(x)
  const product = graph.op("ConvInteger", [bytes, values, bytesZero, zeroPoint], attributes)
  return scaled(graph, product, bytesScale, scale)
}

/** Selects rows of the matrix by their numbers. */
export const rowsOf = (graph: Graph, ids: string, matrix: Matrix, precision: Precision): string => {
  if (precision === "float32") return graph.op("Gather", [whole(graph, matrix), ids])
  const { scale, values, zeroPoint } = stored(graph, matrix, precision)
  return graph.op("DequantizeLinear", [graph.op("Gather", [values, ids]), scale, zeroPoint])
}

/** `x` times the transposed matrix. The output matrix is the input embedding, as in published decoders (tied embeddings). */
export const timesTransposed = (graph: Graph, x: string, matrix: Matrix, precision: Precision): string => {
  const perm = { perm: [1, 0] }
  if (precision === "float32")
    return graph.op("MatMul", [x, graph.op("Transpose", [whole(graph, matrix)], perm)])
  const { scale, values, zeroPoint } = stored(graph, matrix, precision)
  const [bytes, bytesScale, bytesZero] = graph.quantize(x)
  const turned = graph.op("Transpose", [values], perm)
  return scaled(graph, graph.op("MatMulInteger", [bytes, turned, bytesZero, zeroPoint]), bytesScale, scale)
}
